//! Changes of headers.

use super::Template;
use serde::Serialize;

/// One operation on a header, as Caddy's `header` directive has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeaderOp {
    pub kind: HeaderOpKind,
    /// With placeholders, the name is that of the request.
    pub name: Template,
    pub value: Template,
    /// Applied when the response is on its way out, after the handlers; otherwise at once.
    pub deferred: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum HeaderOpKind {
    Set,
    /// `+Name`
    Add,
    /// `?Name`: set if it is not there.
    Default,
    /// `-Name`; a `*` at the end of the name deletes all that start with it.
    Delete,
    /// `Name search replace` with a regular expression; `value` is the replacement.
    Replace {
        /// What placeholders in it stand for is text to be found as it is.
        search: Template,
    },
}
