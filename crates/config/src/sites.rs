//! Site blocks to servers: one per listening address, its sites in the order in which they are tried.

use crate::address::{self, Address};
use crate::call::Call;
use crate::context::Context;
use crate::directives::{bind, handle_errors, log};
use crate::global::GlobalOptions;
use crate::matchers::Scope;
use crate::model::{Listen, LogConfig, Server, Site};
use crate::problems::error;
use crate::routes::{self, Sorting};
use regent_caddyfile::{Line, SiteBlock};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Where each address was first written.
type Taken = BTreeMap<Address, String>;

/// The lines of a site block, by what becomes of them.
#[derive(Default)]
struct Lines<'a> {
    logs: Vec<&'a Line>,
    binds: Vec<&'a Line>,
    errors: Vec<&'a Line>,
    /// Those that become routes.
    routes: Vec<Line>,
}

pub(crate) fn parse(cx: &mut Context<'_>, options: &GlobalOptions, blocks: &[SiteBlock]) -> Vec<Server> {
    let mut servers: Vec<(SocketAddr, Server)> = Vec::new();
    let mut taken = Taken::new();
    for block in blocks {
        let addresses = addresses(cx, options, block, &mut taken);
        let lines = Lines::of(block);
        let site = site(cx, &lines);
        let interfaces = interfaces(cx, &lines.binds);
        for (port, hosts) in by_port(addresses) {
            for interface in &interfaces {
                let listen = SocketAddr::new(*interface, port);
                let site = Site { hosts: hosts.clone(), ..site.clone() };
                match servers.iter_mut().find(|(other, _)| *other == listen) {
                    Some((_, server)) => server.sites.push(site),
                    None => servers.push((listen, Server { listen: Listen::Tcp(listen), sites: vec![site] })),
                }
            }
        }
    }
    servers.into_iter().map(|(_, server)| sorted(server)).collect()
}

impl<'a> Lines<'a> {
    fn of(block: &'a SiteBlock) -> Self {
        let mut lines = Self::default();
        for line in &block.lines {
            match line.name.text.as_str() {
                "log" => lines.logs.push(line),
                "bind" => lines.binds.push(line),
                "handle_errors" => lines.errors.push(line),
                _ => lines.routes.push(line.clone()),
            }
        }
        lines
    }
}

/// A site for any host.
fn site(cx: &mut Context<'_>, lines: &Lines<'_>) -> Site {
    let logs = lines.logs.iter();
    let access_logs = logs.map(|line| log::config(cx, &Call::new(line), LogConfig::default())).collect();
    let scope = Scope::new(cx, None, &lines.routes);
    Site {
        hosts: Vec::new(),
        routes: routes::parse_within(cx, &scope, &lines.routes, Sorting::ByDirective),
        error_routes: handle_errors::routes(cx, &scope, &lines.errors),
        access_logs,
    }
}

fn addresses(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    block: &SiteBlock,
    taken: &mut Taken,
) -> Vec<Address> {
    let mut addresses = Vec::new();
    for token in &block.addresses {
        let address = address::parse(cx, options, token);
        let Some(address) = cx.check(address) else { continue };
        if let Some(first) = taken.get(&address) {
            cx.errors.push(error(
                token,
                format!("`{}` is the address of another site already ({first})", token.text),
            ));
            continue;
        }
        taken.insert(address.clone(), token.span.to_string());
        addresses.push(address);
    }
    addresses
}

/// The hosts on each port, in the order of the file; no hosts if one of the addresses is for any.
fn by_port(addresses: Vec<Address>) -> Vec<(u16, Vec<String>)> {
    let mut ports: Vec<(u16, Vec<Option<String>>)> = Vec::new();
    for Address { port, host } in addresses {
        match ports.iter_mut().find(|(other, _)| *other == port) {
            Some((_, hosts)) => hosts.push(host),
            None => ports.push((port, vec![host])),
        }
    }
    let all = |hosts: Vec<Option<String>>| hosts.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default();
    ports.into_iter().map(|(port, hosts)| (port, all(hosts))).collect()
}

/// Where a site listens: the addresses of its `bind`s.
fn interfaces(cx: &mut Context<'_>, binds: &[&Line]) -> Vec<IpAddr> {
    if binds.is_empty() {
        return vec![bind::ANY];
    }
    let bound = binds.iter().map(|line| bind::addresses(&Call::new(line)));
    bound.filter_map(|addresses| cx.check(addresses)).flatten().collect()
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
    use crate::directives::testing::{config, file_errors};

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
    fn an_address_belongs_to_one_site() {
        let errors = file_errors(":80 {\n}\nhttp:// {\n}");
        assert_eq!(errors, ["`http://` is the address of another site already (Caddyfile:1:1)"]);
    }
}
