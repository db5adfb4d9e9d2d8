//! What is wrong in a Caddyfile, with the place.

use crate::Span;
use std::fmt;

/// One mistake. Displayed as `Caddyfile:3:5: message`, the source line and a caret under the column.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Error {
    pub message: String,
    /// `None` when there is no text to point at, as with a file that cannot be read.
    pub span: Option<Span>,
    /// The message may repeat what a file has that a placeholder names: whoever may not read that file must not read the message.
    pub may_quote_files: bool,
}

impl Error {
    pub fn new(span: &Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span: Some(span.clone()), may_quote_files: false }
    }

    /// An error that no place in a text is to blame for.
    pub fn without_span(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None, may_quote_files: false }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(span) = &self.span else { return f.write_str(&self.message) };
        write!(f, "{span}: {}\n{}", self.message, span.excerpt())?;
        span.imports().try_for_each(|import| write!(f, "\n(imported at {import})"))
    }
}

/// All mistakes of a file, in the order in which they were found; never empty.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Errors(pub Vec<Error>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}
