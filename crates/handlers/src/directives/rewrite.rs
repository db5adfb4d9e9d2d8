//! Changes of a request's URI and method.

use crate::context::exchange::Exchange;
use crate::directives::query::{self, QueryChanges};
use crate::error::BuildError;
use crate::matchers::try_files::TryFiles;
use crate::paths::url_path::BadRequest;
use crate::templates::text::{Escape, Text};
use http::{Method, StatusCode};
use regent_config as config;
use regex::bytes::Regex;
use std::borrow::Cow;

/// A compiled rewrite.
pub(crate) enum Rewrite {
    To(Target),
    Method(Text),
    StripPrefix(Text),
    StripSuffix(Text),
    Replace { find: Text, replace: Text, limit: usize },
    PathRegexp { find: Regex, replace: Text },
    Query(QueryChanges),
    TryFiles(TryFiles),
}

/// Path and query; what is `None` stays as it was.
pub(crate) struct Target {
    path: Option<Text>,
    query: Option<Text>,
}

impl Rewrite {
    pub(crate) fn compile(rewrite: &config::Rewrite) -> Result<Self, BuildError> {
        Ok(match rewrite {
            config::Rewrite::To(to) => Self::To(Target::compile(to)),
            config::Rewrite::Method(method) => Self::Method(Text::compile(method)),
            config::Rewrite::StripPrefix(prefix) => Self::StripPrefix(Text::compile(prefix)),
            config::Rewrite::StripSuffix(suffix) => Self::StripSuffix(Text::compile(suffix)),
            config::Rewrite::Replace { find, replace, limit } => Self::Replace {
                find: Text::compile(find),
                replace: Text::compile(replace),
                limit: if *limit == 0 { usize::MAX } else { *limit as usize },
            },
            config::Rewrite::PathRegexp { find, replace } => {
                Self::PathRegexp { find: query::regex(find)?, replace: Text::compile(replace) }
            }
            config::Rewrite::Query(changes) => Self::Query(QueryChanges::compile(changes)?),
            config::Rewrite::TryFiles(matcher) => Self::TryFiles(TryFiles::compile(matcher)?),
        })
    }

    /// Changes the request; the error is the status to answer with.
    pub(crate) fn apply(&self, exchange: &mut Exchange) -> Result<(), StatusCode> {
        match self {
            Self::To(target) => target.apply(exchange),
            Self::Method(text) => {
                let name = text.render_str(exchange).to_ascii_uppercase();
                exchange.method = name.parse::<Method>().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
                Ok(())
            }
            Self::StripPrefix(prefix) => {
                let mut prefix = prefix.render(exchange).into_owned();
                // As in Caddy, `api` is `/api`.
                if !prefix.starts_with(b"/") {
                    prefix.insert(0, b'/');
                }
                let rest = strip_prefix(exchange.path(), &prefix).map(<[u8]>::to_vec);
                rest.map_or(Ok(()), |rest| exchange.rewrite_path(&rest))
            }
            Self::StripSuffix(suffix) => {
                let suffix = suffix.render(exchange);
                let rest = strip_suffix(exchange.path(), &suffix).map(<[u8]>::to_vec);
                rest.map_or(Ok(()), |rest| exchange.rewrite_path(&rest))
            }
            Self::Replace { find, replace, limit } => replace_text(exchange, find, replace, *limit),
            Self::PathRegexp { find, replace } => {
                let replace = replace.render(exchange);
                match find.replace_all(exchange.path(), &*replace) {
                    Cow::Borrowed(_) => Ok(()),
                    Cow::Owned(path) => exchange.rewrite_path(&path),
                }
            }
            Self::Query(changes) => changes.apply(exchange),
            Self::TryFiles(list) => return try_files(exchange, list),
        }
        .map_err(bad_request)
    }
}

impl Target {
    fn compile(to: &config::Template) -> Self {
        let (path, query) = Text::compile(to).split_query();
        Self { path: (path.literal() != Some("")).then_some(path), query }
    }

