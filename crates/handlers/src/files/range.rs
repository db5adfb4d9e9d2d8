//! Byte ranges (RFC 9110 §14).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use regent_exchange::Segment;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};

/// More ranges than this in one request are not worth a multipart answer: the whole file is sent.
const MAX_RANGES: usize = 32;

/// What a request asks of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// No range, or one that a server may ignore.
    Whole,
    One(ByteRange),
    Several(Vec<ByteRange>),
    /// None of the ranges lies within the file: 416.
    Unsatisfiable,
}

/// A part of a file, not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// A body of several parts, and its type.
pub(crate) struct Multipart {
    pub(crate) segments: VecDeque<Segment>,
    pub(crate) content_type: HeaderValue,
}

impl ByteRange {
    /// `bytes 0-499/1234`
    pub(crate) fn content_range(self, size: u64) -> HeaderValue {
        let text = format!("bytes {}-{}/{size}", self.start, self.start + self.len - 1);
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}

/// Reads the `Range` field. What is malformed, in another unit, or would cost more than the file itself is ignored.
pub(crate) fn wanted(headers: &HeaderMap, size: u64) -> Wanted {
    let mut values = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Wanted::Whole };
    let Some(specs) = value.to_str().ok().and_then(parse) else { return Wanted::Whole };
    if specs.is_empty() || specs.len() > MAX_RANGES || size == 0 {
        return Wanted::Whole;
    }
    let ranges: Vec<_> = specs.into_iter().filter_map(|spec| spec.within(size)).collect();
    let total = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.len));
    match ranges.as_slice() {
        [] => Wanted::Unsatisfiable,
        [one] => Wanted::One(*one),
        // Overlapping ranges that add up to more than the file are an attack or a mistake (RFC 9110 §14.2).
        _ if total > size => Wanted::Whole,
        _ => Wanted::Several(ranges),
    }
}

/// `multipart/byteranges` (RFC 9110 §14.6).
pub(crate) fn multipart(ranges: &[ByteRange], size: u64, part_type: &HeaderValue) -> Multipart {
    let boundary = format!("{:016x}", RandomState::new().build_hasher().finish());
    let mut segments = VecDeque::with_capacity(ranges.len() * 2 + 1);
    for (index, range) in ranges.iter().enumerate() {
        let mut head = Vec::with_capacity(128);
        head.extend_from_slice(if index == 0 { b"--" } else { b"\r\n--" });
        head.extend_from_slice(boundary.as_bytes());
        head.extend_from_slice(b"\r\nContent-Type: ");
        head.extend_from_slice(part_type.as_bytes());
        head.extend_from_slice(b"\r\nContent-Range: ");
        head.extend_from_slice(range.content_range(size).as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
        segments.push_back(Segment::Bytes(head.into()));
        segments.push_back(Segment::File { offset: range.start, len: range.len });
    }
    segments.push_back(Segment::Bytes(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
    let content_type = HeaderValue::try_from(format!("multipart/byteranges; boundary={boundary}"))
        .unwrap_or(HeaderValue::from_static("multipart/byteranges"));
    Multipart { segments, content_type }
}

#[derive(Clone, Copy)]
enum Spec {
    From { first: u64, last: Option<u64> },
    Suffix(u64),
}

impl Spec {
    fn within(self, size: u64) -> Option<ByteRange> {
        match self {
            Self::From { first, last } if first < size => {
                let last = last.unwrap_or(u64::MAX).min(size - 1);
                Some(ByteRange { start: first, len: last - first + 1 })
            }
            Self::Suffix(len) if len > 0 => {
                let len = len.min(size);
                Some(ByteRange { start: size - len, len })
            }
            _ => None,
        }
    }
}

fn parse(text: &str) -> Option<Vec<Spec>> {
    let (unit, list) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    list.split(',').map(str::trim).filter(|spec| !spec.is_empty()).map(parse_spec).collect()
}

fn parse_spec(text: &str) -> Option<Spec> {
    let (first, last) = text.split_once('-')?;
    match (first.trim(), last.trim()) {
        ("", last) => Some(Spec::Suffix(number(last)?)),
        (first, "") => Some(Spec::From { first: number(first)?, last: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From { first, last: Some(last) })
        }
    }
}

/// Digits only, unlike `str::parse`; what is too large for 64 bits lies behind the end of every file.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field: &str, size: u64) -> Wanted {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_str(field).unwrap());
        wanted(&headers, size)
    }

    fn one(start: u64, len: u64) -> Wanted {
        Wanted::One(ByteRange { start, len })
    }

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        for (field, want) in [
            ("bytes=0-9", one(0, 10)),
            ("bytes=90-", one(90, 10)),
            ("bytes=-10", one(90, 10)),
            ("bytes=-1000", one(0, 100)),
            ("bytes=50-1000", one(50, 50)),
            ("bytes=99-99", one(99, 1)),
            ("bytes=0-18446744073709551615", one(0, 100)),
            ("bytes=0-99999999999999999999999", one(0, 100)),
            ("BYTES = 1 - 2", one(1, 2)),
            ("bytes=200-300, 5-5", one(5, 1)),
            ("bytes=100-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=9-0", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("bytes=--1", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("nonsense", Wanted::Whole),
            ("bytes=0-99,0-99", Wanted::Whole),
            (
                "bytes=0-0,2-2",
                Wanted::Several(vec![ByteRange { start: 0, len: 1 }, ByteRange { start: 2, len: 1 }]),
            ),
        ] {
            assert_eq!(of(field, 100), want, "{field}");
        }
        assert_eq!(of("bytes=0-0", 0), Wanted::Whole);
        assert_eq!(wanted(&HeaderMap::new(), 100), Wanted::Whole);
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let many = |count: usize| {
            let list: Vec<_> = (0..count).map(|i| format!("{}-{}", i * 2, i * 2)).collect();
            format!("bytes={}", list.join(","))
        };
        assert!(matches!(of(&many(MAX_RANGES), 1000), Wanted::Several(_)));
        assert_eq!(of(&many(MAX_RANGES + 1), 1000), Wanted::Whole);
    }
}
