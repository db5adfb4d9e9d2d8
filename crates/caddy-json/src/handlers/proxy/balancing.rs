//! `load_balancing` and `dynamic_upstreams`.

use super::retry_match;
use crate::document::{Node, Value};
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn read(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("retries", "lb_retries", Kind::Number),
            ("try_duration", "lb_try_duration", Kind::Duration),
            ("try_interval", "lb_try_interval", Kind::Duration),
        ],
    );
    lines.extend(fields.take("selection_policy").and_then(|node| policy(r, node, "lb_policy")));
    if let Some(node) = fields.take("retry_match") {
        lines.append(&mut retry_match(r, node));
    }
    fields.finish(r, "`load_balancing`");
    lines
}

/// `lb_policy NAME …`, or `fallback NAME …` within it.
fn policy(r: &mut Reader, node: &Node, option: &str) -> Option<Line> {
    let fields = r.object(node);
    let Some(name) = fields.take("policy").and_then(|node| r.text(node)) else {
        r.error(node, "a policy needs its name: \"policy\": \"round_robin\"");
        return None;
    };
    let key = match name.text.as_str() {
        "header" => Some("field"),
        "query" => Some("key"),
        "random_choose" => Some("choose"),
        "cookie" => Some("name"),
        _ => None,
    };
    let mut args = vec![name.clone()];
    args.extend(key.and_then(|key| fields.take(key)).and_then(|node| r.scalar(node)));
    if name.text == "cookie" {
        cookie_secret(r, &fields, &mut args);
    }
    for weight in fields.take("weights").map(|node| r.list(node)).unwrap_or_default() {
        args.extend(r.number(weight));
    }
    let mut lines = r.options(&fields, &[("max_age", "max_age", Kind::Duration)]);
    lines.extend(fields.take("fallback").and_then(|node| policy(r, node, "fallback")));
    fields.finish(r, "a policy");
    match lines.is_empty() {
        true => Some(line(node, option, args)),
        false => Some(block(node, option, args, lines)),
    }
}

/// It stands behind the name, which is there then.
fn cookie_secret(r: &mut Reader, fields: &Fields<'_>, args: &mut Vec<Token>) {
    let Some(secret) =
        fields.take("secret").and_then(|node| r.text(node)).filter(|secret| !secret.text.is_empty())
    else {
        return;
    };
    if args.len() == 1 {
        args.push(word(fields.node, "lb"));
    }
    args.push(secret);
}

pub(super) fn dynamic(r: &mut Reader, node: &Node) -> Option<Line> {
    let source = source(r, node)?;
    let args = std::iter::once(source.name).chain(source.args).collect();
    Some(Line { name: word(node, "dynamic"), args, block: source.block })
}

fn source(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let Some(name) = fields.take("source").and_then(|node| r.text(node)) else {
        r.error(node, "a source of upstreams needs its name: \"source\": \"a\"");
        return None;
    };
    let lines = match name.text.as_str() {
        "multi" => {
            let sources = fields.take("sources").map(|node| r.list(node)).unwrap_or_default();
            sources.iter().filter_map(|node| source(r, node)).collect()
        }
        _ => records(r, &fields),
    };
    fields.finish(r, "a source of upstreams");
    Some(Line { name, args: Vec::new(), block: Some(lines) })
}

fn records(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("name", "name", Kind::Text),
            ("port", "port", Kind::Scalar),
            ("service", "service", Kind::Text),
            ("proto", "proto", Kind::Text),
            ("refresh", "refresh", Kind::Duration),
            ("grace_period", "grace_period", Kind::Duration),
            ("dial_timeout", "dial_timeout", Kind::Duration),
            ("dial_fallback_delay", "dial_fallback_delay", Kind::Duration),
        ],
    );
    lines.extend(fields.take("resolver").and_then(|node| resolvers(r, node)));
    lines.extend(fields.take("versions").and_then(|node| versions(r, node)));
    lines
}

pub(super) fn resolvers(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let addresses = fields.take("addresses").map(|node| r.texts(node)).unwrap_or_default();
    fields.finish(r, "`resolver`");
    (!addresses.is_empty()).then(|| line(node, "resolvers", addresses))
}

/// Those that are true, or all but those that are false.
fn versions(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let said: Vec<_> =
        ["ipv4", "ipv6"].into_iter().map(|name| (name, fields.take(name).map(|node| r.bool(node)))).collect();
    fields.finish(r, "`versions`");
    let names_some = said.iter().any(|(_, value)| *value == Some(true));
    let wanted = said.iter().filter(|(_, value)| value.unwrap_or(!names_some));
    let words: Vec<_> = wanted.map(|(name, _)| word(node, name)).collect();
    match (&node.value, words.is_empty()) {
        (Value::Object(_), false) => Some(line(node, "versions", words)),
        _ => None,
    }
}