    fn apply(&self, exchange: &mut Exchange) -> Result<(), BadRequest> {
        let mut path = match &self.path {
            Some(path) => path.render_escaped(exchange, Escape::Path),
            None => exchange.uri.path().as_bytes().to_vec(),
        };
        // `{uri}` within the path brings a query along; one that is written out goes before it, as in Caddy.
        let brought = path.iter().position(|byte| *byte == b'?').map(|at| path.split_off(at).split_off(1));
        let query = match (&self.query, brought) {
            (Some(query), _) => Some(query_text(query, exchange)).filter(|query| !query.is_empty()),
            (None, Some(brought)) => Some(brought),
            (None, None) => exchange.uri.query().map(|query| query.as_bytes().to_vec()),
        };
        exchange.rewrite(&path, query.as_deref())
    }
}

/// The query with its values filled in, without pairs that became empty.
fn query_text(query: &Text, exchange: &Exchange) -> Vec<u8> {
    let text = query.render_escaped(exchange, Escape::Query);
    let pairs: Vec<_> = text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).collect();
    pairs.join(&b'&')
}

fn try_files(exchange: &mut Exchange, list: &TryFiles) -> Result<(), StatusCode> {
    let Some(found) = list.select(exchange)? else { return Ok(()) };
    exchange.set_file_match(found.file.clone());
    let relative = [found.file.relative.as_slice(), &found.file.remainder].concat();
    // A remainder belongs to the path; Caddy keeps it aside for its FastCGI transport only.
    let query = found.query.map(|query| query_text(query, exchange));
    exchange.rewrite_path(&relative).map_err(bad_request)?;
    if let Some(query) = query {
        let path = exchange.uri.path().as_bytes().to_vec();
        exchange
            .rewrite(&path, Some(&query).filter(|query| !query.is_empty()).map(Vec::as_slice))
            .map_err(bad_request)?;
    }
    Ok(())
}

fn replace_text(
    exchange: &mut Exchange,
    find: &Text,
    replace: &Text,
    limit: usize,
) -> Result<(), BadRequest> {
    let (find, replace) = (find.render(exchange), replace.render(exchange));
    let path = replace_bytes(exchange.path(), &find, &replace, limit);
    let query = exchange.uri.query().map(|query| replace_bytes(query.as_bytes(), &find, &replace, limit));
    if let Some(path) = path {
        exchange.rewrite_path(&path)?;
    }
    if let Some(Some(query)) = query {
        let mut encoded = Vec::with_capacity(query.len());
        crate::paths::url_path::encode_unsafe(&query, &mut encoded);
        let path = exchange.uri.path().as_bytes().to_vec();
        exchange.rewrite(&path, Some(&encoded))?;
    }
    Ok(())
}

/// `None` if there is nothing to replace.
fn replace_bytes(text: &[u8], find: &[u8], replace: &[u8], limit: usize) -> Option<Vec<u8>> {
    if find.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    let mut rest = text;
    for _ in 0..limit {
        let Some(at) = rest.windows(find.len()).position(|window| window == find) else { break };
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(replace);
        rest = &rest[at + find.len()..];
    }
    if rest.len() == text.len() {
        return None;
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// As path matching, without regard to case, so that what `handle_path` has matched is always cut off.
fn strip_prefix<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = path.split_at_checked(prefix.len())?;
    (!prefix.is_empty() && start.eq_ignore_ascii_case(prefix)).then_some(rest)
}

fn strip_suffix<'a>(path: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let (rest, end) = path.split_at_checked(path.len().checked_sub(suffix.len())?)?;
    (!suffix.is_empty() && end.eq_ignore_ascii_case(suffix)).then_some(rest)
}

