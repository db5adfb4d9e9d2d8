//! Lines of logs as somebody wants them: `format transform`.

use serde::Serialize;

/// What a line is made of, from the fields that one of JSON has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogTemplate {
    /// As it is written.
    pub text: String,
    #[serde(skip)]
    pub parts: Vec<LogPart>,
    /// For what is not there, or empty. Default: `-`.
    pub placeholder: String,
    pub strings: LogStrings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPart {
    Text(String),
    /// The first of these fields that is there.
    Field(Vec<Vec<LogStep>>),
}

/// From an object or a list to what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogStep {
    Key(String),
    Index(usize),
}

/// How texts of clients are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LogStrings {
    /// As in JSON, with a backslash before each quote.
    #[default]
    Escaped,
    /// As they were, but for characters that would end a line or move a terminal's cursor (`unescape_strings`).
    Unescaped,
}
