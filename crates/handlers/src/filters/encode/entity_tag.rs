//! Entity tags of encoded responses.
//!
//! A strong tag names the bytes of a response, so the encoded form needs one of its own (RFC 9110 §8.8.3.3). As Caddy
//! does it (`modules/caddyhttp/encode/encode.go`), it is the tag with the name of the coding behind it, `"x"` and
//! `"x-gzip"`; on the way back the name is cut off, so that whoever has made the tag knows it again.

use crate::files::conditional::{Comparison, tags};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The tag of the encoded form; `None` for a weak one, which is the same for all forms.
pub(crate) fn encoded(tag: &HeaderValue, coding: &str) -> Option<HeaderValue> {
    let inner = tag.as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    HeaderValue::from_bytes(&[b"\"", inner, b"-", coding.as_bytes(), b"\""].concat()).ok()
}

/// Whether the preconditions of a request named an encoded form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Encoded,
    Plain,
}

/// Turns the tags of this coding in `If-None-Match` and `If-Match` back to what they were made of. `If-Range` keeps
/// them: a range is one of the plain form.
pub(crate) fn restore(headers: &mut HeaderMap, coding: &str) -> Named {
    let found = [header::IF_NONE_MATCH, header::IF_MATCH].map(|name| restore_field(headers, &name, coding));
    if found.contains(&Named::Encoded) { Named::Encoded } else { Named::Plain }
}

fn restore_field(headers: &mut HeaderMap, name: &HeaderName, coding: &str) -> Named {
    let names_encoded = |list: &HeaderValue| tags(list.as_bytes()).any(|tag| plain(tag, coding).is_some());
    if !headers.get_all(name).iter().any(names_encoded) {
        return Named::Plain;
    }
    let lists: Vec<_> = headers.get_all(name).iter().map(|list| restored(list.as_bytes(), coding)).collect();
    headers.remove(name);
    for list in lists.iter().filter_map(|list| HeaderValue::from_bytes(list).ok()) {
        headers.append(name, list);
    }
    Named::Encoded
}

fn restored(list: &[u8], coding: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(list.len());
    for (strength, tag) in tags(list) {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        match plain((strength, tag), coding) {
            Some(start) => out.extend([start, b"\""].concat()),
            None if strength == Comparison::Weak => out.extend([b"W/", tag].concat()),
            None => out.extend_from_slice(tag),
        }
    }
    out
}

/// What stands before the coding in a strong tag, without the quote at the end.
fn plain<'a>((strength, tag): (Comparison, &'a [u8]), coding: &str) -> Option<&'a [u8]> {
    let inner = tag.strip_suffix(b"\"").filter(|_| strength == Comparison::Strong)?;
    inner.strip_suffix(coding.as_bytes())?.strip_suffix(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    fn none_match(values: &[&str]) -> (Named, Vec<String>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_NONE_MATCH, tag(value));
        }
        let named = restore(&mut headers, "gzip");
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        (named, values.map(|value| value.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn strong_tags_get_the_coding() {
        assert_eq!(encoded(&tag("\"a\""), "gzip"), Some(tag("\"a-gzip\"")));
        assert_eq!(encoded(&tag("\"\""), "br"), Some(tag("\"-br\"")));
        for weak_or_broken in ["W/\"a\"", "a", "\"a", "\""] {
            assert_eq!(encoded(&tag(weak_or_broken), "gzip"), None, "{weak_or_broken}");
        }
    }

    #[test]
    fn only_strong_tags_of_this_coding_come_back() {
        assert_eq!(none_match(&["\"a-gzip\""]), (Named::Encoded, vec!["\"a\"".into()]));
        assert_eq!(
            none_match(&["\"b\", W/\"c-gzip\", \"x,y-gzip\"", "\"d\""]),
            (Named::Encoded, vec!["\"b\", W/\"c-gzip\", \"x,y\"".into(), "\"d\"".into()])
        );
        for plain in ["\"a-br\"", "\"agzip\"", "*", "W/\"a-gzip\"", "\"a-gzip", "nonsense"] {
            assert_eq!(none_match(&[plain]), (Named::Plain, vec![plain.into()]), "{plain}");
        }
    }

    #[test]
    fn if_match_comes_back_and_if_range_does_not() {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, tag("\"a-br\""));
        headers.insert(header::IF_RANGE, tag("\"a-br\""));
        assert_eq!(restore(&mut headers, "br"), Named::Encoded);
        assert_eq!(headers[header::IF_MATCH], "\"a\"");
        assert_eq!(headers[header::IF_RANGE], "\"a-br\"");
    }

    proptest! {
        #[test]
        fn there_and_back(inner in "[!#-~]{0,20}", coding in prop::sample::select(&["zstd", "br", "gzip"][..])) {
            let original = tag(&format!("\"{inner}\""));
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, encoded(&original, coding).unwrap());
            prop_assert_eq!(restore(&mut headers, coding), Named::Encoded);
            prop_assert_eq!(&headers[header::IF_NONE_MATCH], original);
        }
    }
}
