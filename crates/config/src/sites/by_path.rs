//! Sites whose addresses have paths: with the others of their hosts they become one site, in which the longest path is tried
//! first, as in Caddy.

use super::covers;
use crate::model::{Handler, Listen, Matcher, Route, Site, Template};

/// A site as it is written, at one of its listeners.
pub(super) struct Written {
    pub listen: Listen,
    pub site: Site,
    /// Which its requests have, by host; none: any.
    pub paths: Vec<(Option<String>, Template)>,
}

impl Written {
    fn paths_of(&self, host: Option<&str>) -> Vec<Template> {
        let own = self.paths.iter().filter(|(own, _)| own.as_deref() == host);
        own.map(|(_, path)| path.clone()).collect()
    }
}

/// Sites that are told apart by their hosts.
pub(super) fn merged(written: Vec<Written>) -> Vec<(Listen, Site)> {
    let (with, without): (Vec<_>, Vec<_>) = written.into_iter().partition(|site| !site.paths.is_empty());
    let mut sites: Vec<_> = without.into_iter().map(|written| (written.listen, written.site)).collect();
    let mut found: Vec<(Listen, Site)> = Vec::new();
    for (listen, host) in doors(&with) {
        let mut own: Vec<_> =
            with.iter().filter(|site| site.listen == listen && has(&site.site, host.as_deref())).collect();
        own.sort_by_key(|site| std::cmp::Reverse(longest(&site.paths_of(host.as_deref()))));
        let rest = rest(&sites, &listen, host.as_deref());
        found.push((listen, merge(host, &own, rest)));
    }
    for (listen, site) in &found {
        close(&mut sites, listen, site.hosts.first());
    }
    found.append(&mut sites);
    found
}

/// The hosts of sites with paths, each once; `None`: any.
fn doors(sites: &[Written]) -> Vec<(Listen, Option<String>)> {
    let mut doors = Vec::new();
    for Written { listen, site, .. } in sites {
        let named = site.hosts.iter().cloned().map(Some);
        for host in named.chain(site.hosts.is_empty().then_some(None)) {
            let door = (listen.clone(), host);
            if !doors.contains(&door) {
                doors.push(door);
            }
        }
    }
    doors
}

fn has(site: &Site, host: Option<&str>) -> bool {
    match host {
        None => site.hosts.is_empty(),
        Some(host) => site.hosts.iter().any(|own| own == host),
    }
}

fn longest(paths: &[Template]) -> usize {
    paths.iter().map(|path| path.as_text().map_or(0, str::len)).max().unwrap_or_default()
}

/// The site without a path that requests for this host are for.
fn rest<'a>(sites: &'a [(Listen, Site)], listen: &Listen, host: Option<&str>) -> Option<&'a Site> {
    let here = || sites.iter().filter(|(own, _)| own == listen).map(|(_, site)| site);
    let covers = |site: &&Site| host.is_some_and(|host| site.hosts.iter().any(|own| covers(own, host)));
    here()
        .find(|site| has(site, host))
        .or_else(|| here().find(covers))
        .or_else(|| here().find(|site| site.hosts.is_empty()))
}

fn merge(host: Option<String>, own: &[&Written], rest: Option<&Site>) -> Site {
    let all = || own.iter().map(|written| (&written.site, written.paths_of(host.as_deref())));
    let all = || all().chain(rest.map(|site| (site, Vec::new())));
    let routes = |of: fn(&Site) -> &Vec<Route>| -> Vec<Route> {
        let is_empty = all().all(|(site, _)| of(site).is_empty());
        let exclusive = |(site, paths): (&Site, Vec<Template>)| Route {
            group: Some(0),
            matchers: if paths.is_empty() { Vec::new() } else { vec![vec![Matcher::Path(paths)]] },
            handler: Handler::Subroute(of(site).clone()),
        };
        if is_empty { Vec::new() } else { all().map(exclusive).collect() }
    };
    // A host's logs are those of all its sites.
    let mut access_logs = Vec::new();
    for log in all().flat_map(|(site, _)| &site.access_logs) {
        if !access_logs.contains(log) {
            access_logs.push(log.clone());
        }
    }
    let tls = all().find_map(|(site, _)| site.tls.clone());
    let (routes, error_routes) = (routes(|site| &site.routes), routes(|site| &site.error_routes));
    Site { hosts: host.into_iter().collect(), tls, routes, error_routes, access_logs }
}

/// Takes a host away from the site that had it.
fn close(sites: &mut Vec<(Listen, Site)>, listen: &Listen, host: Option<&String>) {
    sites.retain_mut(|(own, site)| {
        if own != listen || !has(site, host.map(String::as_str)) {
            return true;
        }
        site.hosts.retain(|own| Some(own) != host);
        !site.hosts.is_empty()
    });
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::{Handler, Site};

    /// The hosts of the sites of a file, with the number of routes that exclude each other.
    fn sites(text: &str) -> Vec<(Vec<String>, usize)> {
        let alternatives = |site: &Site| {
            let exclusive = |route: &&crate::model::Route| {
                route.group.is_some() && matches!(route.handler, Handler::Subroute(_))
            };
            site.routes.iter().filter(exclusive).count()
        };
        let config = config(text);
        config
            .servers
            .iter()
            .flat_map(|server| &server.sites)
            .map(|site| (site.hosts.clone(), alternatives(site)))
            .collect()
    }

    #[test]
    fn a_host_has_one_site_however_many_paths_there_are() {
        let hosts = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(
            sites(":80 {\nrespond a\n}\n:80/b {\nrespond b\n}\n:80/b/c, :80/d {\nrespond c\n}"),
            [(hosts(&[]), 3)]
        );
        assert_eq!(
            sites("http://a.test, http://b.test {\nrespond a\n}\nhttp://b.test/x {\nrespond b\n}"),
            [(hosts(&["b.test"]), 2), (hosts(&["a.test"]), 0)]
        );
        // What is not for the path is for whom it would be for without this site.
        assert_eq!(
            sites("http://a.test/x {\nrespond a\n}\n:80 {\nrespond b\n}"),
            [(hosts(&["a.test"]), 2), (hosts(&[]), 0)]
        );
        assert_eq!(sites("http://a.test/x {\nrespond a\n}"), [(hosts(&["a.test"]), 1)]);
    }

    #[test]
    fn the_same_path_twice_is_a_mistake() {
        let found = file_errors(":80/a {\n}\n:80/a {\n}");
        assert_eq!(found, ["`:80/a` is the address of another site already (Caddyfile:1:1)"]);
    }
}
