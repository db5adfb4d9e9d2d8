//! Percent-encoding and the normal form of paths, beside implementations that are too simple to be wrong.

use regent_handlers::fuzzing::{
    clean, decode, decode_query, encode_path, encode_query_value, encode_unsafe, normalize,
};

pub fn run(data: &[u8]) {
    assert_eq!(decode(data), naive_decode(data));
    assert_eq!(decode(&encode_path(data)).as_deref(), Some(data));
    assert_eq!(decode(&encode_query_value(data)).as_deref(), Some(data));
    let safe = encode_unsafe(data);
    assert_eq!(encode_unsafe(&safe), safe, "what is a part of a URI already is left as it is");
    assert!(safe.iter().all(u8::is_ascii_graphic));
    assert_clean(&clean(data));
    if let Ok(text) = std::str::from_utf8(data) {
        decode_query(text);
        assert_eq!(normalize(text), naive_normalize(text));
    }
}

fn assert_clean(path: &[u8]) {
    assert_eq!(path.first(), Some(&b'/'));
    let segments: Vec<_> = path[1..].split(|byte| *byte == b'/').collect();
    let (last, others) = segments.split_last().expect("`split` gives one at least");
    assert!(others.iter().all(|segment| !matches!(*segment, b"" | b"." | b"..")), "{path:?}");
    assert!(!matches!(*last, b"." | b".."), "{path:?}");
    assert_eq!(clean(path), path, "what is clean stays as it is");
}

fn naive_normalize(raw: &str) -> Option<Vec<u8>> {
    let decoded = naive_decode(raw.as_bytes())?;
    (raw.starts_with('/') && !decoded.contains(&0)).then(|| naive_clean(&decoded))
}

/// RFC 3986 §5.2.4, with a list of the segments; and without empty ones.
fn naive_clean(path: &[u8]) -> Vec<u8> {
    let segments: Vec<_> = path.split(|byte| *byte == b'/').collect();
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in &segments {
        match *segment {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            name => kept.push(name),
        }
    }
    if matches!(segments.last(), Some(&b"" | &b"." | &b"..") | None) {
        kept.push(b"");
    }
    let mut out = Vec::new();
    kept.iter().for_each(|segment| out.extend([b"/", *segment].concat()));
    out
}

fn naive_decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut parts = raw.split(|byte| *byte == b'%');
    let mut out = parts.next()?.to_vec();
    for part in parts {
        let digits = std::str::from_utf8(part.get(..2)?).ok()?;
        // `from_str_radix` would take a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(&part[2..]);
    }
    Some(out)
}
