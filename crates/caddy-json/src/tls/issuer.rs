//! `issuers` of automation policies.

use crate::document::Node;
use crate::handlers::php::module_options;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::Line;

/// Those of a list, in its order, as lines of `tls`.
pub(super) fn all(r: &mut Reader, list: Option<&Node>) -> Vec<Line> {
    let nodes = list.map(|list| r.list(list)).unwrap_or_default();
    nodes.iter().filter_map(|node| issuer(r, node)).collect()
}

fn issuer(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let Some(name) = fields.take("module").and_then(|node| r.text(node)) else {
        r.error(node, "an issuer needs its name: \"module\": \"acme\"");
        return None;
    };
    let mut arguments = vec![word(node, &name.text)];
    let options = match name.text.as_str() {
        "acme" => acme(r, &fields),
        "internal" => internal(r, &fields),
        "zerossl" => {
            arguments.extend(fields.take("api_key").and_then(|node| r.text(node)));
            zerossl(r, &fields)
        }
        // That there is none such is the Caddyfile's to say.
        _ => {
            fields.rest();
            Vec::new()
        }
    };
    fields.finish(r, &format!("the issuer `{}`", name.text));
    Some(match options.is_empty() {
        true => line(node, "issuer", arguments),
        false => block(node, "issuer", arguments, options),
    })
}

fn zerossl(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("validity_days", "validity_days", Kind::Number),
            ("alternate_http_port", "alt_http_port", Kind::Number),
        ],
    );
    lines.extend(fields.take("cname_validation").map(|node| dns(r, node)).unwrap_or_default());
    lines
}

fn internal(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let table = [
        ("lifetime", "lifetime", Kind::Duration),
        ("ca", "ca", Kind::Text),
        ("sign_with_root", "sign_with_root", Kind::Flag),
    ];
    r.options(fields, &table)
}

fn acme(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("ca", "dir", Kind::Text),
            ("test_ca", "test_dir", Kind::Text),
            ("email", "email", Kind::Text),
            ("profile", "profile", Kind::Text),
            ("acme_timeout", "timeout", Kind::Duration),
            ("trusted_roots_pem_files", "trusted_roots", Kind::Texts),
            ("certificate_lifetime", "lifetime", Kind::Duration),
        ],
    );
    if let Some(node) = fields.take("external_account") {
        let own = r.object(node);
        let id = own.take("key_id").and_then(|node| r.text(node));
        let key = own.take("mac_key").and_then(|node| r.text(node));
        own.finish(r, "`external_account`");
        lines.push(line(node, "eab", id.into_iter().chain(key).collect()));
    }
    if let Some(node) = fields.take("challenges") {
        lines.append(&mut challenges(r, node));
    }
    lines.extend(fields.take("preferred_chains").map(|node| line(node, "preferred_chains", Vec::new())));
    for key in ["account_key", "network_proxy"] {
        if let Some(node) = fields.take(key) {
            r.error(node, format_args!("`{key}` is not built yet in Regent; leave it out"));
        }
    }
    lines
}

fn challenges(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    for (key, disable, port) in [
        ("http", "disable_http_challenge", "alt_http_port"),
        ("tls-alpn", "disable_tlsalpn_challenge", "alt_tlsalpn_port"),
    ] {
        let Some(node) = fields.take(key) else { continue };
        let own = r.object(node);
        if own.take("disabled").is_some_and(|node| r.bool(node)) {
            lines.push(line(node, disable, Vec::new()));
        }
        lines.extend(
            own.take("alternate_port").and_then(|node| Some(line(node, port, vec![r.number(node)?]))),
        );
        own.finish(r, "a challenge");
    }
    lines.extend(fields.take("distributed").map(|node| line(node, "distributed", Vec::new())));
    if let Some(node) = fields.take("bind_host") {
        r.error(node, "Regent answers challenges where its sites listen; leave `bind_host` out");
    }
    if let Some(node) = fields.take("dns") {
        lines.append(&mut dns(r, node));
    }
    fields.finish(r, "`challenges`");
    lines
}

fn dns(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    lines.extend(fields.take("provider").map(|node| provider(r, node)));
    lines.extend(fields.take("propagation_timeout").and_then(|node| {
        let timeout = r.duration(node)?;
        let is_off = timeout.text.starts_with('-');
        Some(line(node, "propagation_timeout", vec![if is_off { word(node, "-1") } else { timeout }]))
    }));
    lines.append(&mut r.options(
        &fields,
        &[
            ("ttl", "dns_ttl", Kind::Duration),
            ("propagation_delay", "propagation_delay", Kind::Duration),
            ("resolvers", "resolvers", Kind::Texts),
            ("override_domain", "dns_challenge_override_domain", Kind::Text),
        ],
    ));
    fields.finish(r, "`dns`");
    lines
}

fn provider(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let name = fields.take("name").and_then(|node| r.text(node)).unwrap_or_else(|| word(node, ""));
    if name.text == "exec" {
        let program = fields.take("program").and_then(|node| r.text(node));
        let arguments = fields.take("arguments").map(|node| r.texts(node)).unwrap_or_default();
        fields.finish(r, "the provider `exec`");
        return line(node, "dns", [name].into_iter().chain(program).chain(arguments).collect());
    }
    let options = module_options(r, &fields);
    match options.is_empty() {
        true => line(node, "dns", vec![name]),
        false => block(node, "dns", vec![name], options),
    }
}
