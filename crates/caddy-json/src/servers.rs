//! `apps.http.servers`: each becomes sites, and the options `servers` of its addresses.

mod https;
mod listen;
mod named;
mod options;
mod sites;

use crate::document::{Node, Value};
use crate::logs::Logs;
use crate::reader::{Fields, Reader, block, line, word};
use crate::tls::Tls;
use https::Https;
use listen::Place;
use regent_caddyfile::{File, Line, SiteBlock, Token};
use std::collections::HashSet;

pub(crate) use https::finish as finish_https;
use named::Names;
pub(crate) use sites::Site;

/// The ports of HTTP and HTTPS.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    http: u16,
    https: u16,
}

impl Ports {
    pub fn of(http: &Fields<'_>) -> Self {
        let number = |name, default| match http.node.get(name).map(|node| &node.value) {
            Some(Value::Number(text)) => text.parse().unwrap_or(default),
            _ => default,
        };
        Self { http: number("http_port", 80), https: number("https_port", 443) }
    }
}

/// What servers are read with.
pub(crate) struct Around<'a> {
    pub ports: Ports,
    pub tls: &'a Tls<'a>,
    pub logs: &'a Logs<'a>,
}

/// Reads all servers. What they say of automatic HTTPS is returned, as Regent has one setting for all.
pub(crate) fn read<'a>(
    r: &mut Reader,
    node: &'a Node,
    around: &Around<'_>,
    file: &mut File,
) -> Vec<Https<'a>> {
    r.object(node);
    let mut names = Names::default();
    // A site for any host and for some by name, as `:443, example.com`, has these among the names of `automate` alone.
    let hosts = hosts_in(node);
    let mut homeless = around.tls.automated_but(&|name| hosts.contains(name));
    let mut all = Vec::new();
    for (index, member) in node.members().iter().enumerate() {
        let fields = r.object(&member.value);
        let places: Vec<Place> = match fields.take("listen") {
            Some(node) => r.list(node).iter().flat_map(|item| listen::places(r, item)).collect(),
            None => Vec::new(),
        };
        let mut sites = sites::read(r, &fields, &mut names, &member.name);
        let https = Https::read(r, &fields, &places, around.ports, &sites);
        if https.has_tls
            && let Some(any) =
                sites.iter_mut().find(|site| site.hosts.iter().any(|host| host.text.is_empty()))
        {
            any.hosts.append(&mut homeless);
        }
        let own = options::read(r, &fields, &member.name, index);
        blocks(r, &Server { fields: &fields, places: &places, sites: &sites, https: &https }, around, file);
        if !own.is_empty() {
            file.global.extend(
                places.iter().map(|place| block(place.at, "servers", vec![place.address()], own.clone())),
            );
        }
        fields.finish(r, "a server");
        if places.is_empty() {
            r.error(&member.value, "a server needs addresses to listen on: \"listen\": [\":443\"]");
        }
        all.push(https);
    }
    names.finish(file);
    let addresses = file.sites.iter().flat_map(|site| &site.addresses);
    let hosts: HashSet<&str> = addresses.filter_map(|address| host_of(&address.text)).collect();
    around.tls.check_names(r, |name| hosts.contains(name));
    all
}

struct Server<'s, 'a> {
    fields: &'s Fields<'a>,
    places: &'s [Place<'a>],
    sites: &'s [Site],
    https: &'s Https<'a>,
}

/// The site blocks of a server: one for each site, set of interfaces and way to certificates.
fn blocks(r: &mut Reader, server: &Server<'_, '_>, around: &Around<'_>, file: &mut File) {
    let logs = server.fields.take("logs");
    for site in server.sites {
        let log = around.logs.of_site(r, logs, site, server.sites);
        for (hosts, tls) in certificates(r, server.https, around.tls, &site.hosts) {
            for group in listen::groups(server.places) {
                // At the port of HTTP there is no TLS, whatever policies there are (Caddy's modules/caddyhttp/app.go, Start).
                let has_tls = |port: u16| server.https.has_tls && port != around.ports.http;
                let addresses = addresses(&hosts, &group, around.ports, &has_tls);
                let mut lines = group.bind();
                let is_secured = addresses.iter().any(|address| host_of(&address.text).is_some());
                lines.extend(tls.iter().filter(|_| is_secured).cloned());
                lines.extend(log.iter().cloned());
                lines.extend(site.lines.iter().cloned());
                file.sites.push(SiteBlock { addresses, lines });
            }
        }
    }
}

/// Hosts that have the same `tls` lines; an empty name stands for any.
fn certificates(
    r: &mut Reader,
    https: &Https<'_>,
    tls: &Tls<'_>,
    hosts: &[Token],
) -> Vec<(Vec<Token>, Vec<Line>)> {
    let mut found: Vec<(Vec<Token>, Vec<Line>, String)> = Vec::new();
    for host in hosts {
        let lines = if https.has_tls { tls.of_host(r, https.policies, host) } else { Vec::new() };
        let shown = format!("{lines:?}");
        match found.iter_mut().find(|(.., known)| *known == shown) {
            Some((hosts, ..)) => hosts.push(host.clone()),
            None => found.push((vec![host.clone()], lines, shown)),
        }
    }
    found.into_iter().map(|(hosts, lines, _)| (hosts, lines)).collect()
}

/// What all conditions `host` of routes name.
fn hosts_in(servers: &Node) -> HashSet<&str> {
    let routes =
        servers.members().iter().filter_map(|server| server.value.get("routes")).flat_map(Node::items);
    let sets = routes.filter_map(|route| route.get("match")).flat_map(Node::items);
    sets.filter_map(|set| set.get("host")).flat_map(Node::items).filter_map(Node::as_text).collect()
}

/// The host of an address that [`addresses`] made, if it has TLS.
fn host_of(address: &str) -> Option<&str> {
    address.strip_prefix("https://")?.rsplit_once(':').map(|(host, _)| host)
}

fn addresses(
    hosts: &[Token],
    group: &listen::Group<'_>,
    ports: Ports,
    has_tls: &dyn Fn(u16) -> bool,
) -> Vec<Token> {
    // Sockets alone have no port, and the usual one of what is spoken there does as well as any.
    let usual = if has_tls(ports.https) { ports.https } else { ports.http };
    let numbers = if group.ports.is_empty() { vec![usual] } else { group.ports.clone() };
    let mut addresses = Vec::new();
    for number in numbers {
        let scheme = if has_tls(number) { "https" } else { "http" };
        for host in hosts {
            let name = if host.text.contains(':') { format!("[{}]", host.text) } else { host.text.clone() };
            addresses.push(Token { text: format!("{scheme}://{name}:{number}"), ..host.clone() });
        }
    }
    addresses
}

/// A line without arguments, which says only that there is something.
fn flag(at: &Node, name: &str) -> Line {
    line(at, name, Vec::new())
}

/// The same with words.
fn words(at: &Node, name: &str, args: &[&str]) -> Line {
    line(at, name, args.iter().map(|arg| word(at, arg)).collect())
}
