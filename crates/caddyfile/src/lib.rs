//! The Caddyfile language: bytes to a tree of lines and blocks, and back (`fmt`). It knows no directive; what a line
//! means is the business of `regent-config`.
//!
//! Stages: [`Source`] (a file's text) → environment variables put in → tokens → imports put in → tree. Every token
//! keeps the place where it was written, through all of them, so that an error always shows the user's own line.
#![forbid(unsafe_code)]

mod error;
mod format;
mod glob;
mod import;
mod imports;
mod lexer;
mod parser;
mod source;
mod substitute;
mod tree;

pub use error::{Error, Errors};
pub use format::format;
pub use imports::Imports;
pub use parser::{Parsed, parse};
pub use source::{Source, Span};
pub use tree::{File, Line, NamedRoute, SiteBlock, Token};
