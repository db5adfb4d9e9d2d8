//! `rewrite`: the changes of a request's method and URI.

use super::directive;
use crate::document::Node;
use crate::reader::{Fields, Reader, line, word};
use regent_caddyfile::{Line, Token};

/// In the order in which Caddy carries them out (modules/caddyhttp/rewrite/rewrite.go, Rewrite).
pub(super) fn rewrite(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |name: &str, args: Vec<Token>| lines.append(&mut directive(fields, name, args, Vec::new()));
    if let Some(method) = fields.take("method").and_then(|node| r.text(node)) {
        add("method", vec![method]);
    }
    if let Some(uri) = fields.take("uri").and_then(|node| r.text(node)) {
        add("rewrite", vec![uri]);
    }
    for (key, change) in [("strip_path_prefix", "strip_prefix"), ("strip_path_suffix", "strip_suffix")] {
        if let Some(text) = fields.take(key).and_then(|node| r.text(node)) {
            add("uri", vec![word(fields.node, change), text]);
        }
    }
    for item in fields.take("uri_substring").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(item);
        let (find, replace) = pair(r, &own, "find");
        let limit = own.take("limit").and_then(|node| r.number(node)).filter(|limit| limit.text != "0");
        own.finish(r, "a replacement");
        add("uri", [vec![word(item, "replace"), find, replace], limit.into_iter().collect()].concat());
    }
    for item in fields.take("path_regexp").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(item);
        let (find, replace) = pair(r, &own, "find");
        own.finish(r, "a replacement");
        add("uri", vec![word(item, "path_regexp"), find, replace]);
    }
    if let Some(query) = fields.take("query") {
        let changes = changes(r, query);
        if !changes.is_empty() {
            lines.append(&mut directive(fields, "uri", vec![word(query, "query")], changes));
        }
    }
    lines
}

/// What is looked for, and what takes its place.
fn pair(r: &mut Reader, fields: &Fields<'_>, key: &'static str) -> (Token, Token) {
    let mut text =
        |key| fields.take(key).and_then(|node| r.text(node)).unwrap_or_else(|| word(fields.node, ""));
    (text(key), text("replace"))
}

/// In the order in which Caddy carries them out (the same file, queryOps.do).
fn changes(r: &mut Reader, query: &Node) -> Vec<Line> {
    let fields = r.object(query);
    let mut lines = Vec::new();
    for item in fields.take("rename").map(|node| r.list(node)).unwrap_or_default() {
        let (key, value) = key_and_value(r, item);
        lines.push(line(item, &format!("{}>{}", key.text, value.text), Vec::new()));
    }
    for item in fields.take("set").map(|node| r.list(node)).unwrap_or_default() {
        let (key, value) = key_and_value(r, item);
        lines.push(line(item, &key.text, vec![value]));
    }
    for item in fields.take("add").map(|node| r.list(node)).unwrap_or_default() {
        let (key, value) = key_and_value(r, item);
        lines.push(line(item, &format!("+{}", key.text), vec![value]));
    }
    for item in fields.take("replace").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(item);
        let key = own.take("key").and_then(|node| r.text(node)).unwrap_or_else(|| word(item, "*"));
        let pattern = own.take("search_regexp").and_then(|node| r.text(node));
        let text = own.take("search").and_then(|node| r.text(node));
        let replace = own.take("replace").and_then(|node| r.text(node)).unwrap_or_else(|| word(item, ""));
        own.finish(r, "a replacement");
        let pattern =
            pattern.or_else(|| text.map(|text| Token { text: super::headers::escaped(&text.text), ..text }));
        match pattern {
            Some(pattern) => lines.push(line(item, &key.text, vec![pattern, replace])),
            None => r.error(item, "a replacement needs either `search` or `search_regexp`"),
        }
    }
    for key in fields.take("delete").map(|node| r.texts(node)).unwrap_or_default() {
        lines.push(line(query, &format!("-{}", key.text), Vec::new()));
    }
    fields.finish(r, "`query`");
    lines
}

fn key_and_value(r: &mut Reader, item: &Node) -> (Token, Token) {
    let fields = r.object(item);
    let mut text = |key| fields.take(key).and_then(|node| r.text(node)).unwrap_or_else(|| word(item, ""));
    let pair = (text("key"), text("val"));
    fields.finish(r, "a change of a query");
    pair
}
