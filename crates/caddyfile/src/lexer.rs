//! Text to lexemes. The same lexer serves the parser and the formatter: it keeps comments, the line breaks between
//! lexemes, and the range of each one in the text.
//!
//! Rules, as in Caddy's lexer.go: words end at white space; `"…"` knows `\"`, `` `…` `` knows no escapes; a quote
//! counts only at the start of a word; `#` starts a comment only there; a backslash at the end of a line continues it,
//! one before other white space is dropped; `\<` is `<`; `<<NAME` at the end of a line starts a heredoc.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// `"…"`, `` `…` `` or a heredoc.
    Quoted,
    Comment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lexeme {
    pub kind: Kind,
    /// Without quotes, escapes undone; of a comment: with its `#`.
    pub text: String,
    /// As it stands in the text.
    pub range: Range<usize>,
    /// Line breaks before it, without escaped ones.
    pub newlines: usize,
    /// A `\` at the end of the line before joins it to that line.
    pub continued: bool,
}

impl Lexeme {
    pub fn is_open_brace(&self) -> bool {
        self.kind == Kind::Word && self.text == "{"
    }

    pub fn is_close_brace(&self) -> bool {
        self.kind == Kind::Word && self.text == "}"
    }
}

/// Why a text cannot be cut into lexemes, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LexError {
    pub offset: usize,
    pub message: String,
}

pub(crate) fn lex(text: &str) -> Result<Vec<Lexeme>, LexError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut lexemes = Vec::new();
    while let Some(lexeme) = lexer.next()? {
        lexemes.push(lexeme);
    }
    Ok(lexemes)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<Lexeme>, LexError> {
        let (newlines, continued) = self.skip_blank();
        let start = self.at;
        let Some(first) = self.peek() else { return Ok(None) };
        let (kind, text) = match first {
            '#' => (Kind::Comment, self.comment()),
            '"' => (Kind::Quoted, self.double_quoted()?),
            '`' => (Kind::Quoted, self.backticked()?),
            _ => match self.heredoc_opener() {
                Some(marker) => (Kind::Quoted, self.heredoc(marker)?),
                None => (Kind::Word, self.word()),
            },
        };
        Ok(Some(Lexeme { kind, text, range: start..self.at, newlines, continued }))
    }

    /// Skips what separates lexemes; returns the number of line breaks, and whether an escaped one was the last.
    fn skip_blank(&mut self) -> (usize, bool) {
        let mut newlines = 0;
        let mut continued = false;
        while let Some(c) = self.peek() {
            if c == '\n' {
                newlines += 1;
                continued = false;
            } else if c == '\\' && self.backslash_is_blank() {
                if let Some(end) = self.blank_to_line_end(self.at + 1) {
                    continued = newlines == 0;
                    self.at = (end + 1).min(self.text.len());
                    continue;
                }
            } else if !is_blank(c) {
                break;
            }
            self.at += c.len_utf8();
        }
        (newlines, continued)
    }

    fn backslash_is_blank(&self) -> bool {
        self.text[self.at + 1..].chars().next().is_none_or(is_blank)
    }

    /// The end of the line (or of the text) if only white space is left on it from `from` on.
    fn blank_to_line_end(&self, from: usize) -> Option<usize> {
        let end = self.line_end(from);
        self.text[from..end].chars().all(is_blank).then_some(end)
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find('\n').map_or(self.text.len(), |length| from + length)
    }

    fn comment(&mut self) -> String {
        let comment = self.text[self.at..self.line_end(self.at)].trim_end();
        self.at += comment.len();
        comment.to_owned()
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            if is_blank(c) || (c == '\\' && self.backslash_is_blank()) {
                break;
            }
            self.at += c.len_utf8();
            match (c, self.peek()) {
                ('\\', Some(escaped)) => {
                    if escaped != '<' {
                        word.push('\\');
                    }
                    word.push(escaped);
                    self.at += escaped.len_utf8();
                }
                _ => word.push(c),
            }
        }
        word
    }

    fn double_quoted(&mut self) -> Result<String, LexError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match (c, self.peek()) {
                ('"', _) => return Ok(text),
                ('\\', Some(escaped)) => {
                    if escaped != '"' {
                        text.push('\\');
                    }
                    text.push(escaped);
                    self.at += escaped.len_utf8();
                }
                _ => text.push(c),
            }
        }
        Err(error(start, "this quote is never closed; add a closing `\"`"))
    }

    fn backticked(&mut self) -> Result<String, LexError> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let length =
            rest.find('`').ok_or_else(|| error(start, "this backtick is never closed; add a second one"))?;
        self.at = start + 1 + length + 1;
        Ok(rest[..length].to_owned())
    }

    /// The marker if a heredoc starts here: `<<MARKER` and nothing after it on the line.
    fn heredoc_opener(&self) -> Option<Range<usize>> {
        let rest = self.text[self.at..].strip_prefix("<<")?;
        let length = rest.find(is_blank).unwrap_or(rest.len());
        let marker = self.at + 2..self.at + 2 + length;
        self.blank_to_line_end(marker.end).map(|_| marker)
    }

    fn heredoc(&mut self, marker: Range<usize>) -> Result<String, LexError> {
        let start = self.at;
        let name = check_marker(&self.text[marker.clone()], start)?;
        let body = self.line_end(marker.end) + 1;
        let mut line_start = body;
        while line_start < self.text.len() {
            let line = &self.text[line_start..self.line_end(line_start)];
            if let Some(padding) = closes_heredoc(line, name) {
                self.at = line_start + padding.len() + name.len();
                return strip_padding(self.text, body..line_start, padding, name);
            }
            line_start += line.len() + 1;
        }
        Err(error(
            start,
            &format!("this heredoc is never closed; end it with a line that starts with `{name}`"),
        ))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }
}

