//! `Range` fields: what is sent lies within the file, is never more than the file, and is what was asked for.
//!
//! The first eight bytes are the size of the file, the rest is the field.

use crate::input::Input;
use http::HeaderValue;
use regent_handlers::fuzzing::{Ranges, ranges};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let word = input.word();
    // Small files, most of the time.
    let size = if word & 7 == 0 { word >> 3 } else { (word >> 3) % 1000 };
    let Ok(field) = HeaderValue::from_bytes(input.rest()) else { return };
    let asked = ranges(&field, size);
    if let Ranges::Parts(parts) = &asked {
        assert_within(parts, size);
    }
    if let Some(expected) = field.to_str().ok().and_then(|text| strict(text, size)) {
        assert_eq!(asked, expected, "{field:?} of {size}");
    }
}

fn assert_within(parts: &[(u64, u64)], size: u64) {
    assert!((1..=32).contains(&parts.len()));
    let mut total = 0_u64;
    for (start, length) in parts {
        assert!(*length > 0 && start.checked_add(*length).is_some_and(|end| end <= size));
        total = total.checked_add(*length).expect("no more than the file, several times");
    }
    assert!(total <= size, "more than the file would be sent");
}

/// RFC 9110 §14.1.2 for one range in the strictest spelling; `None` for anything else.
fn strict(text: &str, size: u64) -> Option<Ranges> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| if text.bytes().all(|b| b.is_ascii_digit()) { text.parse::<u64>().ok() } else { None };
    if size == 0 {
        return None;
    }
    let (start, end) = match (first, last) {
        ("", "") => return None,
        ("", suffix) => (size - number(suffix)?.min(size), size),
        (first, "") => (number(first)?, size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, last.saturating_add(1).min(size))
        }
    };
    Some(if start < size { Ranges::Parts(vec![(start, end - start)]) } else { Ranges::Unsatisfiable })
}
