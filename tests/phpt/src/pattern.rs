//! EXPECTF and EXPECTREGEX as regular expressions over bytes, as run-tests.php has them (expectf_to_regex()).

use anyhow::{Context, Result};
use regex::bytes::{Regex, RegexBuilder};

/// What a compiled pattern may take; some tests expect several hundred lines.
const MEMORY: usize = 256 << 20;

/// The pattern of an EXPECTF section.
///
/// # Errors
/// When a part between two `%r` uses what the `regex` crate does not have, such as a look-ahead.
pub fn format(wanted: &[u8]) -> Result<Regex> {
    let mut pattern = String::new();
    let mut rest = wanted;
    while let Some((text, expression, behind)) = next_expression(rest) {
        push_text(&mut pattern, text);
        pattern.push('(');
        push_expression(&mut pattern, expression);
        pattern.push(')');
        rest = behind;
    }
    push_text(&mut pattern, rest);
    compile(&pattern)
}

/// The pattern of an EXPECTREGEX section.
///
/// # Errors
/// As for [`format`].
pub fn expression(wanted: &[u8]) -> Result<Regex> {
    let mut pattern = String::new();
    push_expression(&mut pattern, wanted);
    compile(&pattern)
}

fn compile(pattern: &str) -> Result<Regex> {
    RegexBuilder::new(&format!("^{pattern}$"))
        .unicode(false)
        .octal(true)
        .dot_matches_new_line(true)
        .size_limit(MEMORY)
        .dfa_size_limit(MEMORY)
        .build()
        .context("the expectation is no pattern that this runner understands")
}

/// Splits at the first `%r…%r`: text, expression, rest.
fn next_expression(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let start = find(text, b"%r")?;
    let length = find(&text[start + 2..], b"%r")?;
    Some((&text[..start], &text[start + 2..start + 2 + length], &text[start + length + 4..]))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn push_text(pattern: &mut String, text: &[u8]) {
    push(pattern, text, |pattern, byte| {
        // Not all punctuation: `\<` is the beginning of a word.
        if br"\.+*?()|[]{}^$#&-~".contains(&byte) {
            pattern.push('\\');
        }
        pattern.push(char::from(byte));
    });
}

/// PCRE takes a brace literally where no repetition count follows, such as in `array(2) {`.
fn push_expression(pattern: &mut String, text: &[u8]) {
    let mut rest = text;
    while let Some(brace) = rest.iter().position(|byte| *byte == b'{') {
        push(pattern, &rest[..brace], |pattern, byte| pattern.push(char::from(byte)));
        rest = &rest[brace + 1..];
        pattern.push_str(if begins_with_count(rest) { "{" } else { "\\{" });
    }
    push(pattern, rest, |pattern, byte| pattern.push(char::from(byte)));
}

fn begins_with_count(text: &[u8]) -> bool {
    let length = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b',');
    length.is_some_and(|length| length > 0 && text[length] == b'}')
}

/// Appends placeholders as what they stand for, and other bytes as `push_ascii` does.
fn push(pattern: &mut String, text: &[u8], push_ascii: impl Fn(&mut String, u8)) {
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        if let (b'%', Some(meaning)) = (byte, behind.first().and_then(|letter| placeholder(*letter))) {
            pattern.push_str(meaning);
            rest = &behind[1..];
        } else if byte.is_ascii() && *byte != 0 {
            push_ascii(pattern, *byte);
        } else {
            pattern.push_str(&format!("\\x{byte:02x}"));
        }
    }
}

fn placeholder(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'e' => "/",
        b's' => r"[^\r\n]+",
        b'S' => r"[^\r\n]*",
        b'a' => ".+",
        b'A' => ".*",
        b'w' => r"\s*",
        b'i' => r"[+-]?\d+",
        b'd' => r"\d+",
        b'x' => "[0-9a-fA-F]+",
        b'f' => r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[Ee][+-]?\d+)?",
        b'c' => ".",
        b'0' => r"\x00",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, output: &[u8]) -> bool {
        format(pattern.as_bytes()).expect("it is a pattern").is_match(output)
    }

    #[test]
    fn placeholders_stand_for_what_run_tests_says() {
        assert!(fits("%s in %s on line %d", b"Warning in /a/b.php on line 12"));
        assert!(!fits("%s in %s", b"two\nlines in x"));
        assert!(fits("a%Ab", b"a\n\nb") && fits("a%Ab", b"ab") && !fits("a%ab", b"ab"));
        assert!(fits("%f|%f|%f", b"-1.5E+3|.5|7") && !fits("%f", b"."));
        assert!(fits("%c%0%x%w%i", b"z\0fF \n-3"));
    }

    #[test]
    fn text_is_taken_literally() {
        assert!(fits("<f(1)> + [a-c]*? 100% \\d", b"<f(1)> + [a-c]*? 100% \\d"));
        assert!(!fits("a.c", b"abc"));
        let bytes = format(b"\xff\x00\xc3\xa4%s").expect("it is a pattern");
        assert!(bytes.is_match(b"\xff\x00\xc3\xa4\xfe") && !bytes.is_match(b"\xfe\x00\xc3\xa4\xfe"));
    }

    #[test]
    fn expressions_stand_between_two_marks() {
        assert!(fits("a%r(b|c)+%rd.", b"abcbd."));
        assert!(fits("a%r[0-%x", b"a%r[0-f"), "one mark is text");
        let braces = expression(b"array\\(1\\) {\\0[a-z]{2,}}").expect("it is a pattern");
        assert!(braces.is_match(b"array(1) {\0abc}") && !braces.is_match(b"array(1) {\0a}"));
        assert!(expression(b"int\\(\\d+\\)").expect("it is a pattern").is_match(b"int(12)"));
    }
}
