//! Conditional requests (RFC 9110 §13).

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use rustix::fs::Stat;
use std::time::{Duration, SystemTime};

/// What tells one state of a file from another.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    /// Changes whenever the content does, if it is the server's own. One of the configuration may be weak.
    pub(crate) etag: HeaderValue,
    /// To the second; `None` before 1970 and after 9999, which HTTP cannot say.
    pub(crate) modified: Option<SystemTime>,
}

/// What the preconditions of a request come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Proceed,
    /// 304
    NotModified,
    /// 412
    Failed,
}

impl Validators {
    /// From modification time, size and inode: a file that is replaced within the clock's resolution has another inode.
    pub(crate) fn of(stat: &Stat) -> Self {
        let modified =
            u64::try_from(stat.st_mtime).ok().filter(|seconds| (1..=253_402_300_799).contains(seconds));
        Self {
            etag: entity_tag([stat.st_mtime as u64, stat.st_mtime_nsec, stat.st_size as u64, stat.st_ino]),
            modified: modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        }
    }

    pub(crate) fn last_modified(&self) -> Option<HeaderValue> {
        self.modified.and_then(|time| HeaderValue::try_from(httpdate::fmt_http_date(time)).ok())
    }

    /// The preconditions in the order of RFC 9110 §13.2.2.
    pub(crate) fn evaluate(&self, method: &Method, headers: &HeaderMap) -> Outcome {
        if headers.contains_key(header::IF_MATCH) {
            if !self.is_listed(headers, &header::IF_MATCH, Comparison::Strong) {
                return Outcome::Failed;
            }
        } else if let Some(limit) = date(headers, &header::IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > limit)
        {
            return Outcome::Failed;
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if headers.contains_key(header::IF_NONE_MATCH) {
            if self.is_listed(headers, &header::IF_NONE_MATCH, Comparison::Weak) {
                return if reads { Outcome::NotModified } else { Outcome::Failed };
            }
        } else if let (true, Some(limit)) = (reads, date(headers, &header::IF_MODIFIED_SINCE))
            && self.modified.is_some_and(|modified| modified <= limit)
        {
            return Outcome::NotModified;
        }
        Outcome::Proceed
    }

    /// Whether a `Range` field counts: there is no `If-Range`, or it names this very state (RFC 9110 §13.1.5).
    pub(crate) fn range_applies(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(header::IF_RANGE) else { return true };
        let value = value.as_bytes().trim_ascii();
        if value.starts_with(b"\"") {
            return value == self.etag.as_bytes();
        }
        if value.starts_with(b"W/") {
            return false;
        }
        self.modified.is_some() && parse_date(value) == self.modified
    }

    fn is_listed(&self, headers: &HeaderMap, name: &HeaderName, comparison: Comparison) -> bool {
        let own = tags(self.etag.as_bytes()).next();
        let is_own = |(strength, tag): (Comparison, &[u8])| {
            own.is_some_and(|(own_strength, own)| {
                let both_are_strong = (strength, own_strength) == (Comparison::Strong, Comparison::Strong);
                tag == own && (both_are_strong || comparison == Comparison::Weak)
            })
        };
        let values = headers.get_all(name).iter();
        values.map(|value| value.as_bytes()).any(|list| list.trim_ascii() == b"*" || tags(list).any(is_own))
    }
}

/// Without `format!`, which takes as long as all else that is done for the file's fields.
fn entity_tag(parts: [u64; 4]) -> HeaderValue {
    let mut tag = Vec::with_capacity(4 * 17 + 1);
    for (index, part) in parts.into_iter().enumerate() {
        tag.push(if index == 0 { b'"' } else { b'-' });
        push_hex(part, &mut tag);
    }
    tag.push(b'"');
    // Only graphic ASCII.
    HeaderValue::from_maybe_shared(Bytes::from(tag)).unwrap_or(HeaderValue::from_static("\"\""))
}

fn push_hex(number: u64, out: &mut Vec<u8>) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
    }
}

/// How entity tags are compared (RFC 9110 §8.8.3.2), and how strong one is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Strong,
    Weak,
}

/// The entity tags of a list, quotes included; ends at what is none. A tag may hold commas.
pub(crate) fn tags(list: &[u8]) -> impl Iterator<Item = (Comparison, &[u8])> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        rest = &rest[start..];
        let strength = match rest.strip_prefix(b"W/") {
            Some(tail) => {
                rest = tail;
                Comparison::Weak
            }
            None => Comparison::Strong,
        };
        let inner = rest.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')? + 2;
        let (tag, tail) = rest.split_at(end);
        rest = tail;
        Some((strength, tag))
    })
}

/// A date that cannot be read is as none (RFC 9110 §13.1.3, §13.1.4).
pub(crate) fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    parse_date(headers.get(name)?.as_bytes())
}

fn parse_date(text: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn validators() -> Validators {
        Validators { etag: HeaderValue::from_static("\"a\""), modified: parse_date(SAME.as_bytes()) }
    }

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn entity_tags_are_hexadecimal() {
        assert_eq!(entity_tag([0, 0x1f, 0x100, u64::MAX]), "\"0-1f-100-ffffffffffffffff\"");
    }

    #[test]
    fn preconditions_have_their_order() {
        use Outcome::{Failed, NotModified, Proceed};
        for (fields, want) in [
            (&[][..], Proceed),
            (&[("if-match", "\"a\"")], Proceed),
            (&[("if-match", "\"b\", \"a\"")], Proceed),
            (&[("if-match", "*")], Proceed),
            (&[("if-match", "\"b\"")], Failed),
            (&[("if-match", "W/\"a\"")], Failed),
            (&[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)], Proceed),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", SAME)], Proceed),
            (&[("if-unmodified-since", "yesterday")], Proceed),
            (&[("if-none-match", "\"a\"")], NotModified),
            (&[("if-none-match", "W/\"a\"")], NotModified),
            (&[("if-none-match", "\"x,y\", \"a\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"b\""), ("if-modified-since", AFTER)], Proceed),
            (&[("if-none-match", "garbage")], Proceed),
            (&[("if-modified-since", SAME)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", BEFORE)], Proceed),
            (&[("if-match", "\"b\""), ("if-none-match", "\"a\"")], Failed),
        ] {
            assert_eq!(validators().evaluate(&Method::GET, &headers(fields)), want, "{fields:?}");
        }
        let none_match = headers(&[("if-none-match", "\"a\"")]);
        assert_eq!(validators().evaluate(&Method::POST, &none_match), Failed);
    }

    #[test]
    fn ranges_need_the_same_state() {
        for (fields, want) in [
            (&[][..], true),
            (&[("if-range", "\"a\"")], true),
            (&[("if-range", "W/\"a\"")], false),
            (&[("if-range", "\"b\"")], false),
            (&[("if-range", SAME)], true),
            (&[("if-range", AFTER)], false),
            (&[("if-range", "nonsense")], false),
        ] {
            assert_eq!(validators().range_applies(&headers(fields)), want, "{fields:?}");
        }
    }
}
