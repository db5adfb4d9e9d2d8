//! What makes stored responses void: methods that change what they show, and `PURGE`.

use super::answer;
use super::asked;
use crate::context::cache_rules::CacheRules;
use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::page;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use regent_cache::{CacheStatus, Forwarded, Key, Purge, Store};
use regent_exchange::ResponseBody;
use std::sync::Arc;

/// The method by which applications have a URL forgotten, as Squid and Varnish have it.
const PURGE: &str = "PURGE";

/// A request that passes the cache.
pub struct Passing {
    rules: Arc<CacheRules>,
    status: CacheStatus,
}

impl Passing {
    pub(super) fn new(rules: Arc<CacheRules>, why: Forwarded, reason: &'static str) -> Self {
        rules.store.counts.passes.add_one();
        Self { rules, status: CacheStatus::passed(why, reason) }
    }

    /// Says so in the response, and forgets what it makes void (RFC 9111 §4.4).
    pub fn finish(self, exchange: &mut Exchange, response: &mut Response<ResponseBody>) {
        answer::note(exchange, self.status);
        let is_done = response.status().is_success() || response.status().is_redirection();
        let is_safe = matches!(exchange.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
        if is_done && !is_safe {
            let own = asked::key(exchange, &self.rules);
            let others = [header::LOCATION, header::CONTENT_LOCATION];
            let others = others.iter().filter_map(|name| named(exchange, &self.rules, response, name));
            for key in own.into_iter().chain(others) {
                self.rules.store.purge(&Purge::Url(key));
            }
        }
        answer::mark(response.headers_mut(), &self.rules, self.status);
    }
}

/// The URL of a field, if it is one of this host.
fn named(
    exchange: &Exchange,
    rules: &CacheRules,
    response: &Response<ResponseBody>,
    name: &HeaderName,
) -> Option<Key> {
    let uri: Uri = response.headers().get(name)?.to_str().ok()?.parse().ok()?;
    let host = std::str::from_utf8(exchange.host_port()).ok()?;
    let is_own = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(host));
    let uri = asked::without_ignored(&uri, rules);
    let target = uri.path_and_query()?.as_str();
    let own = asked::key(exchange, rules)?;
    let scheme = uri.scheme_str().unwrap_or_else(|| own.url().split("://").next().unwrap_or_default());
    (is_own && target.starts_with('/')).then(|| Key::new(scheme, host, target)).flatten()
}

/// Carries out a `PURGE`; `None`: it is none, or none of the cache's.
pub(crate) fn purge(exchange: &Exchange, rules: &CacheRules) -> Option<Flow> {
    let allowed = rules.purge_from.as_ref().filter(|_| exchange.method.as_str() == PURGE)?;
    if !exchange.client_ip().is_some_and(|client| allowed.contain(client)) {
        return Some(Flow::error(StatusCode::FORBIDDEN));
    }
    let host = std::str::from_utf8(exchange.host_port()).unwrap_or_default();
    let uri = asked::without_ignored(&exchange.original_uri, rules);
    let purged = purge_url(&rules.store, host, asked::target_of(&uri));
    let body = ResponseBody::full(format!("{purged} purged\n"));
    let mut response = page::with_body(StatusCode::OK, body);
    response.headers_mut().insert(header::CONTENT_TYPE, page::TEXT);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(Flow::respond(response))
}

/// With either scheme: an application often purges over plain HTTP what is read over HTTPS.
fn purge_url(store: &Store, host: &str, target: &str) -> u64 {
    let keys = ["http", "https"].into_iter().filter_map(|scheme| Key::new(scheme, host, target));
    keys.map(|key| store.purge(&Purge::Url(key))).sum()
}
