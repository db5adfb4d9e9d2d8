//! Which requests a handler answers.

use crate::abi;

/// Which requests a handler answers: a method and a path.
///
/// `/users/{id}/posts`: a parameter takes one segment of the path; `/files/{path...}`: the rest of it. A literal segment
/// goes before a parameter. HEAD, OPTIONS, 404 and 405 are answered by the host.
#[derive(Debug, Clone)]
pub struct Route {
    pub(crate) method: Option<String>,
    pub(crate) path: String,
    pub(crate) flags: u32,
}

impl Route {
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Self {
        Self { method: Some(method.into()), path: path.into(), flags: 0 }
    }

    /// Every method.
    pub fn any(path: impl Into<String>) -> Self {
        Self { method: None, path: path.into(), flags: 0 }
    }

    /// Promises that the handler has no lock, file, socket or sleep, and takes less than about 50 microseconds: it may run
    /// in the server itself, if the site's configuration says `inline`.
    #[must_use]
    pub fn never_blocks(mut self) -> Self {
        self.flags |= abi::ROUTE_INLINE;
        self
    }
}
