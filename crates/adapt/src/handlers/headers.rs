//! `header` and `request_header`.

use crate::object::Object;
use crate::responses::response_matcher;
use crate::text::text;
use crate::words::Line;
use regent_config::{HeaderOp, HeaderOpKind, ResponseMatcher, Template};
use serde_json::Value;
use std::collections::BTreeMap;

/// Changes of responses. Those that set a field which is not there have a handler of their own each, as in Caddy.
pub(super) fn response(ops: &[HeaderOp]) -> Vec<Object> {
    let is_at_once = ops.iter().all(|op| op.deferred == ops[0].deferred);
    if !is_free_of_order(ops) || !is_at_once {
        return vec![own("header", ops)];
    }
    let (defaults, others): (Vec<_>, Vec<_>) = ops.iter().partition(|op| op.kind == HeaderOpKind::Default);
    let mut handlers = Vec::new();
    if !others.is_empty() {
        let mut response = changes(&others);
        response.set_if("deferred", others.iter().any(|op| op.deferred));
        handlers.push(of_response(response));
    }
    handlers.extend(defaults.into_iter().map(default));
    handlers
}

/// Changes of the responses that fit.
pub(super) fn of_some_responses(matcher: &ResponseMatcher, ops: &[HeaderOp]) -> Object {
    if !is_plain(ops) {
        let condition = Line::new(["match"]).block(condition_lines(matcher));
        let lines = ops.iter().map(line).chain([condition]).collect();
        return Line::new(["header"]).block(lines).handler();
    }
    let mut response = changes(&ops.iter().collect::<Vec<_>>());
    response.set("require", response_matcher(matcher));
    of_response(response)
}

/// Changes of the request.
pub(super) fn request(ops: &[HeaderOp]) -> Vec<Object> {
    if !is_plain(ops) {
        return ops.iter().map(|op| words(Line::new(["request_header", "*"]), op).handler()).collect();
    }
    let mut handler = Object::handler("headers");
    handler.set("request", changes(&ops.iter().collect::<Vec<_>>()));
    vec![handler]
}

/// Whether an object of JSON can have all of it.
pub(super) fn is_plain(ops: &[HeaderOp]) -> bool {
    is_free_of_order(ops) && ops.iter().all(|op| op.kind != HeaderOpKind::Default)
}

/// Lines such as `header_up FIELD VALUE`.
pub(super) fn lines(option: &str, ops: &[HeaderOp]) -> Vec<Line> {
    ops.iter().map(|op| words(Line::new([option]), op)).collect()
}

/// `set`, `add`, `delete` and `replace`.
pub(super) fn changes(ops: &[&HeaderOp]) -> Object {
    let mut fields: BTreeMap<&str, Vec<(String, Value)>> = BTreeMap::new();
    let mut object = Object::new();
    let mut deleted = Vec::new();
    for HeaderOp { kind, name, value, deferred: _ } in ops {
        let (key, value) = match kind {
            HeaderOpKind::Set | HeaderOpKind::Default => ("set", text(value).into()),
            HeaderOpKind::Add => ("add", text(value).into()),
            HeaderOpKind::Replace { search } => {
                ("replace", replacement(&pattern(search), &text(value)).build())
            }
            HeaderOpKind::Delete => {
                deleted.push(text(name));
                continue;
            }
        };
        fields.entry(key).or_default().push((text(name), value));
    }
    for (key, values) in fields {
        let mut names: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        values.into_iter().for_each(|(name, value)| names.entry(name).or_default().push(value));
        let mut of_kind = Object::new();
        names.into_iter().for_each(|(name, values)| of_kind.set(name, values));
        object.set(key, of_kind);
    }
    object.set_list("delete", deleted);
    object
}

