//! Site blocks to servers: one per listening address, its sites in the order in which they are tried.

mod by_path;
mod certificates;
mod listeners;
mod redirects;
mod transport;

pub use certificates::is_internal;

use crate::address::{self, Place, Security};
use crate::call::Call;
use crate::context::Context;
use crate::directives::bind::{self, Interface};
use crate::directives::tls::{self, Tls};
use crate::directives::{self, handle_errors, log};
use crate::global::GlobalOptions;
use crate::hot_reload;
use crate::matchers::Scope;
use crate::model::{CertificateSource, Global, Listen, Purpose, Server, Site, SiteTls, Template, UnixSocket};
use crate::problems::{error, not_built_as};
use crate::routes::{self, Sorting};
use crate::template;
use by_path::Written;
use certificates::Certificates;
use listeners::{BoundProtocols, servers};
use regent_caddyfile::{Error, File, Line, SiteBlock, Token};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// One way to a site: where it listens, and for which host; `None`: any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Door {
    listen: Listen,
    host: Option<String>,
}

/// A door as an address of the file opens it.
#[derive(Clone)]
struct Way<'a> {
    door: Door,
    /// Where it listens but for [`narrow`].
    wide: Listen,
    security: Security,
    token: &'a Token,
}

/// What has been written of all sites so far, and where.
#[derive(Default)]
struct Taken {
    /// With the path of the address.
    doors: HashMap<(Door, Option<String>), String>,
    /// By path.
    sockets: HashMap<PathBuf, (u32, String)>,
}

/// The lines of a site block, by what becomes of them.
#[derive(Default)]
struct Lines<'a> {
    logs: Vec<&'a Line>,
    binds: Vec<&'a Line>,
    tls: Vec<&'a Line>,
    errors: Vec<&'a Line>,
    /// Those that become routes.
    routes: Vec<Line>,
}

pub(crate) fn parse(cx: &mut Context<'_>, options: &GlobalOptions, file: &File) -> Vec<Server> {
    let blocks = &file.sites;
    file.named_routes.iter().for_each(|route| check_placeholders(cx, &route.lines, Within::default()));
    let (mut taken, mut bound) = (Taken::default(), BoundProtocols::default());
    for (token, interface) in &options.default_bind {
        cx.check(taken.check_mode(token, interface));
    }
    let mut opened = Vec::with_capacity(blocks.len());
    for block in blocks {
        check_placeholders(cx, &block.lines, Within::default());
        let lines = Lines::of(block);
        let interfaces = interfaces(cx, options, &lines.binds, &mut taken);
        let ways = ways(cx, options, block, &interfaces, &mut taken);
        bound.note(cx, options, &lines.binds, &ways);
        let paths = paths(cx, options, block);
        let tls = tls::parse(cx, options, &lines.tls);
        opened.push(Opened {
            site: site(cx, &lines, &options.global),
            paths,
            tls,
            ways,
            is_bound: !lines.binds.is_empty() || !options.default_bind.is_empty(),
        });
    }
    let unused: Vec<_> = cx.named_routes.unused().cloned().collect();
    unused.iter().for_each(|name| cx.warn(name, "no site invokes this route, so it has no effect"));
    narrow(&mut opened);
    transport::settle(cx, &mut opened);
    let written = opened.len();
    opened.extend(redirects::blocks(options, &opened));
    narrow(&mut opened);
    let of_file = opened[..written].iter().flat_map(|block| &block.ways);
    let of_file: HashSet<&Listen> = of_file.map(|way| &way.door.listen).collect();
    let mut servers = servers(options, &bound, sites(cx, options, &opened));
    for server in servers.iter_mut().filter(|server| !of_file.contains(&server.listen)) {
        server.purpose = Purpose::Redirects;
    }
    options.servers.check(cx, &servers.iter().map(|server| &server.listen).collect::<Vec<_>>());
    servers
}

/// The sites of all blocks with their listeners, in the order of the file; none of a host has a path.
fn sites(cx: &mut Context<'_>, options: &GlobalOptions, opened: &[Opened<'_>]) -> Vec<(Listen, Site)> {
    let certificates = Certificates::new(options, opened);
    let is_faulty = |block: &&Opened<'_>| block.tls.as_ref().is_some_and(|tls| tls.is_faulty);
    let before = cx.errors.len();
    let mut secured = Vec::new();
    let mut sites = Vec::new();
    for block in opened.iter().filter(|block| !is_faulty(block)) {
        let mut ways = Vec::with_capacity(block.ways.len());
        let has_plain_way = block.ways.iter().any(|way| matches!(way.security, Security::Plain));
        for way in &block.ways {
            let tls = match way.security {
                Security::Tls => {
                    let tls = certificates.site_tls(block.tls.as_ref(), way);
                    let Some(tls) = cx.check(tls) else { continue };
                    secured.push((tls.clone(), way, has_plain_way));
                    Some(tls)
                }
                Security::Plain | Security::Follows => None,
            };
            ways.push((way.door.clone(), tls));
        }
        sites.extend(grouped(ways).into_iter().map(|(listen, hosts, tls)| Written {
            listen,
            site: Site { hosts, tls, ..block.site.clone() },
            paths: block.paths.clone(),
        }));
    }
    // A site with a mistake could be the one that has a certificate to share.
    if before == cx.errors.len() && !opened.iter().any(|block| is_faulty(&block)) {
        certificates::check_any(cx, &secured);
    }
    by_path::merged(sites)
}

