//! `rewrite`, `uri`, `method` and `try_files`: what a request becomes for the directives behind them.

use super::{FileMatcher, Template};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Rewrite {
    /// `rewrite TO`: path and query; a TO without `?` keeps the query, one that starts with `?` keeps the path.
    To(Template),
    Method(Template),
    /// `uri strip_prefix`, `handle_path`.
    StripPrefix(Template),
    StripSuffix(Template),
    Replace {
        find: String,
        replace: Template,
    },
    /// `try_files`: rewrite to the first that exists, with its `policy` first_exist.
    TryFiles(FileMatcher),
}
