//! The sites of one listening address.

use crate::context::client::TrustedProxies;
use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::flow::Flow;
use crate::context::interceptor::{Interception, ResponseHead};
use crate::context::origin::Origin;
use crate::context::page;
use crate::context::rendering::Rendering;
use crate::context::shutdown::ShutdownNotice;
use crate::context::target::{Action, Target};
use crate::directives::Context;
use crate::directives::php::WorkerScripts;
use crate::error::BuildError;
use crate::files::file_cache::FileCache;
use crate::filters::encode::EncoderBudget;
use crate::log::access_log::{AccessLog, LogOutputs};
use crate::paths::host;
use crate::paths::root::Root;
use crate::paths::script::Split;
use crate::paths::url_path::BadRequest;
use crate::rates::RateZones;
use crate::routing::route::Routes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use regent_cache::{Scope, Scopes, Store};
use regent_config::{self as config, HubId, ScriptPurge};
use regent_exchange::ResponseBody;
use regent_traces::Tracer;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the page of a 503 may wait for an engine: what could not be served because there is too much to do must not
/// add as much again.
const PAGE_WAIT: Duration = Duration::from_millis(250);

/// Everything that one listening address serves, compiled.
pub struct Sites {
    sites: Vec<Site>,
    hosts: Arc<Hosts>,
    /// The working directory: the root of a site that names none.
    default_root: Arc<Root>,
    keep_access_logs: bool,
    /// `None`: the address of a client is that of its connection.
    proxies: Option<TrustedProxies>,
    /// Requests may have to start over.
    asks_for_passwords: bool,
    shutdown: Arc<ShutdownNotice>,
    /// Somebody wants to know how old requests are.
    tell_ages: bool,
}

struct Site {
    routes: Routes,
    error_routes: Routes,
    access_logs: Vec<AccessLog>,
    /// Of its `mercure`, the first if it has several.
    hub: Option<HubId>,
    /// What its `cache` says, the first if it has several, of the purges of scripts.
    script_purge: ScriptPurge,
    /// The responses that its scripts may have forgotten.
    cache_scope: Option<Arc<Scope>>,
}

/// Which site a host name belongs to; of several, the first.
#[derive(Default)]
struct Hosts {
    exact: HashMap<String, usize>,
    wildcards: Vec<(String, usize)>,
    every: Option<usize>,
}

impl Sites {
    /// Compiles the routes and opens the access logs. `workers` and `proxies`: all of them, as [`config::WorkerId`] and
    /// [`config::ProxyId`] count them. `tracer`: of `tracing`; `None`: traces are off.
    pub fn build(
        server: &config::Server,
        workers: &[config::Worker],
        proxies: &[config::ReverseProxy],
        outputs: &LogOutputs,
        store: &Arc<Store>,
        rates: &RateZones,
        tracer: Option<&Arc<Tracer>>,
    ) -> Result<Self, BuildError> {
        let workers = WorkerScripts::new(workers);
        let mut hosts = Hosts::default();
        let (files, encoders) = (Arc::<FileCache>::default(), Arc::<EncoderBudget>::default());
        let mut sites = Vec::with_capacity(server.sites.len());
        for (index, site) in server.sites.iter().enumerate() {
            hosts.add(&site.hosts, index);
            let scripts = Split::new(&script_endings(site, proxies));
            let name = format!("{:?} {:?}", server.listen, site.hosts).into();
            let context = Context {
                workers: &workers,
                files: &files,
                encoders: &encoders,
                store,
                rates,
                site: &name,
                scripts: &scripts,
                tracer,
                proxies,
            };
            sites.push(Site {
                routes: Routes::compile(&site.routes, &context)?,
                error_routes: Routes::compile(&site.error_routes, &context)?,
                hub: site.hub(proxies),
                script_purge: site.script_purge(proxies),
                cache_scope: None,
                access_logs: site
                    .access_logs
                    .iter()
                    .map(|log| outputs.open(log, server.options.log_credentials))
                    .collect::<Result<_, _>>()?,
            });
        }
        Ok(Self {
            keep_access_logs: sites.iter().any(|site| !site.access_logs.is_empty()),
            sites,
            hosts: Arc::new(hosts),
            default_root: Arc::new(Root::new(Path::new("."))?),
            asks_for_passwords: server.sites.iter().any(|site| asks_for_passwords(site, proxies)),
            proxies: server.options.trusted_proxies.as_ref().map(TrustedProxies::compile).transpose()?,
            shutdown: Arc::default(),
            tell_ages: tell_ages(server) || proxies.iter().any(tell_ages),
        })
    }

