//! A request's body as JSON.

use crate::abi::{self, RawJson, Str};
use bumpalo::Bump;
use serde_json::Value;

/// Bytes of a body that is parsed.
pub const MOST: usize = 8 * 1024 * 1024;

/// What the body is: parsed once, at the first question.
pub enum Document {
    Value(Value),
    /// Why it is none, in words for the client.
    Invalid(String),
}

impl Document {
    pub fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(value) => Self::Value(value),
            Err(error) if body.is_empty() => {
                Self::Invalid(format!("the body is empty instead of JSON ({error})"))
            }
            Err(error) => Self::Invalid(format!("the body is not valid JSON: {error}")),
        }
    }

    pub fn too_large() -> Self {
        Self::Invalid(format!("the body is larger than {} MiB", MOST / 1024 / 1024))
    }
}

/// The C struct of a value, whose text is the value's own, or of the arena.
pub fn describe(value: &Value, arena: &Bump) -> RawJson {
    let nothing = RawJson {
        size: 0,
        kind: abi::JSON_NULL,
        boolean: 0,
        integer: 0,
        number: 0.0,
        text: Str::NONE,
        count: 0,
    };
    match value {
        Value::Null => nothing,
        Value::Bool(boolean) => RawJson { kind: abi::JSON_BOOLEAN, boolean: u32::from(*boolean), ..nothing },
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            match number.as_i64() {
                Some(integer) => RawJson { kind: abi::JSON_INTEGER, integer, number: float, ..nothing },
                None => RawJson { kind: abi::JSON_NUMBER, number: float, ..nothing },
            }
        }
        Value::String(text) => RawJson { kind: abi::JSON_STRING, text: Str::new(text.as_bytes()), ..nothing },
        Value::Array(elements) => {
            let (text, count) = (written(value, arena), elements.len());
            RawJson { kind: abi::JSON_ARRAY, text, count, ..nothing }
        }
        Value::Object(members) => {
            let (text, count) = (written(value, arena), members.len());
            RawJson { kind: abi::JSON_OBJECT, text, count, ..nothing }
        }
    }
}

fn written(value: &Value, arena: &Bump) -> Str {
    Str::new(arena.alloc_str(&value.to_string()).as_bytes())
}

/// Whether the text is a JSON pointer at all (RFC 6901 §3).
pub fn is_pointer(text: &str) -> bool {
    text.is_empty() || text.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_at(document: &str, pointer: &str) -> (u32, u32, i64, f64, usize, String) {
        let Document::Value(value) = Document::parse(document.as_bytes()) else { panic!("{document}") };
        let arena = Bump::new();
        let raw = describe(value.pointer(pointer).expect(pointer), &arena);
        // SAFETY: the texts are the value's and the arena's, which live.
        (raw.kind, raw.boolean, raw.integer, raw.number, raw.count, unsafe { raw.text.text() })
    }

    #[test]
    fn every_kind_of_value_is_described() {
        let document = r#"{"a/b": [1, -2.5, 18446744073709551615, true, null, "ä\n"], "c": {"d": 1}}"#;
        let none = String::new;
        assert_eq!(describe_at(document, "/a~1b/0"), (abi::JSON_INTEGER, 0, 1, 1.0, 0, none()));
        assert_eq!(describe_at(document, "/a~1b/1"), (abi::JSON_NUMBER, 0, 0, -2.5, 0, none()));
        assert_eq!(
            describe_at(document, "/a~1b/2"),
            (abi::JSON_NUMBER, 0, 0, 18446744073709551615.0, 0, none())
        );
        assert_eq!(describe_at(document, "/a~1b/3"), (abi::JSON_BOOLEAN, 1, 0, 0.0, 0, none()));
        assert_eq!(describe_at(document, "/a~1b/4"), (abi::JSON_NULL, 0, 0, 0.0, 0, none()));
        assert_eq!(describe_at(document, "/a~1b/5"), (abi::JSON_STRING, 0, 0, 0.0, 0, "ä\n".to_owned()));
        assert_eq!(describe_at(document, "/c"), (abi::JSON_OBJECT, 0, 0, 0.0, 1, r#"{"d":1}"#.to_owned()));
        assert_eq!(describe_at("[1, []]", ""), (abi::JSON_ARRAY, 0, 0, 0.0, 2, "[1,[]]".to_owned()));
    }

    #[test]
    fn what_is_no_json_says_why() {
        let reason = |body: &str| match Document::parse(body.as_bytes()) {
            Document::Invalid(reason) => reason,
            Document::Value(value) => panic!("{value}"),
        };
        assert!(reason("{\"a\": }").contains("line 1 column 7"), "{}", reason("{\"a\": }"));
        assert!(reason("").contains("empty"));
        assert!(reason(&"[".repeat(100_000)).contains("recursion limit"));
    }
}
