//! What is too long of a line for the log is cut, with a mark that says how much is missing.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// Values are not cut below so many bytes; fields are left out then.
const LEAST_VALUE: usize = 64;
/// The field that counts those which were left out.
const LEFT_OUT: &str = "fields_left_out";

/// At most so many bytes of a text, the mark among them.
pub fn text(text: &[u8], most: usize) -> Cow<'_, [u8]> {
    if text.len() <= most {
        return text.into();
    }
    let mark_of = |kept: usize| format!(" [{} more bytes]", text.len() - kept);
    let mut kept = most.saturating_sub(mark_of(0).len());
    // Not within a character.
    while kept > 0 && text[kept] & 0xC0 == 0x80 {
        kept -= 1;
    }
    [&text[..kept], mark_of(kept).as_bytes()].concat().into()
}

/// At most so many bytes of a JSON object: long values first lose their ends, and then there are fewer fields.
pub fn object(object: &[u8], most: usize) -> Cow<'_, [u8]> {
    if object.len() <= most {
        return object.into();
    }
    let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(object) else {
        return text(object, most);
    };
    let mut longest = most;
    let mut left_out = 0_usize;
    loop {
        fields.values_mut().for_each(|value| shorten(value, longest));
        if left_out > 0 {
            fields.insert(LEFT_OUT.to_owned(), left_out.into());
        }
        let written = serde_json::to_vec(&fields).unwrap_or_default();
        if written.len() <= most {
            return written.into();
        }
        if longest >= LEAST_VALUE {
            longest /= 2;
        } else {
            let names: Vec<_> = fields.keys().filter(|name| *name != LEFT_OUT).cloned().collect();
            if names.is_empty() {
                return Cow::Borrowed(b"");
            }
            let gone = &names[names.len() / 2..];
            gone.iter().for_each(|name| drop(fields.remove(name)));
            left_out += gone.len();
        }
    }
}

/// A value that is longer becomes a text with a mark, of its text or of its JSON.
fn shorten(value: &mut Value, longest: usize) {
    let whole = match value {
        Value::String(whole) if whole.len() > longest => std::mem::take(whole),
        Value::Array(_) | Value::Object(_) => {
            let json = value.to_string();
            if json.len() <= longest {
                return;
            }
            json
        }
        _ => return,
    };
    *value = String::from_utf8_lossy(&text(whole.as_bytes(), longest)).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_cut_had_no_mark() {
        assert_eq!(&*text(b"short", 5), b"short");
        let long = "é".repeat(1000);
        let cut = text(long.as_bytes(), 101);
        assert!(cut.len() <= 101);
        let cut = std::str::from_utf8(&cut).expect("no character is cut in two");
        let (beginning, mark) = cut.split_once(' ').expect("a mark");
        assert_eq!(mark, format!("[{} more bytes]", 2000 - beginning.len()));
    }

    #[test]
    fn a_context_that_was_too_long_vanished() {
        let long =
            serde_json::json!({"id": 7, "body": "x".repeat(20_000), "list": vec!["\u{1}"; 5000]}).to_string();
        let cut = object(long.as_bytes(), 8000);
        assert!(cut.len() <= 8000);
        let fields: Value = serde_json::from_slice(&cut).expect("it is still JSON");
        assert_eq!(fields["id"], 7);
        for name in ["body", "list"] {
            let value = fields[name].as_str().expect("a text");
            assert!(value.ends_with(" more bytes]"), "{value}");
        }
    }

    #[test]
    fn a_context_of_too_many_fields_says_how_many_are_missing() {
        let many: Map<_, _> = (0..5000).map(|i| (format!("field {i}"), Value::from(i))).collect();
        let long = serde_json::to_vec(&many).expect("it is JSON");
        let cut = object(&long, 2000);
        let fields: Map<String, Value> = serde_json::from_slice(&cut).expect("it is still JSON");
        assert!(cut.len() <= 2000 && fields.len() > 10);
        assert_eq!(fields[LEFT_OUT], 5000 - (fields.len() - 1));
    }

    #[test]
    fn names_may_be_too_long_too() {
        let long = serde_json::json!({"n".repeat(9000): 1, "m".repeat(9000): 2}).to_string();
        assert_eq!(&*object(long.as_bytes(), 2000), br#"{"fields_left_out":2}"#);
        assert!(object(long.as_bytes(), 10).is_empty());
        assert!(object(b"[not an object]", 10).ends_with(b" more bytes]"));
    }
}