    /// Lets scripts purge the cache, as their sites allow it.
    pub fn with_purges(mut self, scopes: &Scopes) -> Self {
        for (index, site) in self.sites.iter_mut().enumerate() {
            let hosts = Arc::clone(&self.hosts);
            let leads_here = move |host: &str| {
                host::host_name(host.as_bytes()).is_some_and(|host| hosts.find(&host) == Some(index))
            };
            site.cache_scope = match site.script_purge {
                ScriptPurge::Off => None,
                ScriptPurge::Site => Some(scopes.add(leads_here)),
                ScriptPurge::Server => Some(scopes.add(|_| true)),
            };
        }
        self
    }

    /// The same, whose requests know when this notice is given.
    pub fn with_notice(self, shutdown: &Arc<ShutdownNotice>) -> Self {
        Self { shutdown: Arc::clone(shutdown), ..self }
    }

    /// Takes a request through the routes of its site. Does not block but for `stat` and `open`.
    ///
    /// A host that is no site's, and a request that no route answers, get an empty 200, as in Caddy.
    pub fn route(&self, exchange: &mut Exchange) -> Action {
        let action = self.answer(exchange);
        self.completed(exchange, action)
    }

    /// Goes on with a request that could not be answered as [`Self::route`] said: the page that the site has for the error,
    /// which an engine may have to make, once. If that fails too, `handle_errors` is asked for a page that needs no engine;
    /// without any, the server has a line of its own.
    pub fn resume(&self, exchange: &mut Exchange, failure: Failure) -> Action {
        let is_overload = failure.status == StatusCode::SERVICE_UNAVAILABLE;
        let plain = exchange.failure().unwrap_or(&failure).plain_page();
        let page = self.error_page(exchange, failure).unwrap_or(Action::Respond(plain));
        let mut action = self.completed(exchange, page);
        if let (Action::Forward(target), true) = (&mut action, is_overload)
            && let Some(delivery) = target.delivery_mut()
        {
            delivery.deadline = Some(delivery.deadline.map_or(PAGE_WAIT, |deadline| deadline.min(PAGE_WAIT)));
        }
        action
    }

    /// Goes on with a request that an upstream has responded to, as the directive says: what the routes behind it make of the
    /// request, or that response; and then as [`Self::intercept`].
    pub fn handle_response(&self, exchange: &mut Exchange, response: Response<ResponseBody>) -> Action {
        let place = std::mem::take(&mut exchange.place);
        exchange.set_origin(Origin::Regent);
        let Some(site) = exchange.site().and_then(|site| self.sites.get(site)) else {
            return Action::Respond(response);
        };
        let is_page = exchange.failure().is_some();
        let routes = if is_page { &site.error_routes } else { &site.routes };
        let response = match routes.resume(exchange, place) {
            Flow::Relay(status) => {
                exchange.set_origin(Origin::Upstream);
                let mut response = response;
                let is_http = response.status() != StatusCode::SWITCHING_PROTOCOLS;
                status.filter(|_| is_http).into_iter().for_each(|status| *response.status_mut() = status);
                response
            }
            Flow::Answer(Action::Respond(response)) => {
                let action = self.intercepted(exchange, response, &mut None);
                return self.completed(exchange, action);
            }
            Flow::Answer(forward) => return self.with_services(exchange, forward),
            Flow::Next => page::empty(StatusCode::OK),
            Flow::Fail(failure) => {
                let page = self.failed(exchange, failure);
                return self.completed(exchange, page);
            }
        };
        self.intercept(exchange, response).0
    }

