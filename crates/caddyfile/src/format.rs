//! `fmt`: a Caddyfile in its canonical form. Only white space changes, never a word.
//!
//! Rules, as in Caddy's formatter.go: one tab per level; one space between words; `{` at the end of its line and `}`
//! on a line of its own; at most one empty line, none after `{` or before `}`, one after a top-level `}`; quoted
//! words, heredocs and comments as they are.

use crate::lexer::{self, Kind, Lexeme};
use crate::{Error, Source, Span};
use std::path::Path;
use std::sync::Arc;

/// Formats `text`; `name` is the file's name in messages. Fails when a quote or a heredoc is not closed.
///
/// The result is stable: formatting it again changes nothing.
pub fn format(name: &str, text: &str) -> Result<String, Error> {
    let lexemes = lexer::lex(text).map_err(|error| {
        let source = Arc::new(Source::from_text(name, text, Path::new("")));
        Error::new(&Span::new(&source, error.offset), error.message)
    })?;
    let mut writer = Writer { text, out: String::with_capacity(text.len()), level: 0, import_line: false };
    let mut previous = None;
    for (index, lexeme) in lexemes.iter().enumerate() {
        writer.write(previous, lexeme, lexemes.get(index + 1));
        previous = Some(lexeme);
    }
    if previous.is_some() {
        writer.out.push('\n');
    }
    Ok(writer.out)
}

struct Writer<'a> {
    text: &'a str,
    out: String,
    level: usize,
    /// The current line is a top-level `import`: a `{` on the next line begins a block of its own.
    import_line: bool,
}

/// What goes between two lexemes.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    Space,
    EscapedLine,
    Line,
    EmptyLine,
}

impl Writer<'_> {
    fn write(&mut self, previous: Option<&Lexeme>, lexeme: &Lexeme, next: Option<&Lexeme>) {
        if lexeme.is_close_brace() {
            self.level = self.level.saturating_sub(1);
        }
        let gap = previous.map(|previous| self.gap(previous, lexeme));
        match gap {
            None => {}
            Some(Gap::Space) => self.out.push(' '),
            Some(Gap::EscapedLine) => {
                self.out.push_str(" \\\n");
                self.indent(self.level + 1);
            }
            Some(Gap::Line) => {
                self.out.push('\n');
                self.indent(self.level);
            }
            Some(Gap::EmptyLine) => {
                self.out.push_str("\n\n");
                self.indent(self.level);
            }
        }
        if matches!(gap, None | Some(Gap::Line | Gap::EmptyLine)) {
            self.import_line = self.level == 0 && lexeme.kind == Kind::Word && lexeme.text == "import";
        }
        if looks_like_heredoc(lexeme, &self.text[lexeme.range.clone()], next) {
            self.out.push('\\');
        }
        self.out.push_str(&self.text[lexeme.range.clone()]);
        if lexeme.is_open_brace() {
            self.level += 1;
        }
    }

    fn gap(&self, previous: &Lexeme, lexeme: &Lexeme) -> Gap {
        let after_brace = previous.is_open_brace() || previous.is_close_brace();
        let after_comment = previous.kind == Kind::Comment;
        if lexeme.is_close_brace() {
            return Gap::Line;
        }
        if lexeme.kind == Kind::Comment && lexeme.newlines == 0 {
            return Gap::Space;
        }
        let joins = lexeme.is_open_brace() && !(self.import_line && lexeme.newlines > 0);
        if !after_brace && !after_comment {
            match (joins || lexeme.newlines == 0, lexeme.continued && !joins) {
                (true, true) => return Gap::EscapedLine,
                (true, false) => return Gap::Space,
                (false, _) => {}
            }
        }
        let apart = lexeme.newlines > 1 || (previous.is_close_brace() && self.level == 0);
        if apart && !previous.is_open_brace() { Gap::EmptyLine } else { Gap::Line }
    }

    fn indent(&mut self, level: usize) {
        self.out.extend(std::iter::repeat_n('\t', level));
    }
}

/// A plain word such as `<<EOF` that would begin a heredoc if it became the last on its line.
fn looks_like_heredoc(lexeme: &Lexeme, raw: &str, next: Option<&Lexeme>) -> bool {
    let stays_inside = next.is_some_and(|next| next.newlines == 0 && !next.is_close_brace());
    lexeme.kind == Kind::Word && raw.starts_with("<<") && !stays_inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(text: &str) -> String {
        format("Caddyfile", text).unwrap()
    }

    #[test]
    fn canonical_form() {
        let cases = [
            ("a   b\t c", "a b c\n"),
            ("\n\na {\n\n\n  b\n\n\n\nc\n\n}\nd {\n}\n", "a {\n\tb\n\n\tc\n}\n\nd {\n}\n"),
            ("a\n{\nb { c }\n}", "a {\n\tb {\n\t\tc\n\t}\n}\n"),
            ("# x  \na { # y\nb # z\n} # w\n", "# x\na { # y\n\tb # z\n} # w\n"),
            ("a # x\n{\n}", "a # x\n{\n}\n"),
            ("import x\n{\nb\n}", "import x\n{\n\tb\n}\n"),
            ("import x {\nb\n}", "import x {\n\tb\n}\n"),
            ("a <<E\n  x\n  E\n  b `c\n d`", "a <<E\n  x\n  E\nb `c\n d`\n"),
            ("a {\nb \\\n      c \\\nd\n}", "a {\n\tb \\\n\t\tc \\\n\t\td\n}\n"),
            ("a {\nb <<E }", "a {\n\tb \\<<E\n}\n"),
            ("\"a\"b{\nc", "\"a\" b{\nc\n"),
            ("{$A} {\n\t{$B:c}\n}", "{$A} {\n\t{$B:c}\n}\n"),
            ("}\n}", "}\n}\n"),
            ("  ", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(formatted(text), expected, "{text}");
            assert_eq!(formatted(expected), expected, "not stable: {expected}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_its_place() {
        let error = format("Caddyfile", "a {\n\tb `").unwrap_err();
        assert!(error.to_string().starts_with("Caddyfile:2:4: this backtick"), "{error}");
    }
}
