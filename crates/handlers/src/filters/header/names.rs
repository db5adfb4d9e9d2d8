//! Fields by their names, or by a part of them.

use http::HeaderName;

/// Which fields an operation is about.
#[derive(Clone)]
pub(super) enum Names {
    One(HeaderName),
    /// `*` at either end of the text stands for anything; in lower case.
    Like {
        start: String,
        end: String,
        contains: String,
    },
}

impl Names {
    pub(super) fn like(pattern: &str) -> Self {
        let pattern = pattern.to_ascii_lowercase();
        let (mut start, mut end, mut contains) = (String::new(), String::new(), String::new());
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(_), Some(_)) => contains = pattern.trim_matches('*').to_owned(),
            (Some(rest), None) => end = rest.to_owned(),
            (None, Some(rest)) => start = rest.to_owned(),
            (None, None) => start = pattern,
        }
        Self::Like { start, end, contains }
    }

    pub(super) fn include(&self, name: &HeaderName) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Like { start, end, contains } => {
                let name = name.as_str();
                name.starts_with(start) && name.ends_with(end) && name.contains(contains)
            }
        }
    }
}
