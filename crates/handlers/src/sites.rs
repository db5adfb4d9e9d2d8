//! The sites of one listening address.

use crate::Body;
use crate::access_log::{AccessLog, LogOutputs};
use crate::answer;
use crate::error::BuildError;
use crate::exchange::{Action, Exchange};
use crate::failure::Failure;
use crate::file_cache::FileCache;
use crate::host;
use crate::php::WorkerScripts;
use crate::response_headers::Origin;
use crate::root::Root;
use crate::route::{Context, Flow, Routes};
use crate::script::Split;
use crate::url_path::BadRequest;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use regent_config as config;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Everything that one listening address serves, compiled.
pub struct Sites {
    sites: Vec<Site>,
    hosts: Hosts,
    /// The working directory: the root of a site that names none.
    default_root: Arc<Root>,
    keep_access_logs: bool,
}

struct Site {
    routes: Routes,
    error_routes: Routes,
    access_logs: Vec<AccessLog>,
}

/// Which site a host name belongs to; of several, the first.
#[derive(Default)]
struct Hosts {
    exact: HashMap<String, usize>,
    wildcards: Vec<(String, usize)>,
    every: Option<usize>,
}

impl Sites {
    /// Compiles the routes and opens the access logs. `workers`: all of them, as [`config::WorkerId`] counts them.
    pub fn build(server: &config::Server, workers: &[config::Worker]) -> Result<Self, BuildError> {
        let workers = WorkerScripts::new(workers);
        let mut outputs = LogOutputs::default();
        let mut hosts = Hosts::default();
        let files = Arc::new(FileCache::default());
        let mut sites = Vec::with_capacity(server.sites.len());
        for (index, site) in server.sites.iter().enumerate() {
            hosts.add(&site.hosts, index);
            let endings = [script_endings(&site.routes), script_endings(&site.error_routes)].concat();
            let context = Context { workers: &workers, files: &files, scripts: &Split::new(&endings) };
            sites.push(Site {
                routes: Routes::compile(&site.routes, &context)?,
                error_routes: Routes::compile(&site.error_routes, &context)?,
                access_logs: site
                    .access_logs
                    .iter()
                    .map(|log| outputs.open(log))
                    .collect::<Result<_, _>>()?,
            });
        }
        Ok(Self {
            keep_access_logs: sites.iter().any(|site| !site.access_logs.is_empty()),
            sites,
            hosts,
            default_root: Arc::new(Root::new(Path::new("."))?),
        })
    }

    /// Takes a request through the routes of its site. Does not block but for `stat` and `open`.
    ///
    /// A host that is no site's, and a request that no route answers, get an empty 200, as in Caddy.
    pub fn route(&self, exchange: &mut Exchange) -> Action {
        match self.answer(exchange) {
            Action::Respond(response) => Action::Respond(without_body_for_head(exchange, response)),
            to_engine @ (Action::Php(_) | Action::Native(_)) => to_engine,
        }
    }

    /// The page that the site has for an error which came up behind its routes: an engine could not answer. `fields` are those
    /// that the answer must have in any case, such as `Retry-After`.
    ///
    /// `None` if there is no such page, if it would take an engine again, or if the request is at an error page already.
    pub fn error_page(
        &self,
        exchange: &mut Exchange,
        status: StatusCode,
        fields: HeaderMap,
    ) -> Option<Response<Body>> {
        let site = exchange.site().and_then(|site| self.sites.get(site))?;
        let header_ops = exchange.header_ops().len();
        match site.error_page(exchange, Failure { fields, ..Failure::new(status) }) {
            Some(Action::Respond(response)) => Some(without_body_for_head(exchange, response)),
            Some(Action::Php(_) | Action::Native(_)) => {
                exchange.truncate_header_ops(header_ops);
                exchange.set_origin(Origin::Regent);
                None
            }
            None => None,
        }
    }