/// Whether it does not matter which comes first: no field is changed twice, but by several values that are added to it.
fn is_free_of_order(ops: &[HeaderOp]) -> bool {
    let is_independent = |one: &HeaderOp, other: &HeaderOp| {
        let both_add =
            one.kind == HeaderOpKind::Add && other.kind == HeaderOpKind::Add && one.name == other.name;
        both_add || !(names(one, other) || names(other, one))
    };
    ops.iter().enumerate().all(|(at, op)| ops[..at].iter().all(|other| is_independent(op, other)))
}

/// Whether an operation, which may have a `*` at an end of its name, is about the field of the other one. A name that is
/// known with the request alone may be any.
fn names(op: &HeaderOp, other: &HeaderOp) -> bool {
    if op.name.as_text().is_none() || other.name.as_text().is_none() {
        return true;
    }
    let (pattern, name) = (text(&op.name).to_ascii_lowercase(), text(&other.name).to_ascii_lowercase());
    let middle = pattern.trim_matches('*');
    match (pattern.starts_with('*'), pattern.ends_with('*')) {
        _ if op.kind != HeaderOpKind::Delete => pattern == name,
        (true, true) => name.contains(middle),
        (true, false) => name.ends_with(middle),
        (false, true) => name.starts_with(middle),
        (false, false) => pattern == name,
    }
}

fn of_response(response: Object) -> Object {
    let mut handler = Object::handler("headers");
    handler.set("response", response);
    handler
}

fn default(op: &HeaderOp) -> Object {
    let mut response = changes(&[op]);
    let (mut require, mut headers) = (Object::new(), Object::new());
    headers.set(text(&op.name), Value::Null);
    require.set("headers", headers);
    response.set("require", require);
    of_response(response)
}

fn replacement(search: &str, replace: &str) -> Object {
    let mut object = Object::new();
    object.set("search_regexp", search);
    object.set("replace", replace);
    object
}

/// A regular expression, whose backslashes are its own.
fn pattern(search: &Template) -> String {
    search.as_text().map_or_else(|| text(search), str::to_owned)
}

/// In the words of a Caddyfile, whose lines have an order.
fn own(directive: &str, ops: &[HeaderOp]) -> Object {
    Line::new([directive]).block(ops.iter().map(line).collect()).handler()
}

fn line(op: &HeaderOp) -> Line {
    words(Line::new([] as [&str; 0]), op)
}

fn words(line: Line, op: &HeaderOp) -> Line {
    let HeaderOp { kind, name, value, deferred } = op;
    let sign = match kind {
        HeaderOpKind::Add => "+",
        HeaderOpKind::Default => "?",
        HeaderOpKind::Delete => "-",
        HeaderOpKind::Set | HeaderOpKind::Replace { .. } if *deferred => ">",
        HeaderOpKind::Set | HeaderOpKind::Replace { .. } => "",
    };
    let line = line.word(format!("{sign}{}", text(name)));
    match kind {
        HeaderOpKind::Delete => line,
        HeaderOpKind::Replace { search } => line.word(pattern(search)).word(text(value)),
        HeaderOpKind::Set | HeaderOpKind::Add | HeaderOpKind::Default => line.word(text(value)),
    }
}

/// A condition on responses in the words of a Caddyfile.
pub(super) fn condition_lines(matcher: &ResponseMatcher) -> Vec<Line> {
    use regent_config::{FieldMatcher, FieldTest};
    let ResponseMatcher { statuses, fields } = matcher;
    let status = |(least, most): &(u16, u16)| match least == most {
        true => least.to_string(),
        false => format!("{}xx", least / 100),
    };
    let statuses = (!statuses.is_empty()).then(|| Line::new(["status"]).words(statuses.iter().map(status)));
    let field = |FieldMatcher { name, test }: &FieldMatcher| match test {
        FieldTest::Present => vec![Line::new(["header", name])],
        FieldTest::Absent => vec![Line::new(["header".to_owned(), format!("!{name}")])],
        FieldTest::Like(values) => values.iter().map(|value| Line::new(["header", name, value])).collect(),
    };
    statuses.into_iter().chain(fields.iter().flat_map(field)).collect()
}
