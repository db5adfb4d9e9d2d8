//! `transport`: how upstreams are talked to.

use super::balancing::resolvers;
use crate::document::Node;
use crate::handlers::others::pairs;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::Line;

pub(super) fn read(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let protocol =
        fields.take("protocol").and_then(|node| r.text(node)).unwrap_or_else(|| word(node, "http"));
    let lines = match protocol.text.as_str() {
        "fastcgi" => fastcgi(r, &fields),
        "http" => http(r, &fields),
        // The Caddyfile's own message says which there are.
        _ => {
            fields.rest();
            Vec::new()
        }
    };
    fields.finish(r, "`transport`");
    block(node, "transport", vec![protocol], lines)
}

fn fastcgi(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("root", "root", Kind::Text),
            ("split_path", "split", Kind::Texts),
            ("resolve_root_symlink", "resolve_root_symlink", Kind::Flag),
            ("dial_timeout", "dial_timeout", Kind::Duration),
            ("read_timeout", "read_timeout", Kind::Duration),
            ("write_timeout", "write_timeout", Kind::Duration),
            ("capture_stderr", "capture_stderr", Kind::Flag),
        ],
    );
    if let Some(node) = fields.take("env") {
        lines.push(block(node, "env", Vec::new(), pairs(r, node)));
    }
    lines
}

fn http(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("max_conns_per_host", "max_conns_per_host", Kind::Number),
            ("proxy_protocol", "proxy_protocol", Kind::Text),
            ("forward_proxy_url", "forward_proxy_url", Kind::Text),
            ("dial_timeout", "dial_timeout", Kind::Duration),
            ("dial_fallback_delay", "dial_fallback_delay", Kind::Duration),
            ("response_header_timeout", "response_header_timeout", Kind::Duration),
            ("expect_continue_timeout", "expect_continue_timeout", Kind::Duration),
            ("max_response_header_size", "max_response_header", Kind::Number),
            ("write_buffer_size", "write_buffer", Kind::Number),
            ("read_buffer_size", "read_buffer", Kind::Number),
            ("read_timeout", "read_timeout", Kind::Duration),
            ("write_timeout", "write_timeout", Kind::Duration),
            ("versions", "versions", Kind::Texts),
            ("local_address", "local_address", Kind::Text),
        ],
    );
    lines.extend(fields.take("resolver").and_then(|node| resolvers(r, node)));
    if let Some(node) = fields.take("network_proxy") {
        lines.extend(network_proxy(r, node));
    }
    if let Some(node) = fields.take("keep_alive") {
        lines.append(&mut keep_alive(r, node));
    }
    if let Some(node) = fields.take("compression") {
        match r.bool(node) {
            true => r.error(node, "Regent asks upstreams for compressed responses where the client does; leave `compression` out"),
            false => lines.push(line(node, "compression", vec![word(node, "off")])),
        }
    }
    if let Some(node) = fields.take("tls") {
        lines.append(&mut tls(r, node));
    }
    lines
}

fn network_proxy(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let from = fields.take("from").and_then(|node| r.text(node))?;
    let url = fields.take("url").and_then(|node| r.text(node));
    fields.finish(r, "`network_proxy`");
    Some(line(node, "network_proxy", std::iter::once(from).chain(url).collect()))
}

fn keep_alive(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let is_off = fields.take("enabled").is_some_and(|node| !r.bool(node));
    let idle = fields.take("idle_timeout").and_then(|node| r.duration(node));
    let mut lines = r.options(
        &fields,
        &[
            ("probe_interval", "keepalive_interval", Kind::Duration),
            ("max_idle_conns", "keepalive_idle_conns", Kind::Number),
            ("max_idle_conns_per_host", "keepalive_idle_conns_per_host", Kind::Number),
        ],
    );
    fields.finish(r, "`keep_alive`");
    let keepalive = if is_off { Some(word(node, "off")) } else { idle };
    lines.extend(keepalive.map(|value| line(node, "keepalive", vec![value])));
    lines
}

fn tls(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = vec![line(node, "tls", Vec::new())];
    lines.append(&mut r.options(
        &fields,
        &[
            ("root_ca_pem_files", "tls_trusted_ca_certs", Kind::Texts),
            ("insecure_skip_verify", "tls_insecure_skip_verify", Kind::Flag),
            ("handshake_timeout", "tls_timeout", Kind::Duration),
            ("server_name", "tls_server_name", Kind::Text),
            ("renegotiation", "tls_renegotiation", Kind::Text),
            ("except_ports", "tls_except_ports", Kind::Texts),
            ("curves", "tls_curves", Kind::Texts),
        ],
    ));
    if let Some(ca) = fields.take("ca") {
        lines.extend(trust_pool(r, ca, "tls_trust_pool"));
    }
    let certificate = fields.take("client_certificate_file").and_then(|node| r.text(node));
    let key = fields.take("client_certificate_key_file").and_then(|node| r.text(node));
    if certificate.is_some() || key.is_some() {
        lines.push(line(node, "tls_client_auth", certificate.into_iter().chain(key).collect()));
    }
    for key in ["root_ca_pool", "client_certificate_automate"] {
        if let Some(node) = fields.take(key) {
            r.error(
                node,
                format_args!(
                    "`{key}` is not built yet in Regent; certificates for upstreams come from files"
                ),
            );
        }
    }
    fields.finish(r, "`tls`");
    lines
}

/// `OPTION file PATH…`, or another source of roots.
pub(crate) fn trust_pool(r: &mut Reader, node: &Node, option: &str) -> Option<Line> {
    let source = source(r, node)?;
    let args = std::iter::once(source.name).chain(source.args).collect();
    Some(Line { name: word(node, option), args, block: source.block })
}

fn source(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let Some(name) = fields.take("provider").and_then(|node| r.text(node)) else {
        r.error(node, "a source of roots needs its name: \"provider\": \"file\"");
        return None;
    };
    let (args, lines) = match name.text.as_str() {
        "file" => (fields.take("pem_files").map(|node| r.texts(node)), None),
        "pki_root" => (fields.take("authority").map(|node| r.texts(node)), None),
        "inline" => (None, Some(r.options(&fields, &[("trusted_ca_certs", "trust_der", Kind::Texts)]))),
        "combined" => {
            let sources = fields.take("sources").map(|node| r.list(node)).unwrap_or_default();
            (None, Some(sources.iter().filter_map(|node| trust_pool(r, node, "source")).collect()))
        }
        // That there is none such is the Caddyfile's to say.
        _ => {
            fields.rest();
            (None, None)
        }
    };
    fields.finish(r, "a source of roots");
    Some(Line { name, args: args.unwrap_or_default(), block: lines })
}
