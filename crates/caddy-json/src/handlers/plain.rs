//! Handlers that say what they say in a few words.

use super::{directive, routes};
use crate::document::{Node, Value};
use crate::reader::{Fields, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn static_response(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let status =
        fields.take("status_code").and_then(|node| r.scalar(node)).filter(|status| !status.text.is_empty());
    let body = fields.take("body").and_then(|node| r.text(node));
    let headers = fields.take("headers").map(|node| (node, super::headers::values(r, node))).unzip();
    let close = fields.take("close").is_some_and(|node| r.bool(node));
    if fields.take("abort").is_some_and(|node| r.bool(node)) {
        return directive(fields, "abort", Vec::new(), Vec::new());
    }
    let (Some(node), Some(values)) = headers else { return respond(fields, status, body, close) };
    if let ([(field, target)], None, false, Some(status)) = (values.as_slice(), &body, close, &status)
        && field.text == "Location"
        && (status.text.starts_with('3') || status.text == "401" || status.text.contains('{'))
    {
        return directive(fields, "redir", vec![whole(target), status.clone()], Vec::new());
    }
    let mut lines = super::headers::set(node, values);
    lines.append(&mut respond(fields, status, body, close));
    lines
}

/// Since Caddy 2.11, `php_fastcgi` leads to a directory by the last part of its path: from where the client is, that is the
/// whole path.
fn whole(target: &Token) -> Token {
    let rest = target.text.strip_prefix("./{http.request.orig_uri.path.file_escaped}/");
    let text = rest.map(|rest| format!("{{http.request.orig_uri.path}}/{rest}"));
    Token { text: text.unwrap_or_else(|| target.text.clone()), ..target.clone() }
}

fn respond(fields: &Fields<'_>, status: Option<Token>, body: Option<Token>, close: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(body) = body.filter(|body| !body.text.is_empty()) {
        lines.push(line(fields.node, "body", vec![body]));
    }
    if close {
        lines.push(line(fields.node, "close", Vec::new()));
    }
    let status = status.map(|status| vec![word(fields.node, ""), status]).unwrap_or_default();
    directive(fields, "respond", status, lines)
}

pub(super) fn error(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let message = fields.take("error").and_then(|node| r.text(node)).unwrap_or_else(|| word(fields.node, ""));
    let status = fields
        .take("status_code")
        .and_then(|node| r.scalar(node))
        .unwrap_or_else(|| word(fields.node, "500"));
    directive(fields, "error", vec![message, status], Vec::new())
}

pub(super) fn subroute(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let lines = fields.take("routes").map(|node| routes::lines(r, node)).unwrap_or_default();
    if let Some(errors) = fields.take("errors") {
        r.error(
            errors,
            "Regent handles errors for a whole site: put these routes into `errors` of the server",
        );
    }
    vec![block(fields.node, "route", Vec::new(), lines)]
}

pub(super) fn invoke(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let name = fields.take("name").and_then(|node| r.text(node));
    directive(fields, "invoke", name.into_iter().collect(), Vec::new())
}

/// Variables, of which some are how Caddy keeps what other directives say.
pub(super) fn vars(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(root) = fields.take("root").and_then(|node| r.text(node)) {
        lines.append(&mut directive(fields, "root", vec![root], Vec::new()));
    }
    for key in ["fs", "log_level"] {
        if let Some(name) = fields.take(key).and_then(|node| r.text(node)) {
            lines.append(&mut directive(fields, key, vec![name], Vec::new()));
        }
    }
    for key in ["log_skip", "skip_log"] {
        if fields.take(key).is_some_and(|node| r.bool(node)) {
            lines.append(&mut directive(fields, "log_skip", Vec::new(), Vec::new()));
        }
    }
    if let Some(names) = fields.take("access_logger_names").map(|node| r.texts(node)) {
        lines.append(&mut directive(fields, "log_name", names, Vec::new()));
    }
    let mut pairs = Vec::new();
    for member in fields.rest() {
        let value = variable(r, &member.value);
        pairs.extend(value.map(|value| line(&member.value, &member.name, vec![value])));
    }
    if !pairs.is_empty() {
        lines.append(&mut directive(fields, "vars", Vec::new(), pairs));
    }
    lines
}

fn variable(r: &mut Reader, node: &Node) -> Option<Token> {
    match node.value {
        Value::List(_) | Value::Object(_) => {
            r.error(node, "a variable of Regent is a text, a number or a truth value");
            None
        }
        _ => r.scalar(node),
    }
}
