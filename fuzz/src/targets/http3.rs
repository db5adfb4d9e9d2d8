//! Bytes of a client on streams of HTTP/3, above QUIC: no panic, the same however the bytes are cut, the message that a
//! reader of the whole stream finds, heads and trailers within their bounds, and fields that another front would take too.
//!
//! The first byte says where the bytes are cut, and the second what they are: a request's stream, a control stream,
//! instructions, or a field section.

use bytes::Bytes;
use http::HeaderMap;
use regent_http::h3::fuzzing::{
    End, Read, count_instructions, decode, encode, read_control, read_message, request, trailers,
};

/// Bytes that a head may have, compressed and as its fields are counted.
const MOST: usize = 1024;

/// RFC 9114 §8.1.
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;

pub fn run(data: &[u8]) {
    let [cut, kind, bytes @ ..] = data else { return };
    let size = usize::from(cut % 64) + 1;
    match kind % 4 {
        0 => message(bytes, size),
        1 => assert_eq!(read_control(bytes, size), read_control(bytes, bytes.len())),
        2 => assert_eq!(count_instructions(bytes, size), count_instructions(bytes, bytes.len())),
        _ => section(bytes),
    }
}

fn message(bytes: &[u8], size: usize) {
    let read = read_message(bytes, size, MOST);
    assert_eq!(read, read_message(bytes, bytes.len(), MOST), "it depends on how the bytes came");
    assert_eq!(read, naive(bytes), "another message than in the bytes");
    for section in [&read.head, &read.trailers].into_iter().flatten() {
        assert!(section.len() <= MOST);
        self::section(section);
    }
}

fn section(bytes: &[u8]) {
    if let Ok(fields) = decode(bytes, MOST) {
        let count = |(name, value): &(Bytes, Bytes)| name.len() + value.len() + 32;
        assert!(fields.iter().map(count).sum::<usize>() <= MOST, "more than may be");
        assert_eq!(decode(&encode(&fields), MOST), Ok(fields), "not what was encoded");
    }
    [request(bytes, MOST), trailers(bytes, MOST)].iter().flatten().for_each(assert_fields);
}

/// RFC 9114 §4.2.
fn assert_fields(fields: &HeaderMap) {
    for (name, value) in fields {
        let of_connection = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
        assert!(!of_connection.contains(&name.as_str()), "{name}");
        assert!(name != "te" || value == "trailers");
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{name}: {value:?}");
    }
}

/// Reads a whole stream, frame by frame.
fn naive(mut bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let end = |mut read: Read, end| {
        read.end = Some(end);
        read
    };
    loop {
        if bytes.is_empty() {
            let complete = if read.head.is_some() { End::Complete } else { End::Incomplete };
            return end(read, complete);
        }
        let (Some(kind), Some(length)) = (number(&mut bytes), number(&mut bytes)) else {
            return end(read, End::Protocol(FRAME_ERROR));
        };
        let is_unexpected = match kind {
            0x00 => read.head.is_none() || read.trailers.is_some(),
            0x01 => read.trailers.is_some(),
            // Those of the control stream and of pushes, and those that only HTTP/2 has.
            0x02..=0x09 | 0x0d => true,
            _ => false,
        };
        if is_unexpected {
            return end(read, End::Protocol(FRAME_UNEXPECTED));
        }
        if kind == 0x01 && length > MOST as u64 {
            return end(read, End::TooLarge);
        }
        let there = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
        let is_whole = there as u64 == length;
        let (content, rest) = bytes.split_at(there);
        bytes = rest;
        match kind {
            0x00 => read.body.extend_from_slice(content),
            0x01 if !is_whole => {}
            0x01 if read.head.is_none() => read.head = Some(Bytes::copy_from_slice(content)),
            0x01 => read.trailers = Some(Bytes::copy_from_slice(content)),
            _ => {}
        }
        if !is_whole {
            return end(read, End::Protocol(FRAME_ERROR));
        }
    }
}

/// RFC 9000 §16. What is left of one that is cut is taken too.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let (all, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let all = all.iter().enumerate().map(|(index, byte)| u64::from(if index == 0 { byte & 0x3f } else { *byte }));
    Some(all.fold(0, |number, byte| number << 8 | byte))
}