/// A byte order mark is no part of a word either.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn check_marker(name: &str, start: usize) -> Result<&str, LexError> {
    if name.is_empty() {
        return Err(error(start, "a heredoc needs a name after `<<`, for example `<<EOF`"));
    }
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Ok(name);
    }
    let message = format!("the heredoc name `{name}` must consist of letters, digits, `-` and `_`");
    Err(error(start, &message))
}

/// The white space before the closing marker, if `line` has one. Further arguments may follow on that line.
fn closes_heredoc<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let trimmed = line.trim_start();
    let after = trimmed.strip_prefix(name)?;
    after.chars().next().is_none_or(is_blank).then(|| &line[..line.len() - trimmed.len()])
}

/// The lines in `range` without the closing marker's indentation, without `\r` and without the last line break.
fn strip_padding(text: &str, range: Range<usize>, padding: &str, name: &str) -> Result<String, LexError> {
    let mut offset = range.start;
    let mut lines = Vec::new();
    for line in text[range].split_inclusive('\n') {
        let content = line.trim_end_matches('\n').replace('\r', "");
        let stripped = match content.strip_prefix(padding) {
            Some(stripped) => stripped.to_owned(),
            None if content.is_empty() => content,
            None => {
                let message = format!("this line must be indented like the heredoc's closing `{name}`");
                return Err(error(offset, &message));
            }
        };
        lines.push(stripped);
        offset += line.len();
    }
    Ok(lines.join("\n"))
}

fn error(offset: usize, message: &str) -> LexError {
    LexError { offset, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        lex(text).unwrap().into_iter().map(|lexeme| lexeme.text).collect()
    }

    fn message(text: &str) -> String {
        lex(text).unwrap_err().message
    }

    #[test]
    fn words_quotes_and_escapes() {
        let cases: &[(&str, &[&str])] = &[
            ("a  b\tc\r\nd", &["a", "b", "c", "d"]),
            (r#""a b" c"d "x\"y\z" "" "#, &["a b", "c\"d", "x\"y\\z", ""]),
            (r#""a\\" b"#, &["a\\\\", "b"]),
            ("`a \" \\` b", &["a \" \\", "b"]),
            ("\"one\ntwo\" b", &["one\ntwo", "b"]),
            (r"C:\dir \<<EOF a\\ \{x\}", &["C:\\dir", "<<EOF", "a\\\\", "\\{x\\}"]),
            ("<<EOF is a word", &["<<EOF", "is", "a", "word"]),
            ("a # b\nc#d", &["a", "# b", "c#d"]),
            ("\u{feff}a", &["a"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(texts(text), *expected, "{text}");
        }
    }

    #[test]
    fn a_backslash_joins_lines() {
        let lexemes = lex("a \\\n\tb\nc \\\n\nd\\\ne \\").unwrap();
        let shape: Vec<_> = lexemes.iter().map(|l| (l.text.as_str(), l.newlines, l.continued)).collect();
        let expected = [("a", 0, false), ("b", 0, true), ("c", 1, false), ("d", 1, false), ("e", 0, true)];
        assert_eq!(shape, expected);
    }

    #[test]
    fn heredocs_lose_the_indentation_of_their_end() {
        assert_eq!(texts("a <<EOF\n  x\n\n    y\n  EOF 200\nb"), ["a", "x\n\n  y", "200", "b"]);
        assert_eq!(texts("<<EOF\r\nx EOF\r\nEOF"), ["x EOF"]);
        assert_eq!(texts("<<EOF\nEOF"), [""]);
        assert_eq!(texts("<<E\nEE\nE"), ["EE"]);
    }

    #[test]
    fn broken_texts_say_what_to_do() {
        assert_eq!(lex("a\n  \"b").unwrap_err().offset, 4);
        assert!(message("`a").contains("backtick"));
        assert!(message("<<\nx").contains("needs a name"));
        assert!(message("<<a.b\nx").contains("letters, digits"));
        assert!(message("<<EOF\nx").contains("never closed"));
        assert!(message("<<EOF").contains("never closed"));
        assert_eq!(lex("<<E\n x\nx\n E").unwrap_err().offset, 7);
    }
}
