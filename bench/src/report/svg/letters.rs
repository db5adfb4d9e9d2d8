//! How wide a text is when the reader's font is not known: rather too wide than too narrow.

use crate::report::wrap::wrap;

/// Pixels of a text at a font size in pixels. The classes are those of DejaVu Sans, which is wider than the fonts of
/// most systems.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(ems).sum::<f64>() * size
}

/// Lines of at most `widest` pixels.
pub fn lines(text: &str, size: f64, widest: f64) -> Vec<String> {
    wrap(text, widest, |text| width(text, size))
}

fn ems(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | 'I' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.44,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 1.0,
        '0'..='9' | 'a'..='z' => 0.64,
        c if c.is_ascii() => 0.8,
        // Latin with accents, Greek and Cyrillic, punctuation.
        c if (c as u32) < 0x2100 => 0.8,
        _ => 1.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_follow_the_letters() {
        assert!(width("mmm", 13.0) > width("iii", 13.0));
        assert_eq!(width("", 13.0), 0.0);
        assert!((width("10,000", 10.0) - 35.4).abs() < 1e-9);
    }
}
