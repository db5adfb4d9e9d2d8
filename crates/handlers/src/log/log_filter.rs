//! What an access log keeps to itself (`format filter`).

use crate::error::BuildError;
use crate::paths::url_path;
use regent_config::{LogAction, LogField, LogFilter, QueryEdit};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// At most one filter for each field.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFilters(Vec<(LogField, Change)>);

/// What becomes of a field.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Deleted,
    Replaced(String),
    Renamed(String),
    /// Each of its texts.
    Edited(Edit),
}

/// What becomes of a text.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Query(Vec<QueryEdit>),
    IpMask { v4: u8, v6: u8 },
    Regexp { regex: Regex, replacement: String },
}

impl LogFilters {
    pub(crate) fn compile(filters: &[LogFilter]) -> Result<Self, BuildError> {
        let compile = |filter: &LogFilter| Ok((filter.field.clone(), Change::compile(&filter.action)?));
        filters.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// `None`: the field is written as it is.
    pub(crate) fn of(&self, field: &LogField) -> Option<&Change> {
        self.find(|own| own == field)
    }

    /// Of a field of the request, whose name is in lower case.
    pub(crate) fn of_request_header(&self, name: &str) -> Option<&Change> {
        self.find(|own| matches!(own, LogField::RequestHeader(own) if own == name))
    }

    /// Of a field of the response, whose name is in lower case.
    pub(crate) fn of_response_header(&self, name: &str) -> Option<&Change> {
        self.find(|own| matches!(own, LogField::ResponseHeader(own) if own == name))
    }

    fn find(&self, is_meant: impl Fn(&LogField) -> bool) -> Option<&Change> {
        self.0.iter().find(|(field, _)| is_meant(field)).map(|(_, change)| change)
    }
}

impl Change {
    fn compile(action: &LogAction) -> Result<Self, BuildError> {
        Ok(match action {
            LogAction::Delete => Self::Deleted,
            LogAction::Replace(text) => Self::Replaced(text.clone()),
            LogAction::Rename(name) => Self::Renamed(name.clone()),
            LogAction::Query(edits) => Self::Edited(Edit::Query(edits.clone())),
            LogAction::IpMask { v4, v6 } => Self::Edited(Edit::IpMask { v4: *v4, v6: *v6 }),
            LogAction::Regexp { pattern, replacement } => {
                let regex = Regex::new(pattern)
                    .map_err(|source| BuildError::Regex { pattern: pattern.clone(), source })?;
                Self::Edited(Edit::Regexp { regex, replacement: replacement.clone() })
            }
        })
    }
}

impl Edit {
    /// The text as it is to be written.
    pub(crate) fn apply<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Query(edits) => edit_query(text, edits),
            Self::IpMask { v4, v6 } => masked(text, *v4, *v6).into(),
            Self::Regexp { regex, replacement } => regex.replace_all(text, replacement.as_bytes()),
        }
    }
}

/// Each address of a list, cut to so many bits. What is none stays.
fn masked(text: &[u8], v4: u8, v6: u8) -> Vec<u8> {
    let list = String::from_utf8_lossy(text);
    let mask = |part: &str| match part.trim().parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(v4.min(32))).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).to_string()
        }
        Ok(IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(v6.min(128))).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).to_string()
        }
        Err(_) => part.trim().to_owned(),
    };
    list.split(',').map(mask).collect::<Vec<_>>().join(", ").into_bytes()
}

/// The URL with its query parameters edited. All others stay as they were written; Caddy sorts and rewrites them.
fn edit_query<'a>(url: &'a [u8], edits: &[QueryEdit]) -> Cow<'a, [u8]> {
    let Some(start) = url.iter().position(|&byte| byte == b'?') else { return Cow::Borrowed(url) };
    let (before, rest) = url.split_at(start + 1);
    let end = rest.iter().position(|&byte| byte == b'#').unwrap_or(rest.len());
    let (query, fragment) = rest.split_at(end);
    let pairs: Vec<_> = query.split(|&byte| byte == b'&').filter_map(|pair| edit(pair, edits)).collect();
    // Without parameters there is no question mark either.
    let kept = if pairs.is_empty() { &before[..start] } else { before };
    Cow::Owned([kept, &pairs.join(&b'&'), fragment].concat())
}

/// `None`: deleted.
fn edit<'a>(pair: &'a [u8], edits: &[QueryEdit]) -> Option<Cow<'a, [u8]>> {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or(pair);
    let decoded = url_path::decode_query(&String::from_utf8_lossy(name));
    // As in Caddy, the last word on a parameter counts, but for what was deleted before.
    let mut edited = Cow::Borrowed(pair);
    for edit in edits.iter().filter(|edit| edit.parameter.as_bytes() == decoded) {
        let mut written = [name, b"="].concat();
        url_path::encode_query_value(edit.value.as_ref()?.as_bytes(), &mut written);
        edited = Cow::Owned(written);
    }
    Some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edited(url: &str) -> String {
        let edits = [
            QueryEdit { parameter: "token".into(), value: Some("A&B".into()) },
            QueryEdit { parameter: "gone".into(), value: None },
        ];
        String::from_utf8(edit_query(url.as_bytes(), &edits).into_owned()).unwrap()
    }

    #[test]
    fn parameters_are_replaced_and_deleted_wherever_they_stand() {
        let cases = [
            ("/a", "/a"),
            ("/a?b=1", "/a?b=1"),
            ("/a?token=x&b=%20", "/a?token=A%26B&b=%20"),
            ("/a?b&token&token=y=z", "/a?b&token=A%26B&token=A%26B"),
            ("/a?t%6Fken=x", "/a?t%6Fken=A%26B"),
            ("/a?gone=1&b=2&gone", "/a?b=2"),
            ("/a?gone=1#token=1", "/a#token=1"),
            ("/token=1", "/token=1"),
        ];
        for (url, expected) in cases {
            assert_eq!(edited(url), expected, "{url}");
        }
    }

    #[test]
    fn addresses_are_cut() {
        let masked = |text: &str| String::from_utf8(super::masked(text.as_bytes(), 24, 32)).unwrap();
        assert_eq!(masked("192.0.2.77"), "192.0.2.0");
        assert_eq!(masked("2001:db8:1:2::3"), "2001:db8::");
        assert_eq!(masked("192.0.2.77,unknown , ::1"), "192.0.2.0, unknown, ::");
        assert_eq!(super::masked(b"192.0.2.77", 0, 0), b"0.0.0.0");
        assert_eq!(super::masked(b"192.0.2.77", 32, 0), b"192.0.2.77");
    }

    proptest! {
        #[test]
        fn no_value_is_left_over(before in "[a-z=&%?#+]{0,9}", value in "[A-Z]{4,8}") {
            let url = format!("/?gone={value}&{before}&token={value}");
            prop_assert!(!edited(&url).split('#').next().unwrap().contains(&value));
        }
    }
}
