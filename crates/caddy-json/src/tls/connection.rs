//! `tls_connection_policies`: what is agreed on with clients.

use crate::document::Node;
use crate::handlers::proxy::transport::trust_pool;
use crate::reader::{Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

/// Whether the policy is for handshakes with this name; an empty one stands for any.
pub(super) fn is_for(policy: &Node, host: &str) -> bool {
    match policy.get("match").and_then(|conditions| conditions.get("sni")) {
        None => true,
        Some(names) => {
            names.items().iter().filter_map(Node::as_text).any(|name| super::is_matched(host, name))
        }
    }
}

/// The options of `tls` that the policy is. What it says of all servers is told by [`names`].
pub(super) fn options(r: &mut Reader, policy: &Node) -> Vec<Line> {
    let fields = r.object(policy);
    let mut lines = r.options(
        &fields,
        &[
            ("cipher_suites", "ciphers", Kind::Texts),
            ("curves", "curves", Kind::Texts),
            ("alpn", "alpn", Kind::Texts),
            ("insecure_secrets_log", "insecure_secrets_log", Kind::Text),
        ],
    );
    let least = fields.take("protocol_min").and_then(|node| r.text(node));
    let most = fields.take("protocol_max").and_then(|node| r.text(node));
    if least.is_some() || most.is_some() {
        let least = least.unwrap_or_else(|| word(policy, "tls1.2"));
        lines.push(line(policy, "protocols", std::iter::once(least).chain(most).collect()));
    }
    lines.extend(fields.take("client_authentication").map(|node| client_auth(r, node)));
    if let Some(conditions) = fields.take("match") {
        let own = r.object(conditions);
        own.take("sni");
        for member in own.rest() {
            r.error(
                &member.value,
                format_args!("Regent chooses among policies by `sni` alone, not by `{}`", member.name),
            );
        }
    }
    for key in ["certificate_selection", "default_sni", "fallback_sni"] {
        fields.take(key);
    }
    for key in ["drop", "handshake_context"] {
        if let Some(node) = fields.take(key) {
            r.error(node, format_args!("`{key}` is not built yet in Regent; leave it out"));
        }
    }
    fields.finish(r, "a connection policy");
    lines
}

/// `default_sni` and `fallback_sni` of any policy, which Regent has for all.
pub(super) fn names(r: &mut Reader, policies: &[&Node]) -> Vec<Line> {
    let mut lines = Vec::new();
    for key in ["default_sni", "fallback_sni"] {
        let mut said = policies.iter().filter_map(|policy| policy.get(key));
        let Some(first) = said.next() else { continue };
        if let Some(other) = said.find(|other| other.as_text() != first.as_text()) {
            r.error(
                other,
                format_args!(
                    "Regent has one `{key}` for all connections, and another policy says something else"
                ),
            );
        }
        lines.extend(r.text(first).map(|name| line(first, key, vec![name])));
    }
    lines
}

/// The tags that a choice of certificates names.
pub(super) fn tags(r: &mut Reader, node: &Node) -> Vec<Token> {
    let fields = r.object(node);
    let mut tags = fields.take("any_tag").map(|node| r.texts(node)).unwrap_or_default();
    let all = fields.take("all_tags").map(|node| r.texts(node)).unwrap_or_default();
    match all.as_slice() {
        [] => {}
        [_] => tags.extend(all),
        _ => r.error(node, "Regent chooses certificates by one tag: name it in `any_tag`"),
    }
    fields.finish(r, "`certificate_selection`");
    tags
}

fn client_auth(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("mode", "mode", Kind::Text),
            ("trusted_ca_certs", "trusted_ca_cert", Kind::Texts),
            ("trusted_leaf_certs", "trusted_leaf_cert", Kind::Texts),
        ],
    );
    lines.extend(fields.take("ca").and_then(|node| trust_pool(r, node, "trust_pool")));
    for file in fields.take("trusted_ca_certs_pem_files").map(|node| r.texts(node)).unwrap_or_default() {
        lines.push(line(node, "trusted_ca_cert_file", vec![file]));
    }
    for verifier in fields.take("verifiers").map(|node| r.list(node)).unwrap_or_default() {
        lines.append(&mut leaves(r, verifier));
    }
    fields.finish(r, "`client_authentication`");
    block(node, "client_auth", Vec::new(), lines)
}

/// `{"verifier": "leaf", "leaf_certs_loaders": [{"loader": "file", "files": […]}]}`.
fn leaves(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let name = fields.take("verifier").and_then(|node| r.text(node));
    if name.is_none_or(|name| name.text != "leaf") {
        fields.rest();
        r.error(node, "Regent verifies clients by `ca` and by the verifier `leaf` alone");
        return Vec::new();
    }
    let mut lines = Vec::new();
    for loader in fields.take("leaf_certs_loaders").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(loader);
        let kind = own.take("loader").and_then(|node| r.text(node));
        let files = own.take("files").map(|node| r.texts(node)).unwrap_or_default();
        if kind.is_none_or(|kind| kind.text != "file") {
            own.rest();
            r.error(
                loader,
                "certificates of clients come from files: {\"loader\": \"file\", \"files\": […]}",
            );
        } else {
            own.finish(r, "a loader");
        }
        lines.extend(files.into_iter().map(|file| line(loader, "trusted_leaf_cert_file", vec![file])));
    }
    fields.finish(r, "a verifier");
    lines
}
