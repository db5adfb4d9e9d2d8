//! Redirects from plain HTTP to the sites that have TLS, as Caddy makes them (modules/caddyhttp/autohttps.go).
//!
//! Every host with TLS is redirected from the HTTP port of the addresses that it is bound to, unless a site of the file
//! is there for it. Caddy redirects all other hosts on these listeners as well, whether they have a site or not.

use super::{Door, Opened, Way};
use crate::address::Security;
use crate::global::GlobalOptions;
use crate::model::{Handler, Listen, Part, Route, Site, Template};

/// One redirect to be.
struct Redirect<'a> {
    from: Way<'a>,
    is_bound: bool,
    to_port: u16,
}

/// The sites that redirect.
pub(super) fn blocks<'a>(options: &GlobalOptions, opened: &[Opened<'a>]) -> Vec<Opened<'a>> {
    if !options.auto_https.redirects() {
        return Vec::new();
    }
    let mut redirects: Vec<Redirect<'a>> = Vec::new();
    for (block, way) in tls_ways(opened) {
        let Listen::Tcp(address) = &way.wide else { continue };
        if address.port() != winning_port(options, opened, &way.door.host) {
            continue;
        }
        let mut from = *address;
        from.set_port(options.global.http_port);
        let door = Door { listen: Listen::Tcp(from), host: way.door.host.clone() };
        if !is_served(opened, &door) && !redirects.iter().any(|other| other.from.door == door) {
            let from = Way { wide: door.listen.clone(), door, security: Security::Plain, token: way.token };
            redirects.push(Redirect { from, is_bound: block.is_bound, to_port: address.port() });
        }
    }
    let mut blocks: Vec<(Key, Opened<'a>)> = Vec::new();
    for redirect in redirects {
        let key = Key::of(&redirect);
        match blocks.iter_mut().find(|(other, _)| *other == key) {
            Some((_, block)) => block.ways.push(redirect.from),
            None => {
                let site = site(options, &key);
                let (ways, is_bound) = (vec![redirect.from], redirect.is_bound);
                blocks.push((key, Opened { site, paths: Vec::new(), tls: None, ways, is_bound }));
            }
        }
    }
    blocks.into_iter().map(|(_, block)| block).collect()
}

fn tls_ways<'o, 'a>(opened: &'o [Opened<'a>]) -> impl Iterator<Item = (&'o Opened<'a>, &'o Way<'a>)> {
    let ways = opened.iter().flat_map(|block| block.ways.iter().map(move |way| (block, way)));
    ways.filter(|(_, way)| way.security == Security::Tls)
}

