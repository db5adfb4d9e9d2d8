//! `headers`, and the changes of headers in other handlers.

use super::directive;
use crate::document::Node;
use crate::reader::{Fields, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

/// A change of a header: the field with its sign, and the values behind it.
type Operation = (Token, Vec<Token>);

pub(super) fn headers(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(request) = fields.take("request") {
        let own = r.object(request);
        for (field, values) in operations(r, &own) {
            lines.push(line(request, "request_header", [vec![word(request, "*"), field], values].concat()));
        }
        own.finish(r, "`request`");
    }
    if let Some(response) = fields.take("response") {
        lines.append(&mut self::response(r, fields, response));
    }
    lines
}

fn response(r: &mut Reader, fields: &Fields<'_>, node: &Node) -> Vec<Line> {
    let own = r.object(node);
    let operations = operations(r, &own);
    let is_deferred = own.take("deferred").is_some_and(|node| r.bool(node));
    let require = own.take("require");
    own.finish(r, "`response`");
    if let Some(line) = require.and_then(|require| default(node, require, &operations)) {
        return directive(fields, "header", line, Vec::new());
    }
    let mut lines: Vec<_> = operations
        .into_iter()
        .map(|(field, values)| Line { name: field, args: values, block: None })
        .collect();
    match require {
        Some(require) => lines.push(block(require, "match", Vec::new(), response_conditions(r, require))),
        None if is_deferred => lines.push(line(node, "defer", Vec::new())),
        None => lines.push(line(node, "json at once", Vec::new())),
    }
    directive(fields, "header", Vec::new(), lines)
}

/// `?FIELD VALUE`, if it is that: the field is set where it is not there.
fn default(node: &Node, require: &Node, operations: &[Operation]) -> Option<Vec<Token>> {
    let [(field, values)] = operations else { return None };
    let ([only], [value]) = (require.members(), values.as_slice()) else { return None };
    let [absent] = only.value.members() else { return None };
    let is_default = only.name == "headers" && absent.name == field.text && absent.value.is_null();
    is_default.then(|| vec![word(node, &format!("?{}", field.text)), value.clone()])
}

/// The changes, in the order in which Caddy carries them out.
pub(super) fn operations(r: &mut Reader, fields: &Fields<'_>) -> Vec<Operation> {
    let mut operations = Vec::new();
    if let Some(added) = fields.take("add") {
        operations
            .extend(values(r, added).into_iter().map(|(field, value)| (signed(&field, '+'), vec![value])));
    }
    if let Some(set) = fields.take("set") {
        operations.append(&mut self::set_operations(r, set));
    }
    if let Some(deleted) = fields.take("delete") {
        operations.extend(r.texts(deleted).into_iter().map(|field| (signed(&field, '-'), Vec::new())));
    }
    if let Some(replaced) = fields.take("replace") {
        operations.append(&mut replacements(r, replaced));
    }
    operations
}

/// The first value of a field takes the place of what was there, and the others stand beside it.
fn set_operations(r: &mut Reader, node: &Node) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    for (field, value) in values(r, node) {
        let is_further = operations.iter().any(|(known, _)| known.text == field.text);
        let field = if is_further { signed(&field, '+') } else { field };
        operations.push((field, vec![value]));
    }
    operations
}

fn replacements(r: &mut Reader, node: &Node) -> Vec<Operation> {
    r.object(node);
    let mut operations = Vec::new();
    for member in node.members() {
        for replacement in r.list(&member.value) {
            let fields = r.object(replacement);
            let pattern = fields.take("search_regexp").and_then(|node| r.text(node));
            let text = fields.take("search").and_then(|node| r.text(node));
            let by =
                fields.take("replace").and_then(|node| r.text(node)).unwrap_or_else(|| word(replacement, ""));
            fields.finish(r, "a replacement");
            let field = word(replacement, &member.name);
            match (pattern, text) {
                (Some(pattern), None) => operations.push((field, vec![pattern, by])),
                (None, Some(text)) => {
                    let pattern = Token { text: escaped(&text.text), ..text };
                    let by = Token { text: by.text.replace('$', "$$"), ..by };
                    operations.push((field, vec![pattern, by]));
                }
                _ => r.error(replacement, "a replacement needs either `search` or `search_regexp`"),
            }
        }
    }
    operations
}

/// Fields with each of their values. One without any is a mistake.
pub(super) fn values(r: &mut Reader, node: &Node) -> Vec<(Token, Token)> {
    r.object(node);
    let mut values = Vec::new();
    for member in node.members() {
        let own = r.texts(&member.value);
        if own.is_empty() {
            r.error(
                &member.value,
                format_args!(
                    "`{}` needs a value; to have the field deleted, write it into \"delete\"",
                    member.name
                ),
            );
        }
        values.extend(own.into_iter().map(|value| (word(&member.value, &member.name), value)));
    }
    values
}

/// Sets these fields at once.
pub(super) fn set(node: &Node, values: Vec<(Token, Token)>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (field, value) in values {
        let is_further = lines.iter().any(|line| line.name.text == field.text);
        let name = if is_further { signed(&field, '+') } else { field };
        lines.push(Line { name, args: vec![value], block: None });
    }
    vec![block(node, "header", vec![word(node, "*")], lines)]
}

/// Conditions on a response: `status CODE…` and `header FIELD [VALUE]`.
pub(super) fn response_conditions(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    if let Some(codes) = fields.take("status_code") {
        let codes: Vec<_> = r.list(codes).iter().filter_map(|code| r.number(code).map(status)).collect();
        lines.push(line(node, "status", codes));
    }
    if let Some(headers) = fields.take("headers") {
        r.object(headers);
        for member in headers.members() {
            let values = r.texts(&member.value);
            let field = |sign: &str| word(&member.value, &format!("{sign}{}", member.name));
            if values.is_empty() {
                let sign = if member.value.is_null() { "!" } else { "" };
                lines.push(line(&member.value, "header", vec![field(sign)]));
            }
            lines.extend(
                values.into_iter().map(|value| line(&member.value, "header", vec![field(""), value])),
            );
        }
    }
    fields.finish(r, "a condition on a response");
    lines
}

/// A number of one digit stands for its whole class, as in Caddy.
pub(super) fn status(token: Token) -> Token {
    let text = if token.text.len() == 1 { format!("{}xx", token.text) } else { token.text };
    Token { text, ..token }
}

fn signed(field: &Token, sign: char) -> Token {
    Token { text: format!("{sign}{}", field.text), ..field.clone() }
}

/// A regular expression that fits this text alone.
pub(super) fn escaped(text: &str) -> String {
    let is_special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect()
}
