//! Which servers have TLS, and what they say of automatic HTTPS: as Caddy decides it (modules/caddyhttp/autohttps.go,
//! automaticHTTPSPhase1).

use super::listen::Place;
use super::sites::Site;
use super::{Ports, words};
use crate::document::Node;
use crate::reader::{Fields, Reader};
use regent_caddyfile::File;

/// What a server says of HTTPS.
pub(crate) struct Https<'a> {
    pub(super) has_tls: bool,
    /// `tls_connection_policies`.
    pub(super) policies: &'a [Node],
    /// `automatic_https`, and which of [`WORDS`] it says.
    node: Option<&'a Node>,
    said: Vec<&'static str>,
}

/// Keys of `automatic_https`, and the words of the global option that they become.
const WORDS: &[(&str, &str)] = &[
    ("disable", "off"),
    ("disable_redirects", "disable_redirects"),
    ("disable_certificates", "disable_certs"),
    ("ignore_loaded_certificates", "ignore_loaded_certs"),
];

impl<'a> Https<'a> {
    pub(super) fn read(
        r: &mut Reader,
        fields: &Fields<'a>,
        places: &[Place<'_>],
        ports: Ports,
        sites: &[Site],
    ) -> Self {
        let policies = fields.take("tls_connection_policies").map(|node| r.list(node)).unwrap_or_default();
        let node = fields.take("automatic_https");
        let (mut said, mut skipped) = (Vec::new(), Vec::new());
        let mut skipped_certificates = None;
        if let Some(node) = node {
            let own = r.object(node);
            for (key, word) in WORDS {
                if own.take(key).is_some_and(|node| r.bool(node)) {
                    said.push(*word);
                }
            }
            skipped = own.take("skip").map(|node| r.texts(node)).unwrap_or_default();
            skipped_certificates = own.take("skip_certificates").filter(|node| !r.list(node).is_empty());
            own.finish(r, "`automatic_https`");
        }
        let is_at = |port: u16| places.iter().all(|place| place.port == Some(port));
        let is_automatic = !said.contains(&"off") && !is_at(ports.http);
        let hosts = || sites.iter().flat_map(|site| &site.hosts).filter(|host| !host.text.is_empty());
        let mut named = hosts().filter(|host| !skipped.iter().any(|skipped| skipped.text == host.text));
        let has_tls =
            !policies.is_empty() || (is_automatic && (is_at(ports.https) || named.next().is_some()));
        if let (true, Some(host)) =
            (has_tls, skipped.iter().find(|host| hosts().any(|own| own.text == host.text)))
        {
            let message = format!(
                "Regent has HTTPS for all hosts of a server: put `{}` into a server of its own",
                host.text
            );
            r.errors.push(regent_caddyfile::Error::new(&host.span, message));
        }
        if let (true, Some(node)) = (has_tls, skipped_certificates) {
            r.error(node, "Regent has certificates for all hosts of a server with automatic HTTPS: name files for these in `tls_connection_policies`, or put them into a server of their own");
        }
        Self { has_tls, policies, node, said }
    }
}

/// Writes the global option `auto_https`. What servers with TLS say has to be the same, as Regent has it once.
pub(crate) fn finish(r: &mut Reader, all: &[Https<'_>], file: &mut File) {
    let secured: Vec<_> = all.iter().filter(|https| https.has_tls).collect();
    let secured = if secured.is_empty() { all.iter().collect() } else { secured };
    let Some(first) = secured.first() else { return };
    if let Some(other) = secured.iter().find(|https| https.said != first.said) {
        let node = other.node.or(first.node);
        if let Some(node) = node {
            r.error(node, "Regent has one `automatic_https` for all servers with TLS, and another of them says something else");
        }
        return;
    }
    if let Some(node) = first.node.filter(|_| !first.said.is_empty()) {
        file.global.push(words(node, "auto_https", &first.said));
    }
}