/// Of the ports that a host has TLS on: that of HTTPS, or else the first.
fn winning_port(options: &GlobalOptions, opened: &[Opened<'_>], host: &Option<String>) -> u16 {
    let https = options.global.tls.https_port;
    let ports = tls_ways(opened).filter(|(_, way)| way.door.host == *host).filter_map(|(_, way)| {
        let Listen::Tcp(address) = &way.wide else { return None };
        Some(address.port())
    });
    let ports: Vec<u16> = ports.collect();
    if ports.contains(&https) { https } else { ports.first().copied().unwrap_or(https) }
}

/// Whether a site of the file is there already; one with a wildcard is for all that it covers.
fn is_served(opened: &[Opened<'_>], door: &Door) -> bool {
    let covers = |way: &Way<'_>| match (&way.door.host, &door.host) {
        (Some(pattern), Some(host)) => pattern == host || super::covers(pattern, host),
        (pattern, host) => pattern == host,
    };
    opened.iter().flat_map(|block| &block.ways).any(|way| way.wide == door.listen && covers(way))
}

/// Redirects with the same key are one site.
#[derive(PartialEq)]
struct Key {
    is_bound: bool,
    to_port: u16,
    host: HostKind,
}

#[derive(PartialEq)]
enum HostKind {
    Any,
    Named,
}

impl Key {
    fn of(redirect: &Redirect<'_>) -> Self {
        let host = if redirect.from.door.host.is_none() { HostKind::Any } else { HostKind::Named };
        Self { is_bound: redirect.is_bound, to_port: redirect.to_port, host }
    }
}

fn site(options: &GlobalOptions, key: &Key) -> Site {
    let mut to = Template::text("https://");
    to.0.push(Part::Placeholder("http.request.host".into()));
    // The port of HTTPS is for use behind address translation; clients see the usual one.
    if ![options.global.http_port, options.global.tls.https_port, 80, 443].contains(&key.to_port) {
        to.0.push(Part::Text(format!(":{}", key.to_port)));
    }
    to.0.push(Part::Placeholder("http.request.uri".into()));
    let handler = Handler::Redirect { to, status: Template::text("308") };
    Site { routes: vec![Route { group: None, matchers: Vec::new(), handler }], ..Site::default() }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::config;
    use crate::model::{Handler, Part, Template};

    /// Listener, hosts and target of every redirect; sites of the file answer with a text.
    fn redirects(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for server in config(text).servers.iter().filter(|server| server.tls.is_none()) {
            for site in &server.sites {
                let target = match site.routes.first().map(|route| &route.handler) {
                    Some(Handler::Redirect { to, status }) => {
                        assert_eq!(*status, Template::text("308"));
                        written(to)
                    }
                    _ => "a site".into(),
                };
                found.push(format!("{:?} {:?} {target}", server.listen, site.hosts));
            }
        }
        found
    }

    fn written(to: &Template) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Placeholder(name) => format!("{{{name}}}"),
        };
        to.0.iter().map(part).collect()
    }

    const TO: &str = "https://{http.request.host}{http.request.uri}";

    #[test]
    fn every_host_with_tls_is_redirected() {
        assert_eq!(
            redirects("localhost, app.localhost {\n}"),
            [format!("Tcp([::]:80) [\"localhost\", \"app.localhost\"] {TO}")]
        );
        assert_eq!(
            redirects("{\nhttp_port 81\nhttps_port 444\n}\nlocalhost {\n}"),
            [format!("Tcp([::]:81) [\"localhost\"] {TO}")]
        );
        assert_eq!(
            redirects("localhost:8443 {\n}"),
            ["Tcp([::]:80) [\"localhost\"] https://{http.request.host}:8443{http.request.uri}"]
        );
        assert_eq!(
            redirects("https://[::1] {\n}"),
            ["Tcp([::1]:80) [\"::1\"] https://{http.request.host}{http.request.uri}"]
        );
        assert_eq!(
            redirects("localhost {\nbind 127.0.0.1\n}"),
            [format!("Tcp(127.0.0.1:80) [\"localhost\"] {TO}")]
        );
    }

    #[test]
    fn the_port_of_https_wins() {
        assert_eq!(
            redirects("localhost:8443, localhost {\n}"),
            [format!("Tcp([::]:80) [\"localhost\"] {TO}")]
        );
    }

    #[test]
    fn a_site_for_any_host_is_redirected_last() {
        assert_eq!(
            redirects("localhost {\n}\n:443 {\n}"),
            [format!("Tcp([::]:80) [\"localhost\"] {TO}"), format!("Tcp([::]:80) [] {TO}")]
        );
    }

    #[test]
    fn sites_of_the_file_go_before() {
        assert_eq!(
            redirects("localhost {\n}\nhttp://localhost {\n}"),
            ["Tcp([::]:80) [\"localhost\"] a site"]
        );
        assert_eq!(
            redirects("a.localhost {\n}\nhttp://*.localhost {\n}"),
            ["Tcp([::]:80) [\"*.localhost\"] a site"]
        );
        assert_eq!(
            redirects("localhost {\n}\n:80 {\n}"),
            [format!("Tcp([::]:80) [\"localhost\"] {TO}"), "Tcp([::]:80) [] a site".into()]
        );
    }

    #[test]
    fn none_without_tls_or_when_disabled() {
        assert_eq!(redirects(":80 {\n}"), ["Tcp([::]:80) [] a site"]);
        assert!(redirects("{\nauto_https disable_redirects\n}\nlocalhost {\n}").is_empty());
        assert!(redirects("{\nauto_https off\n}\nlocalhost {\ntls internal\n}").is_empty());
        assert!(redirects("localhost {\nbind unix//run/a\n}").is_empty());
    }

    #[test]
    fn a_listener_is_not_both_wide_and_narrow() {
        let servers = config("http://127.0.0.1 {\n}\nlocalhost {\n}").servers;
        let listens: Vec<_> = servers.iter().map(|server| format!("{:?}", server.listen)).collect();
        assert_eq!(listens, ["Tcp([::]:80)", "Tcp([::]:443)"]);
    }
}
