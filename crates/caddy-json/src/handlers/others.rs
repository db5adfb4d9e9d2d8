//! Handlers whose keys are the options of a directive, or nearly.

use super::headers::response_conditions;
use super::{directive, routes};
use crate::document::{Node, Value};
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn request_body(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let lines = r.options(
        fields,
        &[
            ("max_size", "max_size", Kind::Number),
            ("read_timeout", "read_timeout", Kind::Duration),
            ("write_timeout", "write_timeout", Kind::Duration),
            ("set", "set", Kind::Text),
        ],
    );
    directive(fields, "request_body", Vec::new(), lines)
}

pub(super) fn timeouts(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(fields, &[("max_write_chunk", "max_write_chunk", Kind::Number)]);
    for (key, rate, name) in [
        ("read_timeout", "read_min_rate", "read_timeout"),
        ("write_timeout", "write_min_rate", "write_timeout"),
    ] {
        let rate = fields.take(rate).and_then(|node| r.number(node));
        let Some(node) = fields.take(key) else { continue };
        let duration = r.duration(node);
        lines.push(line(node, name, duration.into_iter().chain(rate).collect()));
    }
    directive(fields, "timeouts", Vec::new(), lines)
}

pub(super) fn map(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let source = fields.take("source").and_then(|node| r.text(node));
    let destinations = fields.take("destinations").map(|node| r.texts(node)).unwrap_or_default();
    let mut lines = Vec::new();
    for item in fields.take("mappings").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(item);
        let text = own.take("input").and_then(|node| r.text(node));
        let pattern = own.take("input_regexp").and_then(|node| r.text(node));
        let outputs = own.take("outputs").map(|node| outputs(r, node)).unwrap_or_default();
        own.finish(r, "a mapping");
        if text.as_ref().is_some_and(|text| text.text.starts_with('~')) {
            r.error(
                item,
                "an input of `map` that begins with `~` is a regular expression: write `input_regexp`",
            );
        }
        let input = match pattern {
            Some(pattern) => format!("~{}", pattern.text),
            None => text.map(|text| text.text).unwrap_or_default(),
        };
        lines.push(line(item, &input, outputs));
    }
    if let Some(node) = fields.take("defaults") {
        let defaults = r.texts(node);
        let name = Token { quoted: false, ..word(node, "default") };
        lines.push(Line { name, args: defaults, block: None });
    }
    let args = source.into_iter().chain(destinations).collect();
    directive(fields, "map", args, lines)
}

/// `null` leaves an output to the default, as `-` does in a Caddyfile.
fn outputs(r: &mut Reader, node: &Node) -> Vec<Token> {
    let mut outputs = Vec::new();
    for item in r.list(node) {
        match item.value {
            Value::Null => outputs.push(word(item, "-")),
            _ if item.as_text() == Some("-") => {
                r.error(item, "`-` stands for the default in Regent, as in a Caddyfile; write null for that, or another text");
            }
            _ => outputs.extend(r.scalar(item)),
        }
    }
    outputs
}

pub(super) fn authentication(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let Some(providers) = fields.take("providers") else {
        r.error(fields.node, "`authentication` needs `providers`, such as {\"http_basic\": {…}}");
        return Vec::new();
    };
    let own = r.object(providers);
    let basic = own.take("http_basic").map(|node| basic_auth(r, fields, node));
    for member in own.rest() {
        r.error(
            &member.value,
            format_args!(
                "`{}` is a third party's way to log in, and Regent has `http_basic` alone",
                member.name
            ),
        );
    }
    basic.unwrap_or_default()
}

