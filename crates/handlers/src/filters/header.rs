//! Changes of headers: of requests at once, of responses when they are on their way out.
//!
//! In Caddy, operations that are not deferred work on a header that the handlers behind them add to; the deferred ones
//! work on what came of it. Here both are kept until [`crate::context::filter::finish`], which plays them in that order.

use crate::context::exchange::Exchange;
use crate::context::filter::Filter;
use crate::context::own_fields;
use crate::error::BuildError;
use crate::filters::encode::ResponseMatcher;
use crate::templates::text::Text;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use regent_config as config;
use regent_exchange::ResponseBody;
use regex::bytes::Regex;
use std::sync::Arc;

/// The compiled operations of one `header` or `request_header` directive.
pub(crate) struct HeaderOps {
    immediate: Vec<Op>,
    deferred: Vec<Op>,
    /// `None`: every response.
    matcher: Option<ResponseMatcher>,
}

struct Op {
    kind: Kind,
    names: Names,
    value: Text,
}

enum Kind {
    Default,
    Add,
    Set,
    Delete,
    Replace(Regex),
}

/// Which fields an operation is about.
enum Names {
    One(HeaderName),
    /// `*` at either end of the text stands for anything; in lower case.
    Like {
        start: String,
        end: String,
        contains: String,
    },
}

impl HeaderOps {
    pub(crate) fn compile(ops: &[config::HeaderOp]) -> Result<Self, BuildError> {
        let compile = |deferred: bool| {
            let mut compiled = ops
                .iter()
                .filter(|op| op.deferred == deferred)
                .map(Op::compile)
                .collect::<Result<Vec<_>, _>>()?;
            compiled.sort_by_key(Op::rank);
            Ok::<_, BuildError>(compiled)
        };
        Ok(Self { immediate: compile(false)?, deferred: compile(true)?, matcher: None })
    }

    /// The same, for responses that fit; all of them are deferred then.
    pub(crate) fn only_of(self, matcher: &config::ResponseMatcher) -> Result<Self, BuildError> {
        Ok(Self { matcher: Some(ResponseMatcher::compile(Some(matcher))?), ..self })
    }

    /// Carries out all of them on a header.
    pub(crate) fn apply_to(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.all().for_each(|op| op.apply(&op.value.render(exchange), fields));
    }

    /// Carries out all of them on the request's own header.
    pub(crate) fn apply_to_request(&self, exchange: &mut Exchange) {
        let values: Vec<_> = self.all().map(|op| op.value.render(exchange).into_owned()).collect();
        for (op, value) in self.all().zip(&values) {
            op.apply(value, &mut exchange.headers);
            if let (Names::One(name), Kind::Set | Kind::Add | Kind::Default | Kind::Replace(_)) =
                (&op.names, &op.kind)
            {
                own_fields::keep(&mut exchange.headers, name);
            }
        }
        if self.all().any(|op| op.names.include(&header::HOST)) {
            exchange.refresh_host();
        }
    }

    /// Has the response to this request changed.
    pub(crate) fn attach(self: &Arc<Self>, exchange: &mut Exchange) {
        let ops = Arc::clone(self);
        if self.immediate.iter().all(|op| op.value.literal().is_some()) {
            return exchange.add_filter(ops);
        }
        let values = self.immediate.iter().map(|op| op.value.render(exchange).into_owned()).collect();
        exchange.add_filter(Arc::new(Evaluated { ops, values }));
    }

    fn all(&self) -> impl Iterator<Item = &Op> {
        self.immediate.iter().chain(&self.deferred)
    }
}

/// With the values that operations which are not deferred have as the request comes by: handlers that follow may rewrite it.
struct Evaluated {
    ops: Arc<HeaderOps>,
    values: Vec<Vec<u8>>,
}

impl Filter for Evaluated {
    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&self, _: &Exchange, fields: &mut HeaderMap) {
        for (op, value) in self.ops.immediate.iter().zip(&self.values) {
            op.apply(value, fields);
        }
    }

    fn apply(&self, exchange: &Exchange, response: Response<ResponseBody>) -> Response<ResponseBody> {
        self.ops.apply(exchange, response)
    }
}

impl Filter for HeaderOps {
    fn prepares(&self) -> bool {
        !self.immediate.is_empty()
    }

    fn prepare(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.immediate.iter().for_each(|op| op.apply(&op.value.render(exchange), fields));
    }

    fn apply(&self, exchange: &Exchange, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        let fits = |matcher: &ResponseMatcher| matcher.fits(response.status(), response.headers());
        if self.matcher.as_ref().is_none_or(fits) {
            self.deferred.iter().for_each(|op| op.apply(&op.value.render(exchange), response.headers_mut()));
        }
        response
    }
}