    /// The access logs of the site that a routed request belongs to.
    pub fn access_logs(&self, exchange: &Exchange) -> &[AccessLog] {
        exchange.site().and_then(|site| self.sites.get(site)).map_or(&[], |site| &site.access_logs)
    }

    /// Whether any site has an access log.
    pub fn keep_access_logs(&self) -> bool {
        self.keep_access_logs
    }

    /// Opens the files of all access logs again, after a rotation.
    pub fn reopen_logs(&self) {
        self.sites.iter().flat_map(|site| &site.access_logs).for_each(AccessLog::reopen);
    }

    fn answer(&self, exchange: &mut Exchange) -> Action {
        let site = self.hosts.find(&exchange.host);
        if let Some(site) = site {
            exchange.enter_site(site, &self.default_root);
        }
        if let Some(flaw) = exchange.flaw() {
            let is_of_all = exchange.method == Method::OPTIONS && exchange.uri.path() == "*";
            if is_of_all && flaw == BadRequest::NoPath {
                // About the server as a whole (RFC 9110 §9.3.7).
                return Action::Respond(answer::empty(StatusCode::OK));
            }
            let mut response = answer::error(StatusCode::BAD_REQUEST);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return Action::Respond(response);
        }
        let Some(site) = site else { return Action::Respond(answer::empty(StatusCode::OK)) };
        let site = &self.sites[site];
        match site.routes.run(exchange) {
            Flow::Answer(action) => action,
            Flow::Next => Action::Respond(answer::empty(StatusCode::OK)),
            Flow::Fail(failure) => {
                let plain = failure.plain_page();
                site.error_page(exchange, failure).unwrap_or(Action::Respond(plain))
            }
        }
    }
}

impl Site {
    /// Takes an error through `handle_errors`; an error on that way has no page.
    fn error_page(&self, exchange: &mut Exchange, failure: Failure) -> Option<Action> {
        let header_ops = exchange.header_ops().len();
        if self.error_routes.is_empty() || !exchange.enter_error(failure) {
            return None;
        }
        match self.error_routes.run(exchange) {
            Flow::Answer(action) => Some(action),
            Flow::Next => None,
            Flow::Fail(_) => {
                exchange.truncate_header_ops(header_ops);
                None
            }
        }
    }
}

fn without_body_for_head(exchange: &Exchange, mut response: Response<Body>) -> Response<Body> {
    if exchange.original_method() == Method::HEAD {
        // `Content-Length` stays: it tells what GET would have sent.
        *response.body_mut() = Body::empty();
    }
    response
}

impl Hosts {
    fn add(&mut self, hosts: &[String], site: usize) {
        if hosts.is_empty() {
            self.every.get_or_insert(site);
        }
        for host in hosts {
            let host = host.to_ascii_lowercase();
            if host.contains('*') {
                self.wildcards.push((host, site));
            } else {
                self.exact.entry(host).or_insert(site);
            }
        }
    }

    fn find(&self, host: &str) -> Option<usize> {
        let exact = if self.exact.is_empty() { None } else { self.exact.get(host).copied() };
        let wildcard =
            self.wildcards.iter().find(|(pattern, _)| host::matches(pattern, host)).map(|(_, site)| *site);
        [exact, wildcard, self.every].into_iter().flatten().min()
    }
}

/// The endings of all names that these routes give to PHP.
fn script_endings(routes: &[config::Route]) -> Vec<String> {
    let mut endings = Vec::new();
    for route in routes {
        match &route.handler {
            config::Handler::Php(php) => endings.extend_from_slice(&php.split_path),
            config::Handler::PhpServer(server) => endings.extend_from_slice(&server.php.split_path),
            config::Handler::Subroute(routes) => endings.extend(script_endings(routes)),
            _ => {}
        }
    }
    endings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_io_threads_share_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Sites>();
        shared::<Exchange>();
        shared::<Body>();
    }
}