impl<'a> Lines<'a> {
    fn of(block: &'a SiteBlock) -> Self {
        let mut lines = Self::default();
        for line in &block.lines {
            match line.name.text.as_str() {
                "log" => lines.logs.push(line),
                "bind" => lines.binds.push(line),
                "tls" => lines.tls.push(line),
                "handle_errors" | handle_errors::OF_JSON => lines.errors.push(line),
                _ => lines.routes.push(line.clone()),
            }
        }
        lines
    }
}

/// Which responses placeholders can tell of.
#[derive(Clone, Copy, Default)]
struct Within {
    intercept: bool,
    outgoing: bool,
}

impl Within {
    fn line(self, line: &Line) -> Self {
        let name = line.name.text.as_str();
        Self {
            intercept: self.intercept || name == "intercept",
            outgoing: self.outgoing || name == "header" || directives::is_log_append_of_response(line),
        }
    }

    fn fills_in(self, written: &str) -> bool {
        (self.intercept && template::is_of_response(written))
            || (self.outgoing && written.starts_with(template::OF_THE_RESPONSE))
    }
}

/// All of a block at once: texts with placeholders stand in nearly every directive.
fn check_placeholders(cx: &mut Context<'_>, lines: &[Line], within: Within) {
    // Of what is not built only that is said.
    for line in lines.iter().filter(|line| !directives::is_not_built(&line.name.text)) {
        let within = within.line(line);
        for token in std::iter::once(&line.name).chain(&line.args) {
            let found = template::unbuilt(&token.text).filter(|written| !within.fills_in(written));
            cx.errors.extend(found.map(|written| not_built_as(token, written)));
        }
        check_placeholders(cx, line.block.as_deref().unwrap_or_default(), within);
    }
}

/// A site block with the ways to it.
struct Opened<'a> {
    /// For any host, and without TLS.
    site: Site,
    /// Which its requests have, by host; none: any.
    paths: Vec<(Option<String>, Template)>,
    tls: Option<Tls<'a>>,
    ways: Vec<Way<'a>>,
    /// The block, or the default for all, says on which addresses.
    is_bound: bool,
}

/// A site for any host.
fn site(cx: &mut Context<'_>, lines: &Lines<'_>, global: &Global) -> Site {
    let logs = lines.logs.iter();
    let access_logs = logs.flat_map(|line| log::access_logs(cx, &Call::new(line), global)).collect();
    let scope = Scope::new(cx, None, &lines.routes);
    let routes = routes::parse_within(cx, &scope, &lines.routes, Sorting::ByDirective);
    let error_routes = handle_errors::routes(cx, &scope, &lines.errors);
    let site = Site { hosts: Vec::new(), tls: None, routes, error_routes, access_logs };
    hot_reload::settle(cx, &site);
    site
}

/// The paths of its addresses; none if it is for all.
fn paths(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    block: &SiteBlock,
) -> Vec<(Option<String>, Template)> {
    let places =
        block.addresses.iter().filter_map(|token| Some((token, address::parse(options, token).ok()?)));
    let (with, without): (Vec<_>, Vec<_>) = places.partition(|(_, place)| place.path.is_some());
    let Some((first, _)) = with.first() else { return Vec::new() };
    if !without.is_empty() {
        let message =
            "one address of this site has a path and another has none; put the path into a `handle` block";
        cx.errors.push(error(first, message));
    }
    cx.warn(first, "a path in a site's address is better put into the block, as `handle /PATH`");
    with.into_iter().filter_map(|(_, place)| Some((place.host, Template::parse(&place.path?)))).collect()
}

