use super::*;
use crate::context::exchange::tests::{get, request};
use crate::context::origin::Origin;
use config::{HeaderOp, HeaderOpKind, Part, Template};
use std::sync::Arc;

fn op(kind: HeaderOpKind, name: &str, value: &str, deferred: bool) -> HeaderOp {
    HeaderOp { kind, name: Template::text(name), value: Template::text(value), deferred }
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
    let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
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
            vec![op(HeaderOpKind::Replace { search: Template::text("p(.)p") }, "X-A", "<$1>", true)],
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
    let ops = [HeaderOp { kind: HeaderOpKind::Set, name: Template::text("X-P"), value, deferred: true }];
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
        HeaderOp { kind: HeaderOpKind::Set, name: Template::text("X-New"), value: copy, deferred: false },
        op(HeaderOpKind::Delete, "X-Old", "", false),
        op(HeaderOpKind::Set, "Host", "B.example:1", false),
    ];
    HeaderOps::compile(&ops).unwrap().apply_to_request(&mut exchange);
    assert_eq!(exchange.headers["x-new"], "1");
    assert!(!exchange.headers.contains_key("x-old"));
    assert_eq!(exchange.host, "b.example");
}

fn template(parts: &[&str]) -> Template {
    let part = |part: &&str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => Part::Placeholder(name.to_owned()),
        None => Part::Text((*part).to_owned()),
    };
    Template(parts.iter().map(part).collect())
}

/// The fields of a response to `uri` with a field `X-A: p.p-pop`.
fn changed(uri: &str, op: HeaderOp) -> Vec<String> {
    let mut exchange = get(uri);
    Arc::new(HeaderOps::compile(&[op]).unwrap()).attach(&mut exchange);
    let mut response = Response::new(ResponseBody::empty());
    response.headers_mut().insert("x-a", HeaderValue::from_static("p.p-pop"));
    let response = exchange.finish(response);
    let fields = response.headers().iter().filter(|(name, _)| **name != header::SERVER);
    let mut lines: Vec<_> =
        fields.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

#[test]
fn a_field_of_the_response_is_a_value() {
    let value = template(&["<", "{http.response.header.X-A}", ">"]);
    let op = |deferred| HeaderOp {
        kind: HeaderOpKind::Set,
        name: Template::text("X-B"),
        value: value.clone(),
        deferred,
    };
    assert_eq!(changed("/", op(true)), ["x-a: p.p-pop", "x-b: <p.p-pop>"]);
    // There is none yet.
    assert_eq!(changed("/", op(false)), ["x-a: p.p-pop", "x-b: <>"]);
}

#[test]
fn names_and_searches_are_those_of_the_request() {
    const VALUE: &str = "{http.request.uri.query.q}";
    for (uri, kind, name, want) in [
        ("/?q=b", HeaderOpKind::Set, &["X-", VALUE][..], &["x-a: p.p-pop", "x-b: v"][..]),
        ("/?q=a", HeaderOpKind::Delete, &["X-", VALUE], &[]),
        ("/?q=x", HeaderOpKind::Delete, &[VALUE, "-*"], &[]),
        ("/?q=a+b", HeaderOpKind::Set, &["X-", VALUE], &["x-a: p.p-pop"]),
        ("/?q=content-length", HeaderOpKind::Set, &[VALUE], &["x-a: p.p-pop"]),
        ("/?q=p.p", HeaderOpKind::Replace { search: template(&[VALUE, "-(.)"]) }, &["X-A"], &["x-a: vop"]),
        ("/?q=p(p", HeaderOpKind::Replace { search: template(&[VALUE]) }, &["X-A"], &["x-a: p.p-pop"]),
    ] {
        for deferred in [true, false] {
            let op =
                HeaderOp { kind: kind.clone(), name: template(name), value: Template::text("v"), deferred };
            let want = if deferred || kind == HeaderOpKind::Set { want } else { &["x-a: p.p-pop"] };
            assert_eq!(changed(uri, op), want, "{uri} {name:?} {deferred}");
        }
    }
}

#[test]
fn bad_names_are_build_errors() {
    let error = HeaderOps::compile(&[op(HeaderOpKind::Set, "a b", "", false)]).err().unwrap();
    assert!(error.to_string().contains("a b"), "{error}");
}