fn bad_request(_: BadRequest) -> StatusCode {
    StatusCode::BAD_REQUEST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use config::{Part, Rewrite as R, Template};

    fn template(parts: &[&str]) -> Template {
        let part = |part: &&str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Part::Placeholder(format!("http.request.{name}")),
            None => Part::Text((*part).to_owned()),
        };
        Template(parts.iter().map(part).collect())
    }

    fn rewritten(rewrite: &R, uri: &str) -> String {
        let mut exchange = get(uri);
        Rewrite::compile(rewrite).unwrap().apply(&mut exchange).unwrap();
        exchange.uri.to_string()
    }

    #[test]
    fn targets_follow_caddys_rules() {
        for (to, uri, want) in [
            (&["/b"][..], "/a?x=1", "/b?x=1"),
            (&["/b?"], "/a?x=1", "/b"),
            (&["/b?y=2"], "/a?x=1", "/b?y=2"),
            (&["?y=2"], "/a?x=1", "/a?y=2"),
            (&["index.php"], "/a", "/index.php"),
            (&["/x", "{uri}"], "/a?x=1", "/x/a?x=1"),
            (&["/x", "{uri}", "?y=2"], "/a?x=1", "/x/a?y=2"),
            (&["/i?", "{uri.query}", "&p=", "{uri.path}"], "/a%20b", "/i?p=%2Fa%20b"),
            (&["/i?", "{uri.query}", "&p=", "{uri.path}"], "/a?x=1", "/i?x=1&p=%2Fa"),
            (&["/x", "{uri.path}"], "/a%3Fb%23?q", "/x/a%3Fb%23?q"),
            (&["/é b"], "/", "/%C3%A9%20b"),
        ] {
            assert_eq!(rewritten(&R::To(template(to)), uri), want, "{to:?} {uri}");
        }
    }

    #[test]
    fn prefixes_and_suffixes() {
        let prefix = |text: &str| R::StripPrefix(Template::text(text));
        assert_eq!(rewritten(&prefix("/api"), "/API/x?q=1"), "/x?q=1");
        assert_eq!(rewritten(&prefix("/api"), "/api"), "/");
        assert_eq!(rewritten(&prefix("api"), "/api/x"), "/x");
        assert_eq!(rewritten(&prefix("/api"), "/%61pi/a%3Fb"), "/a%3Fb");
        assert_eq!(rewritten(&prefix("/api"), "/x/../api/y"), "/y");
        assert_eq!(rewritten(&prefix("/api"), "/other"), "/other");
        assert_eq!(rewritten(&R::StripSuffix(Template::text(".html")), "/a.HTML?q"), "/a?q");
    }

    #[test]
    fn replacing_reaches_path_and_query() {
        let replace = R::Replace { find: Template::text("a"), replace: Template::text("b c"), limit: 0 };
        assert_eq!(rewritten(&replace, "/xax?q=a"), "/xb%20cx?q=b%20c");
        assert_eq!(rewritten(&replace, "/x?q"), "/x?q");
        let find = Template(vec![config::Part::Placeholder("http.request.uri.query.q".into())]);
        let replace = R::Replace { find, replace: Template::text("b"), limit: 1 };
        assert_eq!(rewritten(&replace, "/xax?q=a"), "/xbx?q=b");
        assert_eq!(rewritten(&replace, "/xax?p=a"), "/xax?p=a");
    }

    #[test]
    fn replacing_has_a_limit_and_patterns() {
        let replace = R::Replace { find: Template::text("a"), replace: Template::text("b"), limit: 2 };
        assert_eq!(rewritten(&replace, "/a/a/a?a&a&a"), "/b/b/a?b&b&a");
        let regexp = R::PathRegexp { find: "/([0-9]+)".into(), replace: Template::text("/<$1>") };
        assert_eq!(rewritten(&regexp, "/x/12/3?q"), "/x/%3C12%3E/%3C3%3E?q");
    }

    #[test]
    fn methods_become_upper_case() {
        let mut exchange = get("/");
        Rewrite::compile(&R::Method(Template::text("post"))).unwrap().apply(&mut exchange).unwrap();
        assert_eq!(exchange.method, Method::POST);
        assert_eq!(exchange.original_method(), Method::GET);
    }

    #[test]
    fn try_files_keeps_the_query_or_takes_the_written_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("index.php"), "").unwrap();
        let matcher = |try_files: Vec<Template>| {
            R::TryFiles(config::FileMatcher {
                root: Some(Template::text(dir.path().to_str().unwrap())),
                try_files,
                ..config::FileMatcher::default()
            })
        };
        let path = template(&["{uri.path}"]);
        let plain = matcher(vec![path.clone(), Template::text("/index.php")]);
        assert_eq!(rewritten(&plain, "/none?x=1"), "/index.php?x=1");
        let with_query = matcher(vec![path, template(&["/index.php?", "{uri.query}", "&p=", "{uri.path}"])]);
        assert_eq!(rewritten(&with_query, "/none?x=1"), "/index.php?x=1&p=%2Fnone");
        let dead_end = matcher(vec![Template::text("/gone"), Template::text("=410")]);
        let status = Rewrite::compile(&dead_end).unwrap().apply(&mut get("/")).unwrap_err();
        assert_eq!(status, StatusCode::GONE);
    }
}