/// The ways to the site of a block, each of which no other has.
fn ways<'a>(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    block: &'a SiteBlock,
    interfaces: &[Interface],
    taken: &mut Taken,
) -> Vec<Way<'a>> {
    let mut ways: Vec<Way<'a>> = Vec::new();
    for token in &block.addresses {
        let place = address::parse(options, token);
        let Some(Place { port, host, security, path }) = cx.check(place) else { continue };
        let door = |interface: &Interface| Door { listen: interface.with_port(port), host: host.clone() };
        // Addresses that differ in the port only are the same on a Unix socket.
        let is_new =
            |door: &Door| matches!(door.listen, Listen::Tcp(_)) || !ways.iter().any(|way| way.door == *door);
        let found: Vec<_> = interfaces.iter().map(door).filter(is_new).collect();
        let found_with_path = || found.iter().map(|door| (door.clone(), path.clone()));
        if let Some(first) = found_with_path().find_map(|door| taken.doors.get(&door)) {
            let message = format!("`{}` is the address of another site already ({first})", token.text);
            cx.errors.push(error(token, message));
            continue;
        }
        taken.doors.extend(found_with_path().map(|door| (door, token.span.to_string())));
        // Of another path.
        let found: Vec<_> =
            found.into_iter().filter(|door| !ways.iter().any(|way| way.door == *door)).collect();
        ways.extend(found.into_iter().map(|door| Way { wide: door.listen.clone(), door, security, token }));
    }
    ways
}

/// Whether a name such as `*.example.com` stands for the host.
fn covers(pattern: &str, host: &str) -> bool {
    let rest = host.split_once('.').map(|(_, rest)| rest);
    pattern.strip_prefix("*.").is_some_and(|parent| rest == Some(parent)) && pattern != host
}

