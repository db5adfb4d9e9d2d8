//! Configurations of other servers, as a Caddyfile.
//!
//! Rules by address and passwords close what they protect where a Caddyfile has no word for them, and no script is run that was not
//! run before. What has no word otherwise stands as a comment where it would have been.
#![forbid(unsafe_code)]

mod nginx;
mod writer;

pub use nginx::import as nginx;

/// A Caddyfile, and what of the file that it was made of it does not say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub caddyfile: String,
    pub left_out: Vec<LeftOut>,
}

/// A line that has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// `FILE:LINE`.
    pub place: String,
    /// The line.
    pub text: String,
    pub why: String,
}

/// A file that cannot be read, or is not of this language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// `FILE:LINE`, or the file alone.
    pub place: String,
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Error {}
