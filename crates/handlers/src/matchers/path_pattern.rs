//! Path patterns of the `path` matcher, of workers' `match`, with Caddy's rules.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::paths::glob::Glob;
use crate::templates::text::{Text, lossy};
use regent_config::Template;
use std::borrow::Cow;

/// One pattern. Not sensitive to case.
#[derive(Debug, Clone)]
pub(crate) enum PathPattern {
    Fixed(Pattern),
    /// Has placeholders, so it can be looked at only when there is a request.
    Computed(Text),
}

/// A pattern whose text is known, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    shape: Shape,
    subject: Subject,
}

#[derive(Debug, Clone)]
enum Shape {
    Any,
    Exact(Vec<u8>),
    /// `/prefix*`
    Prefix(Vec<u8>),
    /// `*suffix`
    Suffix(Vec<u8>),
    /// `*part*`
    Contains(Vec<u8>),
    /// `*` elsewhere: within a segment.
    Glob(Glob),
}

/// What a pattern is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Path,
    /// The path in lower case by Unicode's rules, for a pattern that is not ASCII.
    FoldedPath,
    /// The path as it is written in the URI, for a pattern with a `%` in it.
    EscapedPath,
}

impl PathPattern {
    pub(crate) fn compile(template: &Template) -> Result<Self, BuildError> {
        let text = Text::compile(template);
        match text.literal() {
            Some(literal) => {
                Pattern::parse(literal).map(Self::Fixed).ok_or_else(|| BuildError::Glob(literal.to_owned()))
            }
            None => Ok(Self::Computed(text)),
        }
    }

    pub(crate) fn compile_all(templates: &[Template]) -> Result<Vec<Self>, BuildError> {
        templates.iter().map(Self::compile).collect()
    }

    pub(crate) fn matches(&self, exchange: &Exchange) -> bool {
        match self {
            Self::Fixed(pattern) => pattern.matches(exchange),
            Self::Computed(text) => {
                Pattern::parse(&text.render_str(exchange)).is_some_and(|pattern| pattern.matches(exchange))
            }
        }
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let subject = if text.contains('%') {
            Subject::EscapedPath
        } else if text.is_ascii() {
            Subject::Path
        } else {
            Subject::FoldedPath
        };
        let mut text = text.to_lowercase();
        if !text.starts_with(['/', '*', '?', '[', '\\']) {
            // Every path begins with a slash here; in Caddy, a rewrite to `index.php` makes one that does not.
            text.insert(0, '/');
        }
        Some(Self { shape: Shape::parse(&text)?, subject })
    }

    fn matches(&self, exchange: &Exchange) -> bool {
        let path = match self.subject {
            Subject::Path => Cow::Borrowed(exchange.path()),
            Subject::EscapedPath => Cow::Borrowed(exchange.uri.path().as_bytes()),
            Subject::FoldedPath => Cow::Owned(lossy(exchange.path().to_vec()).to_lowercase().into_bytes()),
        };
        self.shape.matches(&path)
    }
}

impl Shape {
    fn parse(text: &str) -> Option<Self> {
        let special = text.contains(['?', '[', '\\']);
        let stars = text.matches('*').count();
        let bytes = |text: &str| text.as_bytes().to_vec();
        Some(match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(""), _) => Self::Any,
            _ if stars == 0 && !special => Self::Exact(bytes(text)),
            (Some(rest), None) if stars == 1 => Self::Suffix(bytes(rest)),
            (None, Some(rest)) if stars == 1 => Self::Prefix(bytes(rest)),
            (Some(rest), Some(_)) if stars == 2 => Self::Contains(bytes(&rest[..rest.len() - 1])),
            _ => Self::Glob(Glob::parse(text.as_bytes())?),
        })
    }

    fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => path.eq_ignore_ascii_case(text),
            Self::Prefix(text) => {
                path.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
            Self::Suffix(text) => {
                path.len() >= text.len() && path[path.len() - text.len()..].eq_ignore_ascii_case(text)
            }
            Self::Contains(text) => {
                text.is_empty() || path.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text))
            }
            Self::Glob(glob) => glob.matches(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use regent_config::Part;

    fn fits(pattern: &str, path: &str) -> bool {
        PathPattern::compile(&Template::text(pattern)).unwrap().matches(&get(path))
    }

    #[test]
    fn patterns_fit_as_in_caddy() {
        for (pattern, path, want) in [
            ("/exact", "/Exact", true),
            ("/exact", "/exact/", false),
            ("*", "/anything", true),
            ("/api/*", "/API/x", true),
            ("/api/*", "/api", false),
            ("/api*", "/api", true),
            ("*.php", "/a/B.PHP", true),
            ("*.php", "/a.php/x", false),
            ("*/wp-admin/*", "/x/wp-admin/y", true),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", false),
            ("/admin/*", "/x/../admin/y", true),
            ("/admin/*", "//admin//y", true),
            ("/admin/*", "/%61dmin/y", true),
            ("/admin/*", "/admin%2Fy", true),
            ("/a%2fb", "/a%2Fb", true),
            ("/a%2fb", "/a/b", false),
            ("/É*", "/%C3%A9t%C3%A9", true),
            ("index.php", "/index.php", true),
        ] {
            assert_eq!(fits(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn placeholders_are_filled_in() {
        let template = Template(vec![
            Part::Text("/".into()),
            Part::Placeholder("http.request.uri.query.p".into()),
            Part::Text("*".into()),
        ]);
        let pattern = PathPattern::compile(&template).unwrap();
        assert!(pattern.matches(&get("/abc/d?p=abc")));
        assert!(!pattern.matches(&get("/x?p=abc")));
    }
}
