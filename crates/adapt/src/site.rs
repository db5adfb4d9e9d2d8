//! The sites of a server as its routes, and what becomes of errors.

use crate::Writer;
use crate::object::Object;
use regent_config::{Matcher, Route, Site, Template};
use serde_json::Value;

impl Writer<'_> {
    /// Routes and error routes.
    pub(crate) fn set_sites(&self, server: &mut Object, sites: &[&Site]) {
        server.set_list(
            "routes",
            self.routes_of(sites, |site| &site.routes, |site| !site.access_logs.is_empty()),
        );
        let with_errors: Vec<_> =
            sites.iter().copied().filter(|site| !site.error_routes.is_empty()).collect();
        let is_open = with_errors
            .iter()
            .any(|site| site.hosts.is_empty() || site.hosts.iter().any(|host| host.contains('*')));
        // Where errors of one site would go to those of another, that has a route with an end, too.
        let errors = if is_open { sites.to_vec() } else { with_errors };
        let errors = self.routes_of(&errors, |site| &site.error_routes, |_| false);
        if !errors.is_empty() {
            let mut object = Object::new();
            object.set("routes", errors);
            server.set("errors", object);
        }
    }

    /// Of the sites, only the first that is for a host is taken: each is a route with an end. One for any host without routes is none,
    /// unless it `is_kept`: what else it says is lost with it.
    fn routes_of(
        &self,
        sites: &[&Site],
        of: fn(&Site) -> &Vec<Route>,
        is_kept: fn(&Site) -> bool,
    ) -> Vec<Value> {
        if let [site] = sites
            && site.hosts.is_empty()
            && !asks_for_host(of(site))
        {
            return self.routes(of(site));
        }
        let is_none = |site: &Site| site.hosts.is_empty() && of(site).is_empty() && !is_kept(site);
        let sites = sites.iter().filter(|site| !is_none(site));
        sites.map(|site| self.site(site, of(site)).build()).collect()
    }

    fn site(&self, site: &Site, routes: &[Route]) -> Object {
        let mut route = Object::new();
        if !site.hosts.is_empty() {
            let hosts = Matcher::Host(site.hosts.iter().map(Template::text).collect());
            route.set("match", vec![self.matcher_set(&[hosts])]);
        }
        if !routes.is_empty() {
            route.set("handle", vec![self.subroute(routes).build()]);
        }
        route.set("terminal", true);
        route
    }
}

/// Whether a condition on the host stands in a place where Caddy takes its names for those of a site, which get certificates.
fn asks_for_host(routes: &[Route]) -> bool {
    let mut matchers = routes.iter().flat_map(|route| &route.matchers).flatten();
    matchers.any(|matcher| matches!(matcher, Matcher::Host(_)))
}