impl Op {
    fn compile(op: &config::HeaderOp) -> Result<Self, BuildError> {
        let kind = match &op.kind {
            config::HeaderOpKind::Set => Kind::Set,
            config::HeaderOpKind::Add => Kind::Add,
            config::HeaderOpKind::Default => Kind::Default,
            config::HeaderOpKind::Delete => Kind::Delete,
            config::HeaderOpKind::Replace { search } => Kind::Replace(
                Regex::new(search).map_err(|source| BuildError::Regex { pattern: search.clone(), source })?,
            ),
        };
        let names = match kind {
            Kind::Delete | Kind::Replace(_) if op.name.contains('*') => Names::like(&op.name),
            _ => Names::One(
                HeaderName::try_from(op.name.as_str())
                    .map_err(|_| BuildError::HeaderName(op.name.clone()))?,
            ),
        };
        Ok(Self { kind, names, value: Text::compile(&op.value) })
    }

    /// The order within one directive, whatever the order in which it is written (Caddy, `HeaderOps.ApplyTo`).
    fn rank(&self) -> u8 {
        match (&self.kind, &self.names) {
            (Kind::Delete, Names::Like { start, end, contains })
                if [start, end, contains].iter().all(|part| part.is_empty()) =>
            {
                0
            }
            (Kind::Default, _) => 1,
            (Kind::Add, _) => 2,
            (Kind::Set, _) => 3,
            (Kind::Delete, _) => 4,
            (Kind::Replace(_), _) => 5,
        }
    }

    fn apply(&self, value: &[u8], headers: &mut HeaderMap) {
        match (&self.kind, &self.names) {
            (Kind::Delete, Names::One(name)) => drop(headers.remove(name)),
            (Kind::Delete, names) => {
                let doomed: Vec<_> = headers.keys().filter(|name| names.include(name)).cloned().collect();
                doomed.iter().for_each(|name| drop(headers.remove(name)));
            }
            (Kind::Replace(search), names) => {
                for (_, field) in headers.iter_mut().filter(|(name, _)| names.include(name)) {
                    let replaced = search.replace_all(field.as_bytes(), value);
                    *field = header_value(&replaced);
                }
            }
            (Kind::Set, Names::One(name)) => drop(headers.insert(name, header_value(value))),
            (Kind::Add, Names::One(name)) => drop(headers.append(name, header_value(value))),
            (Kind::Default, Names::One(name)) if !headers.contains_key(name) => {
                headers.insert(name, header_value(value));
            }
            _ => {}
        }
    }
}

impl Names {
    fn like(pattern: &str) -> Self {
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

    fn include(&self, name: &HeaderName) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Like { start, end, contains } => {
                let name = name.as_str();
                name.starts_with(start) && name.ends_with(end) && name.contains(contains)
            }
        }
    }
}