fn basic_auth(r: &mut Reader, fields: &Fields<'_>, node: &Node) -> Vec<Line> {
    let own = r.object(node);
    let hash = own.take("hash").map(|node| (r.object(node), node));
    let algorithm = hash.and_then(|(fields, _)| {
        let algorithm = fields.take("algorithm").and_then(|node| r.text(node));
        // How hashes are made is nothing to whoever checks them.
        for name in ["cost", "key_len", "memory", "salt", "threads", "time"] {
            fields.take(name);
        }
        fields.finish(r, "`hash`");
        algorithm
    });
    let realm = own.take("realm").and_then(|node| r.text(node));
    // Regent remembers a password that was right in any case.
    own.take("hash_cache");
    let mut users = Vec::new();
    for account in own.take("accounts").map(|node| r.list(node)).unwrap_or_default() {
        let one = r.object(account);
        let name = one.take("username").and_then(|node| r.text(node));
        let password = one.take("password").and_then(|node| r.text(node));
        one.finish(r, "an account");
        match (name, password) {
            (Some(name), Some(password)) => users.push(Line { name, args: vec![password], block: None }),
            _ => r.error(account, "an account needs `username` and `password`"),
        }
    }
    own.finish(r, "`http_basic`");
    let algorithm = algorithm.unwrap_or_else(|| word(node, "bcrypt"));
    directive(fields, "basic_auth", std::iter::once(algorithm).chain(realm).collect(), users)
}

pub(super) fn intercept(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let lines = fields.take("handle_response").map(|node| responses(r, node)).unwrap_or_default();
    directive(fields, "intercept", Vec::new(), lines)
}

/// `handle_response` of `intercept` and `reverse_proxy`: rules of which the first that fits a response counts.
pub(super) fn responses(r: &mut Reader, list: &Node) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut fits_all = false;
    for (index, rule) in r.list(list).iter().enumerate() {
        if fits_all {
            r.warn(
                rule,
                "this is never reached: the rule before it has no `match`, and so is for all responses",
            );
            break;
        }
        let fields = r.object(rule);
        let name = fields.take("match").map(|node| {
            let name = format!("@{index}");
            lines.push(block(node, &name, Vec::new(), response_conditions(r, node)));
            word(node, &name)
        });
        fits_all = name.is_none();
        let name: Vec<_> = name.into_iter().collect();
        if let Some(status) = fields.take("status_code").and_then(|node| r.scalar(node)) {
            lines.push(line(rule, "replace_status", [name.clone(), vec![status]].concat()));
        } else {
            let inner = fields.take("routes").map(|node| routes::lines(r, node)).unwrap_or_default();
            lines.push(block(rule, "handle_response", name, inner));
        }
        fields.finish(r, "a rule for responses");
    }
    lines
}

pub(super) fn log_append(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let key = fields.take("key").and_then(|node| r.text(node));
    let value = fields.take("value").and_then(|node| r.scalar(node));
    let is_early = fields.take("early").is_some_and(|node| r.bool(node));
    let key = key
        .map(|key| Token { text: if is_early { format!("<{}", key.text) } else { key.text.clone() }, ..key });
    directive(fields, "log_append", key.into_iter().chain(value).collect(), Vec::new())
}

pub(super) fn copy_response(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let status = fields.take("status_code").and_then(|node| r.scalar(node));
    directive(fields, "copy_response", status.into_iter().collect(), Vec::new())
}

pub(super) fn copy_response_headers(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let lines =
        r.options(fields, &[("include", "include", Kind::Texts), ("exclude", "exclude", Kind::Texts)]);
    directive(fields, "copy_response_headers", Vec::new(), lines)
}

pub(super) fn tracing(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    // Caddy's adapter writes an empty name where there is none.
    if let Some(span) = fields.take("span").and_then(|node| r.text(node)).filter(|span| !span.text.is_empty())
    {
        lines.push(line(fields.node, "span", vec![span]));
    }
    if let Some(node) = fields.take("span_attributes") {
        lines.push(block(node, "span_attributes", Vec::new(), pairs(r, node)));
    }
    directive(fields, "tracing", Vec::new(), lines)
}

pub(super) fn metrics(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let lines = r.options(fields, &[("disable_openmetrics", "disable_openmetrics", Kind::Flag)]);
    directive(fields, "metrics", Vec::new(), lines)
}

/// What has no effect in a Caddyfile has none here, and says so, whatever its options are.
pub(super) fn without_effect(fields: &Fields<'_>, name: &str) -> Vec<Line> {
    fields.rest();
    vec![line(fields.node, name, Vec::new())]
}

/// The members of an object as lines `NAME VALUE`.
pub(crate) fn pairs(r: &mut Reader, node: &Node) -> Vec<Line> {
    r.object(node);
    let mut lines = Vec::new();
    for member in node.members() {
        let value = r.scalar(&member.value);
        lines.extend(value.map(|value| line(&member.value, &member.name, vec![value])));
    }
    lines
}
