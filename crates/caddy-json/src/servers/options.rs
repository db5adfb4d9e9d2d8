//! What a server says beside its routes: the options `servers` of a Caddyfile.

use super::{flag, words};
use crate::document::{Node, Value};
use crate::own;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::Line;

pub(super) fn read(r: &mut Reader, fields: &Fields<'_>, name: &str, index: usize) -> Vec<Line> {
    let mut lines = timeouts(r, fields);
    lines.append(&mut r.options(
        fields,
        &[
            ("keepalive_interval", "keepalive_interval", Kind::Duration),
            ("keepalive_idle", "keepalive_idle", Kind::Duration),
            ("keepalive_count", "keepalive_count", Kind::Number),
            ("max_header_bytes", "max_header_size", Kind::Number),
            ("enable_full_duplex", "enable_full_duplex", Kind::Flag),
            ("expected_underscore_headers", "expected_underscore_headers", Kind::Texts),
            ("expected_dot_headers", "expected_dot_headers", Kind::Texts),
            ("client_ip_headers", "client_ip_headers", Kind::Texts),
            ("trusted_proxies_unix", "trusted_proxies_unix", Kind::Flag),
            ("protocols", "protocols", Kind::Texts),
        ],
    ));
    lines.extend(fields.take("listener_wrappers").map(|node| wrappers(r, node)));
    lines.extend(fields.take("packet_conn_wrappers").map(|node| flag(node, "packet_conn_wrappers")));
    lines.extend(fields.take("trusted_proxies").map(|node| trusted_proxies(r, node)));
    let strict = fields.take("trusted_proxies_strict").and_then(|node| Some((node, r.number(node)?)));
    lines.extend(
        strict.filter(|(_, number)| number.text != "0").map(|(node, _)| flag(node, "trusted_proxies_strict")),
    );
    if let Some(node) = fields.take("strict_sni_host") {
        let word = if r.bool(node) { "on" } else { "insecure_off" };
        lines.push(words(node, "strict_sni_host", &[word]));
    }
    if let Some(node) = fields.take("allow_0rtt") {
        match r.bool(node) {
            true => r.error(
                node,
                "Regent takes no requests in 0-RTT, which others could send again; leave `allow_0rtt` out",
            ),
            false => lines.push(words(node, "0rtt", &["off"])),
        }
    }
    if let Some(node) = fields.take("metrics") {
        let own = r.object(node);
        let options = r.options(&own, &[("per_host", "per_host", Kind::Flag)]);
        own.finish(r, "`metrics`");
        lines.push(block(node, "metrics", Vec::new(), options));
    }
    listen_protocols(r, fields);
    lines.append(&mut of_logs(r, fields));
    // Regent's own options of a server.
    lines.extend(fields.take("regent").map(|node| own::lines(r, node)).unwrap_or_default());
    if name != format!("srv{index}") {
        lines.push(words(fields.node, "name", &[name]));
    }
    lines
}

fn timeouts(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("read_timeout", "read_body", Kind::Duration),
            ("read_header_timeout", "read_header", Kind::Duration),
            ("write_timeout", "write", Kind::Duration),
            ("write_idle_timeout", "write_idle", Kind::Duration),
            ("max_write_chunk", "write_max_chunk", Kind::Number),
            ("idle_timeout", "idle", Kind::Duration),
        ],
    );
    let rate = fields.take("read_min_rate").and_then(|node| r.number(node));
    match fields.take("read_idle_timeout") {
        Some(node) => {
            let duration = r.duration(node);
            lines.push(line(node, "read_body_idle", duration.into_iter().chain(rate).collect()));
        }
        None if rate.is_some() => {
            r.error(fields.node, "`read_min_rate` belongs to `read_idle_timeout`, which is not there");
        }
        None => {}
    }
    if let Some(node) = fields.take("write_min_rate").filter(|node| !is_zero(node)) {
        r.error(
            node,
            "Regent has no least rate of responses; `write_idle_timeout` bounds the silence of a client",
        );
    }
    match lines.is_empty() {
        true => lines,
        false => vec![block(fields.node, "timeouts", Vec::new(), lines)],
    }
}

fn is_zero(node: &Node) -> bool {
    matches!(&node.value, Value::Number(text) if text == "0")
}

fn wrappers(r: &mut Reader, list: &Node) -> Line {
    let mut lines = Vec::new();
    for item in r.list(list) {
        let fields = r.object(item);
        let Some(name) = fields.take("wrapper").and_then(|node| r.text(node)) else {
            r.error(item, "a wrapper needs its name: \"wrapper\": \"tls\"");
            continue;
        };
        let options = match name.text.as_str() {
            "proxy_protocol" => proxy_protocol(r, &fields),
            _ => Vec::new(),
        };
        fields.finish(r, &format!("the wrapper `{}`", name.text));
        lines.push(match options.is_empty() {
            true => line(item, &name.text, Vec::new()),
            false => block(item, &name.text, Vec::new(), options),
        });
    }
    block(list, "listener_wrappers", Vec::new(), lines)
}

fn proxy_protocol(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let table = [
        ("timeout", "timeout", Kind::Duration),
        ("allow", "allow", Kind::Texts),
        ("deny", "deny", Kind::Texts),
        ("fallback_policy", "fallback_policy", Kind::Text),
    ];
    r.options(fields, &table)
}

fn trusted_proxies(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let source = fields.take("source").and_then(|node| r.text(node)).unwrap_or_else(|| word(node, ""));
    let ranges = fields.take("ranges").map(|node| r.texts(node)).unwrap_or_default();
    if source.text == "static" {
        fields.finish(r, "`trusted_proxies`");
    } else {
        // Only that there is no such source is said of another one.
        fields.rest();
    }
    line(node, "trusted_proxies", std::iter::once(source).chain(ranges).collect())
}

/// `null` for an address is as if nothing were said.
fn listen_protocols(r: &mut Reader, fields: &Fields<'_>) {
    let Some(node) = fields.take("listen_protocols") else { return };
    if r.list(node).iter().any(|item| !item.is_null()) {
        r.error(node, "Regent has the same protocols at all addresses of a server; write `protocols`, or another server");
    }
}

/// What `logs` says of all logs of a server.
fn of_logs(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let Some(logs) = fields.node.get("logs") else { return Vec::new() };
    let mut lines = Vec::new();
    for (key, name) in [("should_log_credentials", "log_credentials"), ("trace", "trace")] {
        let value = logs.get(key).filter(|node| r.bool(node));
        lines.extend(value.map(|node| flag(node, name)));
    }
    lines
}
