//! Text to words.

use super::Mistake;
use crate::model::{Part, Template};

/// A word, and the byte that it begins at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub at: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Name(String),
    Text(String),
    Number(i64),
    /// By its long name.
    Placeholder(String),
    /// Operators and brackets.
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "!", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "?", "+",
    "-", "*", "/", "%",
];

/// The words of a text, with an [`Kind::End`] behind the last.
pub(super) fn lex(text: &str) -> Result<Vec<Word>, Mistake> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if text[at..].is_empty() {
            words.push(Word { at, kind: Kind::End });
            return Ok(words);
        }
        let (kind, length) = word(text, at)?;
        words.push(Word { at, kind });
        at += length;
    }
}

/// The word at this byte, and its length.
fn word(text: &str, at: usize) -> Result<(Kind, usize), Mistake> {
    let rest = &text[at..];
    let first = rest.chars().next().expect("invariant: something is left");
    if let Some(raw) = rest.strip_prefix(['r', 'R']).filter(|raw| raw.starts_with(['"', '\''])) {
        return raw_text(raw, at).map(|(text, length)| (Kind::Text(text), length + 1));
    }
    if matches!(first, '"' | '\'') {
        return quoted(rest, at).map(|(text, length)| (Kind::Text(text), length));
    }
    if first == '{'
        && let Some((name, length)) = placeholder(rest)
    {
        return Ok((Kind::Placeholder(name), length));
    }
    if first.is_ascii_digit() {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| {
            Mistake::new(at, format!("`{}` is no whole number that can be compared with", &rest[..length]))
        })?;
        return Ok((Kind::Number(number), length));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((Kind::Name(rest[..length].to_owned()), length));
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Kind::Sign(sign), sign.len())),
        None => Err(Mistake::new(at, format!("`{first}` means nothing here"))),
    }
}

/// A placeholder that is one to Caddyfiles in general; anything else in braces is a map.
fn placeholder(rest: &str) -> Option<(String, usize)> {
    let written = &rest[..=rest.find('}')?];
    match Template::parse(written).0.as_slice() {
        [Part::Placeholder(name)] => Some((name.clone(), written.len())),
        _ => None,
    }
}

fn unfinished(at: usize) -> Mistake {
    Mistake::new(at, "this text has no closing quote")
}

fn raw_text(rest: &str, at: usize) -> Result<(String, usize), Mistake> {
    let quote = &rest[..1];
    let end = rest[1..].find(quote).ok_or_else(|| unfinished(at))?;
    Ok((rest[1..=end].to_owned(), end + 2))
}

fn quoted(rest: &str, at: usize) -> Result<(String, usize), Mistake> {
    let mut chars = rest.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    let mut text = String::new();
    while let Some((index, c)) = chars.next() {
        match c {
            _ if Some(c) == quote => return Ok((text, index + 1)),
            '\\' => {
                let (_, escaped) = chars.next().ok_or_else(|| unfinished(at))?;
                text.push(unescaped(escaped).ok_or_else(|| bad_escape(at + index, escaped))?);
            }
            _ => text.push(c),
        }
    }
    Err(unfinished(at))
}

fn unescaped(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '\\' | '\'' | '"' | '`' | '?' => Some(c),
        _ => None,
    }
}

fn bad_escape(at: usize, c: char) -> Mistake {
    Mistake::new(at, format!("`\\{c}` is no escape; write `\\\\{c}`, or the whole text as r'…'"))
}