/// A field's value; bytes that may not stand in one (line ends above all) become spaces.
fn header_value(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).unwrap_or_else(|_| {
        let allowed = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 127);
        let clean: Vec<u8> = value.iter().map(|byte| if allowed(*byte) { *byte } else { b' ' }).collect();
        HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::{get, request};
    use crate::context::origin::Origin;
    use config::{HeaderOp, HeaderOpKind, Part, Template};
    use std::sync::Arc;

    fn op(kind: HeaderOpKind, name: &str, value: &str, deferred: bool) -> HeaderOp {
        HeaderOp { kind, name: name.into(), value: Template::text(value), deferred }
    }

    /// The header after `finish`, as lines.
    fn finished(directives: &[&[HeaderOp]], origin: Origin, answer: &[(&'static str, &str)]) -> Vec<String> {
        let mut exchange = get("/");
        exchange.set_origin(origin);
        for ops in directives {
            exchange.add_filter(Arc::new(HeaderOps::compile(ops).unwrap()));
        }
        let mut response = Response::new(ResponseBody::empty());
        for (name, value) in answer {
            response.headers_mut().append(*name, value.parse().unwrap());
        }
        let response = exchange.finish(response);
        let headers = response.headers();
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<_> = headers.iter().map(line).filter(|line| line != "server: Regent").collect();
        lines.sort();
        lines
    }

    #[test]
    fn operations_work_as_in_caddy() {
        use HeaderOpKind::{Add, Default, Delete, Set};
        let answer = [("x-a", "php"), ("x-b", "php")];
        for (ops, want) in [
            (vec![op(Set, "X-A", "new", true)], vec!["x-a: new", "x-b: php"]),
            (vec![op(Set, "X-A", "new", false)], vec!["x-a: new", "x-a: php", "x-b: php"]),
            (vec![op(Add, "X-A", "new", true)], vec!["x-a: new", "x-a: php", "x-b: php"]),
            (
                vec![op(Default, "X-A", "new", true), op(Default, "X-C", "new", true)],
                vec!["x-a: php", "x-b: php", "x-c: new"],
            ),
            (vec![op(Delete, "X-A", "", true)], vec!["x-b: php"]),
            (vec![op(Delete, "X-*", "", true)], vec![]),
            (vec![op(Delete, "*-b", "", true)], vec!["x-a: php"]),
            (vec![op(Delete, "X-A", "", false)], vec!["x-a: php", "x-b: php"]),
            (
                vec![op(HeaderOpKind::Replace { search: "p(.)p".into() }, "X-A", "<$1>", true)],
                vec!["x-a: <h>", "x-b: php"],
            ),
        ] {
            assert_eq!(finished(&[&ops], Origin::Engine, &answer), want, "{ops:?}");
        }
    }

    #[test]
    fn a_field_that_may_be_there_once_stays_single() {
        let set = [op(HeaderOpKind::Set, "Content-Type", "a/b", false)];
        let answer = [("content-type", "text/html")];
        assert_eq!(finished(&[&set], Origin::Engine, &answer), ["content-type: text/html"]);
        assert_eq!(finished(&[&set], Origin::Regent, &answer), ["content-type: a/b"]);
    }

    #[test]
    fn the_last_directive_is_applied_first() {
        let delete = [op(HeaderOpKind::Delete, "X-A", "", true)];
        let set = [op(HeaderOpKind::Set, "X-A", "1", true)];
        assert_eq!(finished(&[&delete, &set], Origin::Engine, &[]), [""; 0]);
        assert_eq!(finished(&[&set, &delete], Origin::Engine, &[]), ["x-a: 1"]);
    }

    #[test]
    fn the_server_field_is_added_unless_it_is_there_or_deleted() {
        let server = |ops: &[HeaderOp], own: Option<&str>| {
            let mut exchange = get("/");
            exchange.add_filter(Arc::new(HeaderOps::compile(ops).unwrap()));
            let mut response = Response::new(ResponseBody::empty());
            if let Some(own) = own {
                response.headers_mut().insert(header::SERVER, own.parse().unwrap());
            }
            let response = exchange.finish(response);
            let values: Vec<_> = response
                .headers()
                .get_all(header::SERVER)
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect();
            values.join(",")
        };
        assert_eq!(server(&[], None), "Regent");
        assert_eq!(server(&[], Some("app")), "app");
        assert_eq!(server(&[op(HeaderOpKind::Delete, "Server", "", true)], None), "");
        assert_eq!(server(&[op(HeaderOpKind::Delete, "Server", "", false)], None), "");
        assert_eq!(server(&[op(HeaderOpKind::Set, "Server", "mine", false)], None), "mine");
        assert_eq!(server(&[op(HeaderOpKind::Set, "X", "1", false)], Some("app")), "app");
    }

    #[test]
    fn values_cannot_start_a_new_line() {
        let value = Template(vec![Part::Placeholder("http.request.uri.path".into())]);
        let ops = [HeaderOp { kind: HeaderOpKind::Set, name: "X-P".into(), value, deferred: true }];
        let mut exchange = get("/a%0d%0aX-Evil:1");
        exchange.add_filter(Arc::new(HeaderOps::compile(&ops).unwrap()));
        let response = exchange.finish(Response::new(ResponseBody::empty()));
        assert_eq!(response.headers()["x-p"], "/a  X-Evil:1");
    }

    #[test]
    fn request_headers_are_changed_at_once() {
        let mut exchange = request("GET", "/", &[("host", "a.example"), ("x-old", "1")]);
        let copy = Template(vec![Part::Placeholder("http.request.header.X-Old".into())]);
        let ops = [
            HeaderOp { kind: HeaderOpKind::Set, name: "X-New".into(), value: copy, deferred: false },
            op(HeaderOpKind::Delete, "X-Old", "", false),
            op(HeaderOpKind::Set, "Host", "B.example:1", false),
        ];
        HeaderOps::compile(&ops).unwrap().apply_to_request(&mut exchange);
        assert_eq!(exchange.headers["x-new"], "1");
        assert!(!exchange.headers.contains_key("x-old"));
        assert_eq!(exchange.host, "b.example");
    }

    #[test]
    fn bad_names_are_build_errors() {
        let error = HeaderOps::compile(&[op(HeaderOpKind::Set, "a b", "", false)]).err().unwrap();
        assert!(error.to_string().contains("a b"), "{error}");
    }
}
