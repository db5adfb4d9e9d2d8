//! What an access log keeps to itself (`format filter`).

use crate::paths::url_path;
use regent_config::{LogAction, LogField, LogFilter, QueryEdit};
use std::borrow::Cow;

/// At most one filter for each field.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFilters(Vec<LogFilter>);

/// How a field is to be written.
pub(crate) enum Filtered<'a> {
    Unchanged,
    Deleted,
    Replaced(&'a str),
    /// Each of its texts changed like this.
    Edited(&'a [QueryEdit]),
}

impl LogFilters {
    pub(crate) fn new(filters: &[LogFilter]) -> Self {
        Self(filters.to_vec())
    }

    pub(crate) fn of(&self, field: &LogField) -> Filtered<'_> {
        self.find(|own| own == field)
    }

    /// Of a field of the request, whose name is in lower case.
    pub(crate) fn of_request_header(&self, name: &str) -> Filtered<'_> {
        self.find(|own| matches!(own, LogField::RequestHeader(own) if own == name))
    }

    /// Of a field of the response, whose name is in lower case.
    pub(crate) fn of_response_header(&self, name: &str) -> Filtered<'_> {
        self.find(|own| matches!(own, LogField::ResponseHeader(own) if own == name))
    }

    fn find(&self, is_meant: impl Fn(&LogField) -> bool) -> Filtered<'_> {
        match self.0.iter().find(|filter| is_meant(&filter.field)).map(|filter| &filter.action) {
            None => Filtered::Unchanged,
            Some(LogAction::Delete) => Filtered::Deleted,
            Some(LogAction::Replace(text)) => Filtered::Replaced(text),
            Some(LogAction::Query(edits)) => Filtered::Edited(edits),
        }
    }
}

/// The URL with its query parameters edited. All others stay as they were written; Caddy sorts and rewrites them.
pub(crate) fn edit_query<'a>(url: &'a [u8], edits: &[QueryEdit]) -> Cow<'a, [u8]> {
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

    proptest! {
        #[test]
        fn no_value_is_left_over(before in "[a-z=&%?#+]{0,9}", value in "[A-Z]{4,8}") {
            let url = format!("/?gone={value}&{before}&token={value}");
            prop_assert!(!edited(&url).split('#').next().unwrap().contains(&value));
        }
    }
}
