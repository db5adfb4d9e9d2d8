//! The routes of a server, as sites.
//!
//! Caddy makes one route of each site of a Caddyfile: terminal, and with the hosts as its only condition. Routes that are all
//! like that become sites again. Any other list becomes one site for all hosts that its routes name and for any other,
//! in which the routes are tried in the order in which they stand.

use super::named::Names;
use crate::document::{Node, Value};
use crate::handlers;
use crate::reader::{Fields, Reader, block, word};
use crate::routes;
use regent_caddyfile::{Line, Token};

/// The routes for errors of a site, in the order in which they stand.
const ERRORS: &str = "json errors";

/// One site of a server.
pub(crate) struct Site {
    /// An empty name stands for any.
    pub hosts: Vec<Token>,
    pub lines: Vec<Line>,
}

/// A route that is a site.
struct Alone<'a> {
    /// Empty: any.
    hosts: Vec<&'a str>,
    list: Option<&'a Node>,
    route: &'a Node,
}

pub(super) fn read(r: &mut Reader, fields: &Fields<'_>, names: &mut Names, server: &str) -> Vec<Site> {
    names.declare(r, fields.take("named_routes"), server);
    let routes = fields.take("routes");
    let errors = fields.take("errors").and_then(|node| {
        let own = r.object(node);
        let routes = own.take("routes");
        own.finish(r, "`errors`");
        routes
    });
    let mut sites = match routes.map(|node| (node, apart(r, node))) {
        Some((_, Some(alone))) => alone.iter().map(|alone| site(r, alone)).collect(),
        Some((node, None)) => vec![together(r, node)],
        None => vec![Site { hosts: vec![word(fields.node, "")], lines: Vec::new() }],
    };
    if let Some(errors) = errors {
        add_errors(r, errors, &mut sites);
    }
    names.rename(sites.iter_mut().flat_map(|site| &mut site.lines), server);
    sites
}

fn site(r: &mut Reader, alone: &Alone<'_>) -> Site {
    let hosts = match alone.list {
        Some(list) => {
            list.items().iter().map(|item| word(item, item.as_text().unwrap_or_default())).collect()
        }
        None => vec![word(alone.route, "")],
    };
    Site { hosts, lines: inner(r, alone) }
}

/// The lines of a site's route, without the list of routes that Caddy wraps them in.
fn inner(r: &mut Reader, alone: &Alone<'_>) -> Vec<Line> {
    let fields = r.object(alone.route);
    fields.take("match");
    fields.take("terminal").map(|node| r.bool(node));
    let handle = fields.take("handle");
    fields.take("group");
    fields.finish(r, "a route");
    let Some(handle) = handle else { return Vec::new() };
    match handle.items() {
        [only] if is_plain_subroute(only) => {
            let own = r.object(only);
            own.take("handler");
            own.take("routes").map(|node| routes::lines(r, node)).unwrap_or_default()
        }
        _ => handlers::lines(r, handle),
    }
}

fn is_plain_subroute(handler: &Node) -> bool {
    let is_known = |name: &str| matches!(name, "handler" | "routes" | "@id");
    handler.get("handler").and_then(Node::as_text) == Some("subroute")
        && handler.members().iter().all(|member| is_known(&member.name))
}

/// The sites that the routes are, if all of them are.
fn apart<'a>(r: &mut Reader, list: &'a Node) -> Option<Vec<Alone<'a>>> {
    let routes = r.list(list);
    let alone: Vec<_> = routes.iter().map(alone).collect::<Option<_>>()?;
    let (last, others) = alone.split_last()?;
    let is_open = |route: &Alone<'_>| route.hosts.is_empty();
    let is_terminal = |route: &Alone<'_>| {
        matches!(route.route.get("terminal").map(|node| &node.value), Some(Value::Bool(true)))
    };
    // The last may go on, as nothing follows it.
    let fits = others.iter().all(|route| !is_open(route) && is_terminal(route))
        && (is_terminal(last) || (is_open(last) && !others.is_empty()) || is_open(last) && routes.len() == 1);
    // A host of two routes is the first one's, which sites cannot say.
    let mut hosts: Vec<_> = alone.iter().flat_map(|route| &route.hosts).collect();
    let count = hosts.len();
    hosts.sort_unstable();
    hosts.dedup();
    (fits && hosts.len() == count && !is_hidden(&alone)).then_some(alone)
}

/// Whether a host stands behind a wildcard that covers it: among sites it would go first.
fn is_hidden(routes: &[Alone<'_>]) -> bool {
    let covers = |pattern: &str, host: &str| {
        let parent = pattern.strip_prefix("*.");
        parent.is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest == parent))
    };
    routes.iter().enumerate().any(|(index, route)| {
        let later = routes[index + 1..].iter().flat_map(|later| &later.hosts);
        let mut later = later.filter(|host| !host.starts_with('*'));
        later.any(|host| route.hosts.iter().any(|pattern| covers(pattern, host)))
    })
}

fn alone(route: &Node) -> Option<Alone<'_>> {
    if route.get("group").is_some_and(|node| node.as_text() != Some("")) {
        return None;
    }
    let sets = route.get("match").map(Node::items).unwrap_or_default();
    let list = match sets {
        [] => return Some(Alone { hosts: Vec::new(), list: None, route }),
        [set] => match set.members() {
            [only] if only.name == "host" => &only.value,
            _ => return None,
        },
        _ => return None,
    };
    let hosts: Vec<_> = list.items().iter().map(Node::as_text).collect::<Option<_>>()?;
    let is_plain = !hosts.is_empty() && !hosts.iter().any(|host| host.contains('{'));
    is_plain.then_some(Alone { hosts, list: Some(list), route })
}

/// One site of all routes.
fn together(r: &mut Reader, list: &Node) -> Site {
    let mut hosts: Vec<Token> = Vec::new();
    let sets = list.items().iter().filter_map(|route| route.get("match")).flat_map(Node::items);
    for host in sets.filter_map(|set| set.get("host")).flat_map(Node::items) {
        let Some(name) = host.as_text().filter(|name| !name.contains('{')) else { continue };
        if !hosts.iter().any(|known| known.text == name) {
            hosts.push(word(host, name));
        }
    }
    hosts.push(word(list, ""));
    Site { hosts, lines: routes::lines(r, list) }
}

/// Gives each site its routes for errors: those for its hosts, or all, with their conditions.
fn add_errors(r: &mut Reader, list: &Node, sites: &mut [Site]) {
    let same = |site: &Site, alone: &Alone<'_>| {
        let hosts: Vec<_> = site.hosts.iter().map(|host| host.text.as_str()).collect();
        hosts == alone.hosts || (alone.hosts.is_empty() && hosts == [""])
    };
    if let Some(alone) = apart(r, list)
        && alone.iter().all(|alone| sites.iter().any(|site| same(site, alone)))
    {
        for alone in &alone {
            let lines = block(alone.route, ERRORS, Vec::new(), inner(r, alone));
            sites.iter_mut().filter(|site| same(site, alone)).for_each(|site| site.lines.push(lines.clone()));
        }
        return;
    }
    let lines = block(list, ERRORS, Vec::new(), routes::lines(r, list));
    sites.iter_mut().for_each(|site| site.lines.push(lines.clone()));
}