/// A loopback address as a site's host says where to listen, too: nobody else could reach the site. But not if another
/// site listens on all addresses at that port, of which this is one.
///
/// Other addresses do not, as in Caddy: behind address translation, a machine does not have the address that it is called
/// by.
fn narrow(opened: &mut [Opened<'_>]) {
    let loopback = |door: &Door| {
        let address = door.host.as_ref()?.parse::<IpAddr>().ok()?;
        address.is_loopback().then_some(address)
    };
    let shared: HashSet<Listen> = opened
        .iter()
        .flat_map(|block| block.ways.iter().filter(|way| block.is_bound || loopback(&way.door).is_none()))
        .map(|way| way.wide.clone())
        .collect();
    for way in opened.iter_mut().filter(|block| !block.is_bound).flat_map(|block| &mut block.ways) {
        way.door.listen = way.wide.clone();
        if let (Some(address), Listen::Tcp(socket)) = (loopback(&way.door), &mut way.door.listen)
            && !shared.contains(&way.wide)
        {
            socket.set_ip(address);
        }
    }
}

/// The hosts at each place that have the same TLS, in the order of the file; no hosts if one of the doors is for any.
///
/// Certificates are made for the names of a site, so that a door for any host is no part of one with names then.
fn grouped(ways: Vec<(Door, Option<SiteTls>)>) -> Vec<(Listen, Vec<String>, Option<SiteTls>)> {
    let mut groups: Vec<(Listen, Option<SiteTls>, Vec<Option<String>>)> = Vec::new();
    for (Door { listen, host }, tls) in ways {
        let is_for_names = tls.as_ref().is_some_and(|tls| {
            matches!(tls.source, CertificateSource::Internal { .. } | CertificateSource::Acme { .. })
        });
        let fits = |hosts: &[Option<String>]| !is_for_names || hosts.contains(&None) == host.is_none();
        match groups.iter_mut().find(|(other, of, hosts)| *other == listen && *of == tls && fits(hosts)) {
            Some((_, _, hosts)) => hosts.push(host),
            None => groups.push((listen, tls, vec![host])),
        }
    }
    let all = |hosts: Vec<Option<String>>| hosts.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default();
    groups.into_iter().map(|(listen, tls, hosts)| (listen, all(hosts), tls)).collect()
}

/// Where a site listens: the addresses of its `bind`s, or those for sites that have none.
fn interfaces(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    binds: &[&Line],
    taken: &mut Taken,
) -> Vec<Interface> {
    if binds.is_empty() {
        let default: Vec<_> = options.default_bind.iter().map(|(_, interface)| interface.clone()).collect();
        return if default.is_empty() { vec![Interface::ANY] } else { default };
    }
    let before = cx.errors.len();
    let mut interfaces = Vec::new();
    for line in binds {
        let bound = bind::interfaces(cx, &Call::new(line));
        for (token, interface) in cx.check(bound).unwrap_or_default() {
            cx.check(taken.check_mode(token, &interface));
            interfaces.push(interface);
        }
    }
    if interfaces.is_empty() && before == cx.errors.len() {
        let message = "a site needs `fd/…` or an address too: HTTP/3 is spoken beside the rest";
        cx.errors.push(error(&binds[0].name, message));
    }
    interfaces
}

impl Taken {
    /// A socket has one file, and so one mode, whatever the number of sites behind it.
    fn check_mode(&mut self, token: &Token, interface: &Interface) -> Result<(), Error> {
        let Interface::Unix(UnixSocket { path, mode }) = interface else { return Ok(()) };
        let place = || (*mode, token.span.to_string());
        let (first_mode, first) = self.sockets.entry(path.clone()).or_insert_with(place);
        if first_mode == mode {
            return Ok(());
        }
        let path = path.display();
        Err(error(token, format!("{path} has the mode {first_mode:04o} already ({first}), not {mode:04o}")))
    }
}

/// As Caddy sorts them: sites for any host last, before them those with a wildcard; otherwise the one with the longest
/// host name first.
fn sorted(mut server: Server) -> Server {
    server.sites.sort_by_key(|site| {
        let wildcard = site.hosts.iter().any(|host| host.contains('*'));
        let longest = site.hosts.iter().map(|host| host.len()).max().unwrap_or_default();
        (site.hosts.is_empty(), wildcard, std::cmp::Reverse(longest))
    });
    server
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors, file_errors, load};

    #[test]
    fn placeholders_that_only_caddy_fills_in_were_text() {
        let text = ":80 {\n\thandle /a* {\n\t\theader X-A \"{resp.header.A} {path}\"\n\t}\n}";
        let found = load(text).unwrap_err().to_string();
        assert!(found.contains("Caddyfile:3:14: `{resp.header.A}` is not built yet in Regent"), "{found}");
        let json = "respond `{\"path\": \"{path}\", \"resp\": {\"rp.x\": {}}}`\nheader X {nonsense}";
        assert_eq!(errors(json), Vec::<String>::new());
        assert_eq!(errors("acme_server {\nca {rp.upstream.fails}\n}").len(), 1, "the directive alone");
    }

    #[test]
    fn one_server_per_port_and_the_most_specific_site_first() {
        let text =
            "http://a.com, :81 {\nrespond 1\n}\n:80 {\n}\nhttp://*.b.com {\n}\nhttp://long.name.com {\n}";
        let config = config(text);
        let hosts = |index: usize| {
            config.servers[index].sites.iter().map(|site| site.hosts.clone()).collect::<Vec<_>>()
        };
        assert_eq!(hosts(0), [vec!["long.name.com"], vec!["a.com"], vec!["*.b.com"], vec![]]);
        assert_eq!(hosts(1), [Vec::<String>::new()]);
        assert_eq!(config.servers[1].sites[0].routes.len(), 1);
    }

    #[test]
    fn a_loopback_address_is_listened_on_alone_unless_its_port_is_open_to_all() {
        let listens = |text: &str| -> Vec<String> {
            config(text).servers.iter().map(|server| format!("{:?}", server.listen)).collect()
        };
        assert_eq!(
            listens("http://127.0.0.1:81, http://[::1]:82 {\n}"),
            ["Tcp(127.0.0.1:81)", "Tcp([::1]:82)"]
        );
        assert_eq!(listens("http://127.0.0.1:81 {\n}\n:82 {\n}"), ["Tcp(127.0.0.1:81)", "Tcp([::]:82)"]);
        assert_eq!(listens("http://127.0.0.1:81 {\n}\nhttp://a:81 {\n}"), ["Tcp([::]:81)"]);
        assert_eq!(listens("http://127.0.0.1:81, :81 {\n}"), ["Tcp([::]:81)"]);
        assert_eq!(listens("http://127.0.0.1:81 {\nbind ::\n}"), ["Tcp([::]:81)"]);
        assert_eq!(listens("http://192.0.2.7:81 {\n}"), ["Tcp([::]:81)"]);
    }

    #[test]
    fn an_address_belongs_to_one_site() {
        let errors = file_errors(":80 {\n}\nhttp:// {\n}");
        assert_eq!(errors, ["`http://` is the address of another site already (Caddyfile:1:1)"]);
        assert_eq!(file_errors(":80 {\nbind 127.0.0.1\n}\n:80 {\nbind 127.0.0.2\n}"), [""; 0]);
        let errors = file_errors(":80 {\nbind 127.0.0.1 ::1\n}\n:80 {\nbind ::1\n}");
        assert_eq!(errors, ["`:80` is the address of another site already (Caddyfile:1:1)"]);
    }

    #[test]
    fn a_port_tells_no_sites_of_a_unix_socket_apart() {
        assert_eq!(file_errors(":80 {\nbind unix//a\n}\n:80 {\nbind unix//b\n}"), [""; 0]);
        assert_eq!(file_errors(":80, :81 {\nbind unix//a\n}"), [""; 0]);
        let errors = file_errors(":80 {\nbind unix//a\n}\n:81 {\nbind unix//a\n}");
        assert_eq!(errors, ["`:81` is the address of another site already (Caddyfile:1:1)"]);
    }

    #[test]
    fn a_unix_socket_has_one_mode() {
        let errors = file_errors("http://a {\nbind unix//a|0660\n}\nhttp://b {\nbind unix//a\n}");
        assert_eq!(errors, ["/a has the mode 0660 already (Caddyfile:2:6), not 0200"]);
    }
}
