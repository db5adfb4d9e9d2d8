//! Responses that are templates.

use super::Template;
use serde::Serialize;

/// `templates`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Templates {
    /// Parts of `Content-Type`: one of them is in that of a template.
    pub types: Vec<String>,
    /// What actions stand between.
    pub between: (String, String),
    /// Where files are looked for; `None`: in the site's root.
    pub root: Option<Template>,
}
