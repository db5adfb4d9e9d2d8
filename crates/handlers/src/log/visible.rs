//! Text of clients and scripts in logs, so that it looks like what it is.
//!
//! JSON escapes the control characters below U+0020 only. Others move a terminal's cursor too (U+009B begins an escape
//! sequence as ESC `[` does), are line ends for some programs that read logs, or turn the direction of what follows, so
//! that a line reads as another one.

use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Writes a value as one line of JSON, without its end, in which no character misleads a reader.
pub fn write_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    // Writing strings and numbers to a vector cannot fail.
    let _ = value.serialize(&mut Serializer::with_formatter(out, Visible));
}

/// Whether a character has an effect on its surroundings instead of a shape: DEL and the C1 control characters, marks,
/// embeddings, overrides and isolates of bidirectional text (Unicode UAX #9, §2), and separators of lines and paragraphs.
/// The control characters below U+0020 are not among them.
pub fn misleads(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Compact, with such characters escaped.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.bytes().all(|byte| byte < 0x7f) {
            return CompactFormatter.write_string_fragment(out, fragment);
        }
        for part in fragment.split_inclusive(misleads) {
            match part.chars().next_back().filter(|last| misleads(*last)) {
                Some(last) => {
                    write!(out, "{}\\u{:04x}", &part[..part.len() - last.len_utf8()], u32::from(last))?;
                }
                None => out.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_json(&text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn characters_that_mislead_are_escaped() {
        let text = "a\u{9b}2J\u{202e}b\u{2028}\u{85}\u{7f}\n\x1b\"ü漢";
        assert_eq!(written(text), r#""a\u009b2J\u202eb\u2028\u0085\u007f\n\u001b\"ü漢""#);
        assert_eq!(serde_json::from_str::<String>(&written(text)).unwrap(), text, "it is the same text");
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in ["", "plain", "été", "👩\u{200d}💻", "שלום"] {
            assert_eq!(written(text), serde_json::to_string(text).unwrap());
        }
    }
}
