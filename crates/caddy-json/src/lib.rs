//! Caddy's JSON configuration, as the tree that a Caddyfile is: another spelling of the same.
//!
//! [`read`] makes the lines of a Caddyfile of a document, so that checking, compiling and everything else of
//! `regent-config` is one for both. Each word keeps its place in the JSON. What the document says and the lines of a
//! Caddyfile cannot say has lines whose names no Caddyfile uses: `json route`, `json errors`, `error status` among conditions,
//! and `json at once` in `header`.
#![forbid(unsafe_code)]

mod apps;
mod document;
mod handlers;
mod logs;
mod matchers;
mod own;
mod reader;
mod routes;
mod servers;
mod tls;

pub use reader::Warning;

use document::Node;
use reader::Reader;
use regent_caddyfile::{Error, Errors, File, Source, Span};
use std::sync::Arc;

/// What [`read`] found.
#[derive(Debug)]
pub struct Parsed {
    pub file: File,
    /// Mistakes around which the tree could still be built, so that a caller can look for further ones in it.
    pub errors: Vec<Error>,
    pub warnings: Vec<Warning>,
    pub source: Arc<Source>,
    root: Node,
}

impl Parsed {
    /// The way from the document's root to what stands there, as `apps.http.servers.srv0.listen[0]`.
    pub fn place(&self, span: &Span) -> String {
        self.root.at(span.offset()).place.to_string()
    }
}

/// Reads a document. Fails when it is no JSON, has a key twice, or is nested too deep; other mistakes are in
/// [`Parsed::errors`].
pub fn read(source: Source) -> Result<Parsed, Errors> {
    let source = Arc::new(source);
    let root = document::parse(&source)?;
    let mut reader = Reader::default();
    let file = apps::file(&mut reader, &root);
    Ok(Parsed { file, errors: reader.errors, warnings: reader.warnings, source, root })
}
