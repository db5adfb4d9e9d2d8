//! Words of an nginx configuration (ngx_conf_read_token in nginx' src/core/ngx_conf_file.c).

use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

pub(super) struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    /// The line of the next character, from 1.
    line: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.chars().peekable(), line: 1 }
    }

    pub fn line(&self) -> usize {
        self.line
    }

    /// The next token with its line; `None` at the end of the file.
    ///
    /// # Errors
    /// A text in quotes that has no end.
    pub fn next(&mut self) -> Result<Option<(Token, usize)>, &'static str> {
        self.skip_space_and_comments();
        let line = self.line;
        let Some(&first) = self.rest.peek() else { return Ok(None) };
        let token = match first {
            ';' | '{' | '}' => {
                self.step();
                match first {
                    ';' => Token::End,
                    '{' => Token::Open,
                    _ => Token::Close,
                }
            }
            '"' | '\'' => {
                self.step();
                Token::Word(self.quoted(first)?)
            }
            _ => Token::Word(self.plain()),
        };
        Ok(Some((token, line)))
    }

    /// Jumps over a block whose text is of another language (Lua), behind its `{`.
    pub fn skip_foreign_block(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.step() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    fn skip_space_and_comments(&mut self) {
        while let Some(&c) = self.rest.peek() {
            if c == '#' {
                while self.rest.peek().is_some_and(|&c| c != '\n') {
                    self.step();
                }
            } else if c.is_whitespace() || c == '\u{feff}' {
                self.step();
            } else {
                return;
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, &'static str> {
        let mut word = String::new();
        loop {
            match self.step().ok_or("a text in quotes has no end")? {
                '\\' => self.escaped(&mut word),
                c if c == quote => return Ok(word),
                c => word.push(c),
            }
        }
    }

    fn plain(&mut self) -> String {
        let mut word = String::new();
        while let Some(&c) = self.rest.peek() {
            // `${name}` is one word.
            let is_end = c.is_whitespace() || matches!(c, ';' | '{');
            if is_end && !(c == '{' && word.ends_with('$')) {
                break;
            }
            self.step();
            if c == '\\' { self.escaped(&mut word) } else { word.push(c) }
        }
        word
    }

    /// A backslash before any other character stays, for the regular expression that the word may be.
    fn escaped(&mut self, word: &mut String) {
        match self.step() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }

    fn step(&mut self) -> Option<char> {
        let c = self.rest.next();
        self.line += usize::from(c == Some('\n'));
        c
    }
}
