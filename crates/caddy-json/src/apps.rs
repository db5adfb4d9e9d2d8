//! The document: what stands beside the apps, and the apps.

use crate::document::Node;
use crate::own;
use crate::reader::{Kind, Reader, line};
use crate::servers;
use regent_caddyfile::{File, Line};

/// Apps of Caddy that Regent does not have.
const OTHERS: &[&str] = &["events", "pki_server"];

pub(crate) fn file(r: &mut Reader, root: &Node) -> File {
    let mut file = File::default();
    let fields = r.object(root);
    if let Some(apps) = fields.take("apps") {
        self::apps(r, apps, &mut file);
    }
    fields.finish(r, "the document");
    file
}

fn apps(r: &mut Reader, node: &Node, file: &mut File) {
    let fields = r.object(node);
    if let Some(regent) = fields.take("regent") {
        let own = r.object(regent);
        let lines = own.take("options").map(|node| own::lines(r, node)).unwrap_or_default();
        own.finish(r, "the app `regent`");
        file.global.extend(lines);
    }
    if let Some(http) = fields.take("http") {
        self::http(r, http, file);
    }
    for app in fields.rest() {
        let whose = if OTHERS.contains(&app.name.as_str()) { "Regent has none like it" } else { "it is a third party's" };
        r.error(&app.value, format_args!("`{}` is no app of Regent: {whose}; leave it out", app.name));
    }
}

fn http(r: &mut Reader, node: &Node, file: &mut File) {
    let fields = r.object(node);
    let options: Vec<Line> = r.options(
        &fields,
        &[
            ("http_port", "http_port", Kind::Number),
            ("https_port", "https_port", Kind::Number),
            ("grace_period", "grace_period", Kind::Duration),
            ("shutdown_delay", "shutdown_delay", Kind::Duration),
        ],
    );
    file.global.extend(options);
    if let Some(metrics) = fields.take("metrics") {
        let own = r.object(metrics);
        let options = r.options(&own, &[("per_host", "per_host", Kind::Flag)]);
        own.finish(r, "`metrics`");
        file.global.push(Line { block: Some(options), ..line(metrics, "metrics", Vec::new()) });
    }
    let ports = servers::Ports::of(&fields);
    if let Some(servers) = fields.take("servers") {
        servers::read(r, servers, ports, file);
    }
    fields.finish(r, "the app `http`");
}