    /// What `intercept` makes of a response that is none of this server's own, if that is concerned, and the body that it has
    /// replaced. One by which the connection leaves HTTP stays as it is.
    pub fn intercept(
        &self,
        exchange: &mut Exchange,
        response: Response<ResponseBody>,
    ) -> (Action, Option<ResponseBody>) {
        if !exchange.may_be_intercepted() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return (Action::Respond(response), None);
        }
        let mut replaced = None;
        let action = self.intercepted(exchange, response, &mut replaced);
        (self.completed(exchange, action), replaced)
    }

    /// `replaced`: the body of this response, if another takes its place.
    fn intercepted(
        &self,
        exchange: &mut Exchange,
        mut response: Response<ResponseBody>,
        replaced: &mut Option<ResponseBody>,
    ) -> Action {
        // It may be the one that was to replace another.
        if let Some(replaced) = exchange.set_response_head(None) {
            replaced.put_under(response.headers_mut());
        }
        while let Some(interceptor) = exchange.take_interceptor() {
            let head = ResponseHead { status: response.status(), headers: response.headers().clone() };
            exchange.set_response_head(Some(head));
            match interceptor.intercept(exchange) {
                None => drop(exchange.set_response_head(None)),
                Some(Interception::Status(status)) => {
                    exchange.set_response_head(None);
                    *response.status_mut() = status;
                }
                Some(Interception::Render(rules)) => {
                    exchange.set_response_head(None);
                    return Action::Render(Box::new(Rendering::new(rules, exchange, response)));
                }
                Some(Interception::Flow(flow)) => {
                    replaced.get_or_insert(std::mem::replace(response.body_mut(), ResponseBody::empty()));
                    response = match flow {
                        Flow::Answer(Action::Respond(response)) => response,
                        Flow::Answer(other) => return other,
                        Flow::Fail(failure) => return self.failed(exchange, failure),
                        Flow::Next | Flow::Relay(_) => page::empty(StatusCode::OK),
                    };
                    let head = exchange.set_response_head(None);
                    head.into_iter().for_each(|head| head.put_under(response.headers_mut()));
                }
            }
        }
        Action::Respond(response)
    }

    /// The page that the site has for an error, or a line of our own.
    fn failed(&self, exchange: &mut Exchange, failure: Failure) -> Action {
        let plain = failure.plain_page();
        self.error_page(exchange, failure).unwrap_or(Action::Respond(plain))
    }

    /// The page that the site has for an error, as what stands in `handle_errors` makes it anew.
    fn error_page(&self, exchange: &mut Exchange, failure: Failure) -> Option<Action> {
        let site = exchange.site().and_then(|site| self.sites.get(site))?;
        Some(match site.error_page(exchange, failure)? {
            Action::Respond(response) => self.intercepted(exchange, response, &mut None),
            other => other,
        })
    }

    /// As it may leave the routes.
    fn completed(&self, exchange: &Exchange, action: Action) -> Action {
        without_body_for_head(exchange, self.with_services(exchange, action))
    }

    /// The access logs that are to have a routed request: those of its site, or those that the route has named.
    pub fn access_logs<'a>(&'a self, exchange: &'a Exchange) -> impl Iterator<Item = &'a AccessLog> {
        let is_named = !exchange.log_names.is_empty();
        let own = exchange.site().filter(|_| exchange.is_logged);
        let sites = match own {
            None => &[][..],
            Some(_) if is_named => &self.sites[..],
            Some(site) => &self.sites[site..=site],
        };
        sites.iter().flat_map(|site| &site.access_logs).filter(move |log| match is_named {
            true => log.name().is_some_and(|name| exchange.log_names.iter().any(|own| own == name)),
            false => log.has(exchange),
        })
    }

    /// Whether a response is there because of an error: a page for it, or what takes the place of one.
    pub fn is_of_error<B>(exchange: &Exchange, response: &Response<B>) -> bool {
        exchange.failure().is_some() || Failure::is_page(response)
    }

    /// Whether any site has an access log.
    pub fn keep_access_logs(&self) -> bool {
        self.keep_access_logs
    }

    /// Tells a script where its updates go, and what it may purge.
    fn with_services(&self, exchange: &Exchange, mut action: Action) -> Action {
        if let Action::Forward(Target::Php(php)) = &mut action
            && let Some(site) = exchange.site().and_then(|site| self.sites.get(site))
        {
            php.hub = site.hub;
            php.cache_scope = site.cache_scope.as_ref().map(|scope| scope.number());
        }
        action
    }

    fn answer(&self, exchange: &mut Exchange) -> Action {
        if self.asks_for_passwords {
            exchange.keep_headers();
        }
        if let Some(proxies) = &self.proxies {
            // Before any route changes the fields.
            let forwarded = proxies.forwarded(&exchange.connection, &exchange.headers);
            exchange.forwarded = forwarded.map(Box::new);
        }
        exchange.stops_at = self.shutdown.stops_at();
        if self.tell_ages {
            exchange.came_at.get_or_insert_with(Instant::now);
        }
        let site = self.hosts.find(&exchange.host);
        if let Some(site) = site {
            exchange.enter_site(site, &self.default_root);
        }
        if let Some(flaw) = exchange.flaw() {
            let is_of_all = exchange.method == Method::OPTIONS && exchange.uri.path() == "*";
            if is_of_all && flaw == BadRequest::NoPath {
                // About the server as a whole (RFC 9110 §9.3.7).
                return Action::Respond(page::empty(StatusCode::OK));
            }
            let mut response = page::error(StatusCode::BAD_REQUEST);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return Action::Respond(response);
        }
        let Some(site) = site else { return Action::Respond(page::empty(StatusCode::OK)) };
        let site = &self.sites[site];
        match site.routes.run(exchange) {
            Flow::Answer(Action::Respond(response)) => self.intercepted(exchange, response, &mut None),
            Flow::Answer(action) => action,
            // There is a response to relay only behind an upstream.
            Flow::Next | Flow::Relay(_) => self.intercepted(exchange, page::empty(StatusCode::OK), &mut None),
            Flow::Fail(failure) => self.failed(exchange, failure),
        }
    }
}

