//! What an access log keeps to itself (`format filter`).

use crate::error::BuildError;
use crate::ip_prefix::IpPrefix;
use crate::paths::url_path;
use aws_lc_rs::digest::{SHA256, digest};
use regent_config::{LogAction, LogField, LogFilter, ValueAction, ValueEdit};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::net::IpAddr;

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
    Query(Vec<ValueEdit>),
    Cookie(Vec<ValueEdit>),
    IpMask {
        v4: u8,
        v6: u8,
    },
    /// One after the other.
    Regexp(Vec<(Regex, String)>),
    Hash,
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
            LogAction::Cookie(edits) => Self::Edited(Edit::Cookie(edits.clone())),
            LogAction::Hash => Self::Edited(Edit::Hash),
            LogAction::Regexp { pattern, replacement } => {
                Self::Edited(Edit::Regexp(vec![step(pattern, replacement)?]))
            }
            LogAction::MultiRegexp(steps) => {
                let steps = steps.iter().map(|(pattern, replacement)| step(pattern, replacement));
                Self::Edited(Edit::Regexp(steps.collect::<Result<_, _>>()?))
            }
        })
    }
}

fn step(pattern: &str, replacement: &str) -> Result<(Regex, String), BuildError> {
    let regex =
        Regex::new(pattern).map_err(|source| BuildError::Regex { pattern: pattern.to_owned(), source });
    Ok((regex?, replacement.to_owned()))
}

impl Edit {
    /// The text as it is to be written.
    pub(crate) fn apply<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Query(edits) => edit_query(text, edits),
            Self::IpMask { v4, v6 } => masked(text, *v4, *v6).into(),
            Self::Cookie(edits) => edit_cookies(text, edits).into(),
            Self::Hash => hash(text).into(),
            Self::Regexp(steps) => steps.iter().fold(Cow::Borrowed(text), |text, (regex, replacement)| {
                let replaced = regex.replace_all(&text, replacement.as_bytes()).into_owned();
                Cow::Owned(replaced)
            }),
        }
    }
}

/// Each address of a list, cut to so many bits. What is none stays.
fn masked(text: &[u8], v4: u8, v6: u8) -> Vec<u8> {
    let list = String::from_utf8_lossy(text);
    let mask = |part: &str| match part.trim().parse::<IpAddr>() {
        Ok(address) => IpPrefix { v4, v6 }.of(address).to_string(),
        Err(_) => part.trim().to_owned(),
    };
    list.split(',').map(mask).collect::<Vec<_>>().join(", ").into_bytes()
}

/// As Caddy has it (modules/logging/filters.go, `hash`).
fn hash(text: &[u8]) -> Vec<u8> {
    let digest = digest(&SHA256, text);
    digest.as_ref()[..4].iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// A list of cookies (RFC 6265 §4.2) with some of them edited. The first edit of a name counts, as in Caddy.
fn edit_cookies(list: &[u8], edits: &[ValueEdit]) -> Vec<u8> {
    let edited = |cookie: &[u8]| {
        let cookie = cookie.trim_ascii();
        let (name, value) = match cookie.iter().position(|byte| *byte == b'=') {
            Some(at) => (&cookie[..at], &cookie[at + 1..]),
            None => (cookie, &b""[..]),
        };
        let Some(edit) = edits.iter().find(|edit| edit.name.as_bytes() == name) else {
            return Some(cookie.to_vec());
        };
        let value = match &edit.action {
            ValueAction::Delete => return None,
            ValueAction::Replace(value) => value.clone().into_bytes(),
            ValueAction::Hash => hash(value),
        };
        Some([name, b"=", &value].concat())
    };
    list.split(|byte| *byte == b';').filter_map(edited).collect::<Vec<_>>().join(&b"; "[..])
}

/// The URL with its query parameters edited. All others stay as they were written; Caddy sorts and rewrites them.
fn edit_query<'a>(url: &'a [u8], edits: &[ValueEdit]) -> Cow<'a, [u8]> {
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
fn edit<'a>(pair: &'a [u8], edits: &[ValueEdit]) -> Option<Cow<'a, [u8]>> {
    let mut parts = pair.splitn(2, |&byte| byte == b'=');
    let (name, value) = (parts.next().unwrap_or(pair), parts.next().unwrap_or_default());
    let decoded = |text| url_path::decode_query(&String::from_utf8_lossy(text));
    let (own, mut value, mut is_edited) = (decoded(name), Cow::Borrowed(value), false);
    // As in Caddy, the last word on a parameter counts, but for what was deleted before.
    for edit in edits.iter().filter(|edit| edit.name.as_bytes() == own) {
        value = match &edit.action {
            ValueAction::Delete => return None,
            ValueAction::Replace(value) => value.clone().into_bytes().into(),
            // Of the value itself, before what others have made of it.
            ValueAction::Hash => hash(&decoded(pair.get(name.len() + 1..).unwrap_or_default())).into(),
        };
        is_edited = true;
    }
    if !is_edited {
        return Some(Cow::Borrowed(pair));
    }
    let mut written = [name, b"="].concat();
    url_path::encode_query_value(&value, &mut written);
    Some(Cow::Owned(written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value_edit(name: &str, action: ValueAction) -> ValueEdit {
        ValueEdit { name: name.into(), action }
    }

    fn edited(url: &str) -> String {
        let edits = [
            value_edit("token", ValueAction::Replace("A&B".into())),
            value_edit("gone", ValueAction::Delete),
            value_edit("hash", ValueAction::Hash),
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
            // As of `printf abc | sha256sum`.
            ("/a?hash=abc&hash=%61bc&hash", "/a?hash=ba7816bf&hash=ba7816bf&hash=e3b0c442"),
        ];
        for (url, expected) in cases {
            assert_eq!(edited(url), expected, "{url}");
        }
    }

    #[test]
    fn cookies_are_edited_and_others_stay() {
        let edits = [
            value_edit("id", ValueAction::Hash),
            value_edit("ad", ValueAction::Delete),
            value_edit("t", ValueAction::Replace("X".into())),
        ];
        let edited = |list: &str| String::from_utf8(edit_cookies(list.as_bytes(), &edits)).unwrap();
        assert_eq!(edited("id=abc; ad=1;other=a=b; t=; Id=x"), "id=ba7816bf; other=a=b; t=X; Id=x");
        assert_eq!(edited("ad=1"), "");
    }

    #[test]
    fn several_patterns_follow_each_other() {
        let steps = vec![step("a+", "b").unwrap(), step("b(.)", "<$1>").unwrap()];
        assert_eq!(Edit::Regexp(steps).apply(b"aac"), Cow::Borrowed(&b"<c>"[..]));
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
