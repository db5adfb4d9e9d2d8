//! `encoder` of logs: `format …`, or `wrap …` within another one.

use crate::document::Node;
use crate::handlers::others::pairs;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn read(r: &mut Reader, node: &Node, option: &str) -> Option<Line> {
    let fields = r.object(node);
    let Some(kind) = fields.take("format").and_then(|node| r.text(node)) else {
        r.error(node, "an encoder needs its name: \"format\": \"json\"");
        return None;
    };
    let mut words = vec![kind.clone()];
    let lines = match kind.text.as_str() {
        "json" | "console" => plain(r, &fields),
        "transform" | "formatted" => {
            words.extend(fields.take("template").and_then(|node| r.text(node)));
            transform(r, &fields)
        }
        "journald" => wrapped(r, &fields),
        "filter" => filter(r, &fields),
        "append" => append(r, &fields),
        // That there is none such is the Caddyfile's to say.
        _ => {
            fields.rest();
            Vec::new()
        }
    };
    fields.finish(r, &format!("the format `{}`", kind.text));
    Some(match lines.is_empty() {
        true => line(node, option, words),
        false => block(node, option, words, lines),
    })
}

fn transform(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = plain(r, fields);
    lines.append(&mut r.options(
        fields,
        &[("placeholder", "placeholder", Kind::Text), ("unescape_strings", "unescape_strings", Kind::Flag)],
    ));
    lines
}

fn plain(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    r.options(
        fields,
        &[
            ("message_key", "message_key", Kind::Text),
            ("level_key", "level_key", Kind::Text),
            ("time_key", "time_key", Kind::Text),
            ("name_key", "name_key", Kind::Text),
            ("caller_key", "caller_key", Kind::Text),
            ("stacktrace_key", "stacktrace_key", Kind::Text),
            ("line_ending", "line_ending", Kind::Text),
            ("time_format", "time_format", Kind::Text),
            ("time_local", "time_local", Kind::Flag),
            ("duration_format", "duration_format", Kind::Text),
            ("level_format", "level_format", Kind::Text),
        ],
    )
}

fn wrapped(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    fields.take("wrap").and_then(|node| read(r, node, "wrap")).into_iter().collect()
}

fn append(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = wrapped(r, fields);
    lines.extend(fields.take("fields").map(|node| block(node, "fields", Vec::new(), pairs(r, node))));
    lines
}

fn filter(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = wrapped(r, fields);
    let Some(node) = fields.take("fields") else { return lines };
    r.object(node);
    let mut inner = Vec::new();
    for member in node.members() {
        let own = r.object(&member.value);
        let Some(kind) = own.take("filter").and_then(|node| r.text(node)) else {
            r.error(&member.value, "a filter needs its name: \"filter\": \"delete\"");
            continue;
        };
        let (args, actions) = of_field(r, &own, &kind.text);
        own.finish(r, &format!("the filter `{}`", kind.text));
        let args = std::iter::once(kind).chain(args).collect();
        inner.push(match actions.is_empty() {
            true => line(&member.value, &member.name, args),
            false => block(&member.value, &member.name, args, actions),
        });
    }
    lines.push(block(node, "fields", Vec::new(), inner));
    lines
}

/// The words behind the name of a filter, and its block.
fn of_field(r: &mut Reader, fields: &Fields<'_>, kind: &str) -> (Vec<Token>, Vec<Line>) {
    let mut text =
        |key| fields.take(key).and_then(|node| r.text(node)).unwrap_or_else(|| word(fields.node, ""));
    match kind {
        "replace" => (vec![text("value")], Vec::new()),
        "rename" => (vec![text("name")], Vec::new()),
        "regexp" => (vec![text("regexp"), text("value")], Vec::new()),
        "query" => (Vec::new(), actions(r, fields, "parameter")),
        "cookie" => (Vec::new(), actions(r, fields, "name")),
        "multi_regexp" => (Vec::new(), operations(r, fields)),
        "ip_mask" => (
            Vec::new(),
            r.options(fields, &[("ipv4_cidr", "ipv4", Kind::Number), ("ipv6_cidr", "ipv6", Kind::Number)]),
        ),
        _ => (Vec::new(), Vec::new()),
    }
}

fn actions(r: &mut Reader, fields: &Fields<'_>, key: &'static str) -> Vec<Line> {
    let mut lines = Vec::new();
    for action in fields.take("actions").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(action);
        let kind = own.take("type").and_then(|node| r.text(node)).unwrap_or_else(|| word(action, ""));
        let name = own.take(key).and_then(|node| r.text(node)).unwrap_or_else(|| word(action, ""));
        let value = own.take("value").and_then(|node| r.text(node)).unwrap_or_else(|| word(action, ""));
        own.finish(r, "an action");
        let args = if kind.text == "replace" { vec![name, value] } else { vec![name] };
        lines.push(line(action, &kind.text, args));
    }
    lines
}

fn operations(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for operation in fields.take("operations").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(operation);
        let mut text =
            |key| own.take(key).and_then(|node| r.text(node)).unwrap_or_else(|| word(operation, ""));
        let args = vec![text("regexp"), text("value")];
        own.finish(r, "an operation");
        lines.push(line(operation, "regexp", args));
    }
    lines
}
