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
        find: Template,
        replace: Template,
        /// How often, in the path and in the query; 0: wherever it is.
        limit: u32,
    },
    /// In the path: a regular expression, and a text in which `$1` is a group.
    PathRegexp {
        find: String,
        replace: Template,
    },
    Query(Vec<QueryChange>),
    /// `try_files`: rewrite to the first that exists, with its `policy` first_exist.
    TryFiles(FileMatcher),
}

/// A change of the parameters in the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum QueryChange {
    Rename {
        from: Template,
        to: Template,
    },
    Set {
        key: Template,
        value: Template,
    },
    Add {
        key: Template,
        value: Template,
    },
    /// In the values of a parameter, or of all (`*`): a regular expression, and a text in which `$1` is a group.
    Replace {
        key: Template,
        find: String,
        replace: Template,
    },
    Delete {
        key: Template,
    },
}
