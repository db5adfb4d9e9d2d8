//! `reverse_proxy`.

mod balancing;
pub(crate) mod transport;

use super::{directive, headers, others, rewrite};
use crate::document::Node;
use crate::matchers;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn reverse_proxy(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for item in fields.take("upstreams").map(|node| r.list(node)).unwrap_or_default() {
        lines.extend(upstream(r, item));
    }
    if let Some(node) = fields.take("dynamic_upstreams") {
        lines.extend(balancing::dynamic(r, node));
    }
    lines.extend(fields.take("transport").map(|node| transport::read(r, node)));
    if let Some(node) = fields.take("load_balancing") {
        lines.append(&mut balancing::read(r, node));
    }
    if let Some(node) = fields.take("health_checks") {
        lines.append(&mut health(r, node));
    }
    lines.append(&mut r.options(
        fields,
        &[
            ("flush_interval", "flush_interval", Kind::Duration),
            ("trusted_proxies", "trusted_proxies", Kind::Texts),
            ("stream_timeout", "stream_timeout", Kind::Duration),
            ("stream_buffer_size", "stream_buffer_size", Kind::Number),
            ("stream_close_delay", "stream_close_delay", Kind::Duration),
            ("verbose_logs", "verbose_logs", Kind::Flag),
        ],
    ));
    for key in ["request_buffers", "response_buffers"] {
        lines.extend(fields.take(key).and_then(|node| buffers(r, node, key)));
    }
    if let Some(node) = fields.take("headers") {
        lines.append(&mut fields_of_upstream(r, node));
    }
    if let Some(node) = fields.take("rewrite") {
        lines.append(&mut rewrites(r, node));
    }
    if let Some(node) = fields.take("handle_response") {
        lines.append(&mut others::responses(r, node));
    }
    if let Some(node) = fields.take("circuit_breaker") {
        r.error(node, "Regent has no circuit breakers for upstreams; `health_checks` with `passive` keeps requests from those that fail");
    }
    directive(fields, "reverse_proxy", Vec::new(), lines)
}

fn upstream(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let dial = fields.take("dial").and_then(|node| r.text(node));
    if let Some(node) = fields.take("max_requests") {
        r.error(node, "Regent bounds the requests of all upstreams alike: `unhealthy_request_count` of passive `health_checks`");
    }
    fields.finish(r, "an upstream");
    match dial {
        Some(dial) => Some(line(node, "to", vec![dial])),
        None => {
            r.error(node, "an upstream needs its address: \"dial\": \"localhost:9000\"");
            None
        }
    }
}

/// Less than 0: as many as there are.
fn buffers(r: &mut Reader, node: &Node, name: &str) -> Option<Line> {
    let size = r.number(node)?;
    let size = if size.text.starts_with('-') { word(node, "unlimited") } else { size };
    Some(line(node, name, vec![size]))
}

fn health(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    if let Some(node) = fields.take("active") {
        lines.append(&mut active(r, node));
    }
    if let Some(node) = fields.take("passive") {
        let own = r.object(node);
        lines.append(&mut r.options(
            &own,
            &[
                ("fail_duration", "fail_duration", Kind::Duration),
                ("max_fails", "max_fails", Kind::Number),
                ("unhealthy_request_count", "unhealthy_request_count", Kind::Number),
                ("unhealthy_latency", "unhealthy_latency", Kind::Duration),
            ],
        ));
        if let Some(node) = own.take("unhealthy_status") {
            let codes: Vec<_> =
                r.list(node).iter().filter_map(|code| r.number(code).map(headers::status)).collect();
            lines.push(line(node, "unhealthy_status", codes));
        }
        own.finish(r, "`passive`");
    }
    fields.finish(r, "`health_checks`");
    lines
}

fn active(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("path", "health_path", Kind::Text),
            ("uri", "health_uri", Kind::Text),
            ("port", "health_port", Kind::Number),
            ("upstream", "health_upstream", Kind::Text),
            ("method", "health_method", Kind::Text),
            ("body", "health_request_body", Kind::Text),
            ("follow_redirects", "health_follow_redirects", Kind::Flag),
            ("interval", "health_interval", Kind::Duration),
            ("timeout", "health_timeout", Kind::Duration),
            ("passes", "health_passes", Kind::Number),
            ("fails", "health_fails", Kind::Number),
            ("max_size", "health_max_size", Kind::Number),
            ("expect_body", "health_body", Kind::Text),
        ],
    );
    if let Some(status) = fields.take("expect_status").and_then(|node| r.number(node)) {
        lines.push(line(node, "health_status", vec![headers::status(status)]));
    }
    if let Some(node) = fields.take("headers") {
        let values = headers::values(r, node);
        let fields =
            values.into_iter().map(|(field, value)| Line { name: field, args: vec![value], block: None });
        lines.push(block(node, "health_headers", Vec::new(), fields.collect()));
    }
    fields.finish(r, "`active`");
    lines
}

fn fields_of_upstream(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    for (key, name) in [("request", "header_up"), ("response", "header_down")] {
        let Some(node) = fields.take(key) else { continue };
        let own = r.object(node);
        for (field, values) in headers::operations(r, &own) {
            lines.push(line(node, name, [vec![field], values].concat()));
        }
        // They are set when they have come from the upstream, which is as late as it can be.
        own.take("deferred");
        if let Some(require) = own.take("require") {
            r.error(
                require,
                "Regent changes the fields of all responses of an upstream alike; write `handle_response`",
            );
        }
        own.finish(r, "the changes of a header");
    }
    fields.finish(r, "`headers`");
    lines
}

/// The method and the URI that the upstream sees.
fn rewrites(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    for line in rewrite::rewrite(r, &fields) {
        // Without the `*` of a directive.
        let args: Vec<Token> = line.args[1..].to_vec();
        match line.name.text.as_str() {
            "method" | "rewrite" => lines.push(Line { args, ..line }),
            _ => r.error(node, "an upstream's URI is `uri` of `rewrite`; put other changes into a handler `rewrite` before `reverse_proxy`"),
        }
    }
    fields.finish(r, "`rewrite`");
    lines
}

/// Conditions on a request, as lines `lb_retry_match { … }`.
fn retry_match(r: &mut Reader, list: &Node) -> Vec<Line> {
    r.list(list).iter().map(|set| block(set, "lb_retry_match", Vec::new(), matchers::set(r, set))).collect()
}
