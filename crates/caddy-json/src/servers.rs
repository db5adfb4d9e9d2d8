//! `apps.http.servers`: each becomes sites, and the options `servers` of its addresses.

use crate::document::Node;
use crate::reader::{Fields, Reader, block, word};
use crate::routes;
use regent_caddyfile::{File, Line, SiteBlock, Token};

/// The ports of HTTP and HTTPS.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub http: u16,
    pub https: u16,
}

impl Ports {
    pub fn of(http: &Fields<'_>) -> Self {
        let number = |name, default| match http.node.get(name).map(|node| &node.value) {
            Some(crate::document::Value::Number(text)) => text.parse().unwrap_or(default),
            _ => default,
        };
        Self { http: number("http_port", 80), https: number("https_port", 443) }
    }
}

pub(crate) fn read(r: &mut Reader, node: &Node, _ports: Ports, file: &mut File) {
    r.object(node);
    for member in node.members() {
        let fields = r.object(&member.value);
        let lines = fields.take("routes").map(|node| routes::lines(r, node)).unwrap_or_default();
        let listen = fields.take("listen").map(|node| r.texts(node)).unwrap_or_default();
        fields.finish(r, "a server");
        file.sites.push(SiteBlock { addresses: listen, lines });
    }
}