impl Site {
    /// Takes an error through `handle_errors`. An error on that way has no page, but if it was that of an engine, which is
    /// done without then.
    fn error_page(&self, exchange: &mut Exchange, failure: Failure) -> Option<Action> {
        if self.error_routes.is_empty() || !(exchange.enter_error(failure) || exchange.give_up_engines()) {
            return None;
        }
        match self.error_routes.run(exchange) {
            Flow::Answer(action) => Some(action),
            Flow::Next | Flow::Relay(_) => None,
            Flow::Fail(_) => {
                exchange.leave_error_page();
                None
            }
        }
    }
}

/// `Content-Length` stays: it tells what GET would have sent.
fn without_body_for_head(exchange: &Exchange, mut action: Action) -> Action {
    if let Action::Respond(response) = &mut action
        && exchange.original_method() == Method::HEAD
    {
        *response.body_mut() = ResponseBody::empty();
    }
    action
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

fn asks_for_passwords(site: &config::Site, proxies: &[config::ReverseProxy]) -> bool {
    site.handlers(proxies).any(|handler| matches!(handler, config::Handler::BasicAuth(_)))
}

/// The endings of all names that the site gives to PHP, here or on a FastCGI server.
fn script_endings(site: &config::Site, proxies: &[config::ReverseProxy]) -> Vec<String> {
    let endings = site.handlers(proxies).flat_map(|handler| match handler {
        config::Handler::Php(php) => php.split_path.as_slice(),
        config::Handler::PhpServer(server) => &server.php.split_path,
        config::Handler::ReverseProxy(id) => fastcgi_endings(*id, proxies),
        _ => &[],
    });
    endings.cloned().collect()
}

fn fastcgi_endings(id: config::ProxyId, proxies: &[config::ReverseProxy]) -> &[String] {
    let proxy = proxies.get(usize::from(id.0));
    proxy.and_then(|proxy| proxy.transport.fastcgi.as_ref()).map_or(&[], |fastcgi| &fastcgi.split)
}

/// Whether a part of the configuration has a placeholder for the age of a request, or may have one in a template.
fn tell_ages(part: &impl serde::Serialize) -> bool {
    let text = serde_json::to_string(part).unwrap_or_default();
    ["http.request.duration", "\"Templates\""].iter().any(|what| text.contains(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_io_threads_share_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Sites>();
        shared::<Exchange>();
    }
}
