//! What the apps `tls` and `pki` say of all sites: global options.

use super::connection;
use crate::document::{Node, Value};
use crate::reader::{Kind, Reader, block, line, word};
use regent_caddyfile::Line;

/// The global options of the app. `servers`: that of the app `http`, whose policies name servers.
pub(crate) fn options(r: &mut Reader, app: Option<&Node>, servers: Option<&Node>) -> Vec<Line> {
    let servers = servers.map(Node::members).unwrap_or_default().iter().map(|member| &member.value);
    let policies: Vec<_> =
        servers.filter_map(|server| server.get("tls_connection_policies")).flat_map(Node::items).collect();
    let mut lines = connection::names(r, &policies);
    let Some(app) = app else { return lines };
    let fields = r.object(app);
    if let Some(node) = fields.take("certificates") {
        certificates(r, node);
    }
    if let Some(node) = fields.take("automation") {
        lines.append(&mut automation(r, node));
    }
    if fields.take("disable_ocsp_stapling").is_some_and(|node| r.bool(node)) {
        lines.push(line(app, "ocsp_stapling", vec![word(app, "off")]));
    }
    if let Some(node) = fields.take("disable_storage_check").filter(|node| r.bool(node)) {
        lines.push(line(node, "storage_check", vec![word(node, "off")]));
    }
    if let Some(node) = fields.take("disable_storage_clean").filter(|node| r.bool(node)) {
        lines.push(line(node, "storage_clean_interval", vec![word(node, "off")]));
    }
    lines.append(&mut r.options(&fields, &[("resolvers", "tls_resolvers", Kind::Texts)]));
    for (key, option) in [("encrypted_client_hello", "ech"), ("dns", "dns")] {
        lines.extend(fields.take(key).map(|node| line(node, option, Vec::new())));
    }
    for key in ["session_tickets", "cache"] {
        if let Some(node) = fields.take(key) {
            r.error(node, format_args!("`{key}` is not built yet in Regent, which keeps keys of session tickets in the storage, and all certificates; leave it out"));
        }
    }
    fields.finish(r, "the app `tls`");
    lines
}

/// Only what is wrong: what they are for, each site says.
fn certificates(r: &mut Reader, node: &Node) {
    let fields = r.object(node);
    for file in fields.take("load_files").map(|node| r.list(node)).unwrap_or_default() {
        let own = r.object(file);
        let has_both = own.take("certificate").is_some() & own.take("key").is_some();
        own.take("tags").map(|node| r.texts(node));
        if let Some(format) =
            own.take("format").filter(|format| !matches!(format.as_text(), Some("" | "pem")))
        {
            r.error(format, "files of certificates are PEM");
        }
        own.finish(r, "a pair of files");
        if !has_both {
            r.error(file, "a pair of files needs `certificate` and `key`");
        }
    }
    fields.take("load_folders").map(|node| r.texts(node));
    fields.take("automate").map(|node| r.texts(node));
    for key in ["load_pem", "load_storage"] {
        if let Some(node) = fields.take(key) {
            r.error(node, format_args!("`{key}` is not built yet in Regent; put the certificates into files, and name them in `load_files`"));
        }
    }
    for member in fields.rest() {
        r.error(
            &member.value,
            format_args!(
                "`{}` is a third party's loader of certificates; Regent has `load_files` and `load_folders`",
                member.name
            ),
        );
    }
}

fn automation(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("ocsp_interval", "ocsp_interval", Kind::Duration),
            ("renew_interval", "renew_interval", Kind::Duration),
            ("storage_clean_interval", "storage_clean_interval", Kind::Duration),
        ],
    );
    lines.extend(fields.take("on_demand").and_then(|node| on_demand(r, node)));
    let mut staples = true;
    for policy in fields.take("policies").map(|node| r.list(node)).unwrap_or_default() {
        staples &= check_policy(r, policy);
    }
    if !staples {
        lines.push(line(node, "ocsp_stapling", vec![word(node, "off")]));
    }
    fields.finish(r, "`automation`");
    lines
}

fn on_demand(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let mut url = fields.take("ask").and_then(|node| r.text(node));
    if let Some(permission) = fields.take("permission") {
        let own = r.object(permission);
        let module = own.take("module").and_then(|node| r.text(node));
        url = own.take("endpoint").and_then(|node| r.text(node));
        match module.is_some_and(|module| module.text == "http") {
            true => own.finish(r, "`permission`"),
            false => {
                own.rest();
                r.error(permission, "Regent asks over HTTP whether a name may have a certificate: {\"module\": \"http\", \"endpoint\": \"http://…\"}");
            }
        }
    }
    fields.finish(r, "`on_demand`");
    let url = url?;
    Some(block(node, "on_demand_tls", Vec::new(), vec![line(node, "ask", vec![url])]))
}

/// What of a policy is wrong wherever it is used; whether OCSP is stapled.
fn check_policy(r: &mut Reader, policy: &Node) -> bool {
    let fields = r.object(policy);
    fields.take("subjects").map(|node| r.texts(node));
    for key in ["issuers", "key_type", "on_demand"] {
        fields.take(key);
    }
    for key in [
        "get_certificate",
        "must_staple",
        "renewal_window_ratio",
        "storage",
        "reuse_private_keys",
        "ocsp_overrides",
    ] {
        if let Some(node) = fields.take(key).filter(|node| !matches!(node.value, Value::Bool(false))) {
            r.error(node, format_args!("`{key}` of a policy is not built yet in Regent; leave it out"));
        }
    }
    let staples = !fields.take("disable_ocsp_stapling").is_some_and(|node| r.bool(node));
    fields.finish(r, "a policy");
    staples
}

/// The app `pki`.
pub(crate) fn pki(r: &mut Reader, app: &Node) -> Vec<Line> {
    let fields = r.object(app);
    let mut lines = Vec::new();
    if let Some(node) = fields.take("certificate_authorities") {
        r.object(node);
        for member in node.members() {
            let own = r.object(&member.value);
            let mut options = r.options(
                &own,
                &[
                    ("name", "name", Kind::Text),
                    ("root_common_name", "root_cn", Kind::Text),
                    ("intermediate_common_name", "intermediate_cn", Kind::Text),
                    ("intermediate_lifetime", "intermediate_lifetime", Kind::Duration),
                    ("maintenance_interval", "maintenance_interval", Kind::Duration),
                    ("renewal_window_ratio", "renewal_window_ratio", Kind::Number),
                ],
            );
            for key in ["root", "intermediate"] {
                options.extend(own.take(key).map(|node| key_pair(r, node, key)));
            }
            if own.take("install_trust").is_some_and(|node| !r.bool(node)) {
                lines.push(line(&member.value, "skip_install_trust", Vec::new()));
            }
            if let Some(storage) = own.take("storage") {
                r.error(storage, "the local CA is kept in the storage of everything; leave this out");
            }
            own.finish(r, "a CA");
            if !options.is_empty() || member.name != "local" {
                let ca = block(&member.value, "ca", vec![word(&member.value, &member.name)], options);
                lines.push(block(&member.value, "pki", Vec::new(), vec![ca]));
            }
        }
    }
    fields.finish(r, "the app `pki`");
    lines
}

fn key_pair(r: &mut Reader, node: &Node, name: &str) -> Line {
    let fields = r.object(node);
    let table = [
        ("certificate", "cert", Kind::Text),
        ("private_key", "key", Kind::Text),
        ("format", "format", Kind::Text),
    ];
    let lines = r.options(&fields, &table);
    fields.finish(r, &format!("`{name}`"));
    block(node, name, Vec::new(), lines)
}
