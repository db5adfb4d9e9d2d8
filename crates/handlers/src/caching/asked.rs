//! What a request asks of the cache, if anything.

use crate::context::cache_rules::CacheRules;
use crate::context::client::Scheme;
use crate::context::exchange::Exchange;
use crate::context::target::{Delivery, Target};
use http::{HeaderName, Method, Uri, header};
use regent_cache::{Forwarded, Key, Located, Selection, glob};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Fields by which applications and what stands before them learn of another URL than that of the request. No `Vary` names them,
/// and a client can send them: they are a part of what a response is stored under, so that a forged one is for its sender only.
const OF_THE_URL: [HeaderName; 15] = [
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-scheme"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-forwarded-ssl"),
    HeaderName::from_static("front-end-https"),
    HeaderName::from_static("x-host"),
    HeaderName::from_static("x-http-host-override"),
    HeaderName::from_static("x-original-host"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("x-scheme"),
    HeaderName::from_static("x-url-scheme"),
];
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
/// A GET with one of these is another method to the application.
const OF_THE_METHOD: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];
/// Preconditions that only whoever has the resource can check, and what makes a request more than one for a resource.
const PASSED: [HeaderName; 3] = [header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::UPGRADE];

/// Whether a request has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasBody {
    Yes,
    No,
}

/// A request for the cache.
pub(crate) struct Asked {
    pub(crate) rules: Arc<CacheRules>,
    pub(crate) key: Key,
    /// As in [`Selection::new`].
    pub(crate) base: Vec<u8>,
}

/// What the cache has to do with a request.
pub(crate) enum Concern {
    /// Nothing: its route has none, or its response is a page of an error.
    Nothing,
    /// It is handed on, for this reason.
    Passed(Arc<CacheRules>, Forwarded, &'static str),
    Cached(Asked),
}

impl Asked {
    pub(crate) fn of(exchange: &Exchange, target: &Target, body: HasBody) -> Concern {
        let Some(rules) = exchange.cache.as_ref().filter(|_| exchange.failure().is_none()) else {
            return Concern::Nothing;
        };
        let is_for_more = match target {
            Target::Php(_) | Target::Native(_) => false,
            Target::Proxy(proxy) => proxy.rules.handles_responses(),
            Target::Mercure(_) | Target::Metrics => true,
        };
        if is_for_more {
            return Concern::Nothing;
        }
        let passed = |why, reason| Concern::Passed(Arc::clone(rules), why, reason);
        if !matches!(*exchange.original_method(), Method::GET | Method::HEAD)
            || exchange.method != *exchange.original_method()
        {
            return passed(Forwarded::Method, "method");
        }
        if let Some(reason) = reason_to_pass(exchange, rules, body) {
            return passed(Forwarded::Bypass, reason);
        }
        match key(exchange, rules) {
            None => passed(Forwarded::Bypass, "key"),
            Some(key) => {
                Concern::Cached(Self { rules: Arc::clone(rules), key, base: base(exchange, rules, target) })
            }
        }
    }

    /// What is on the disk for it.
    pub(crate) fn on_disk(&self, exchange: &Exchange) -> Option<Located> {
        let (headers, cookies) = (&exchange.headers, &self.rules.cookies);
        self.rules.store.find_on_disk(&self.key, &self.base, headers, cookies)
    }

    /// What it waits and fetches with, where nothing is known of the response.
    pub(crate) fn selection(&self, exchange: &Exchange) -> Selection {
        Selection::new(&self.base, &[], &exchange.headers, &self.rules.cookies)
    }
}

fn reason_to_pass(exchange: &Exchange, rules: &CacheRules, body: HasBody) -> Option<&'static str> {
    let headers = &exchange.headers;
    let path = exchange.path();
    if body == HasBody::Yes || exchange.body.replaced_by.is_some() {
        return Some("body");
    }
    if exchange.is_personal || exchange.user().is_some() {
        return Some("user");
    }
    if PASSED.iter().chain(&OF_THE_METHOD).any(|name| headers.contains_key(name)) {
        return Some("field");
    }
    if rules.pass_paths.iter().any(|pattern| glob(pattern, path) || is_directory(pattern, path)) {
        return Some("path");
    }
    if has_query(exchange, &rules.pass_queries) {
        return Some("query");
    }
    rules.cookies.passes(headers).then_some("cookie")
}

/// `/cart/*` is also for `/cart`.
fn is_directory(pattern: &str, path: &[u8]) -> bool {
    pattern.strip_suffix("/*").is_some_and(|directory| glob(directory, path))
}

/// Names as PHP has them: decoded, without brackets, and with `_` for what no variable can have.
fn has_query(exchange: &Exchange, names: &[String]) -> bool {
    let Some(query) = exchange.uri.query().filter(|_| !names.is_empty()) else { return false };
    form_urlencoded::parse(query.as_bytes()).any(|(name, _)| is_one_of(&name, names))
}

fn is_one_of(name: &str, names: &[String]) -> bool {
    let end = name.find('[').unwrap_or(name.len());
    let name = name[..end].trim_start().replace([' ', '.'], "_");
    names.iter().any(|pattern| glob(pattern, name.as_bytes()))
}

/// The URL as the client has asked for it, but for what is ignored. `None`: it is too long.
pub(crate) fn key(exchange: &Exchange, rules: &CacheRules) -> Option<Key> {
    let host = std::str::from_utf8(exchange.host_port()).ok()?;
    Key::new(scheme(exchange), host, target_of(&without_ignored(&exchange.original_uri, rules)))
}

/// Without the names in the query that are ignored.
pub(super) fn without_ignored<'a>(uri: &'a Uri, rules: &CacheRules) -> Cow<'a, Uri> {
    let names = &rules.ignored_queries;
    let Some(query) = uri.query().filter(|_| !names.is_empty()) else { return Cow::Borrowed(uri) };
    let is_ignored = |part: &&str| {
        let name = form_urlencoded::parse(part.as_bytes()).next();
        name.is_some_and(|(name, _)| is_one_of(&name, names))
    };
    if !query.split('&').any(|part| is_ignored(&part)) {
        return Cow::Borrowed(uri);
    }
    let kept: Vec<_> = query.split('&').filter(|part| !is_ignored(part)).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{}{mark}{}", uri.path(), kept.join("&")).parse().ok();
    Uri::from_parts(parts).map_or(Cow::Borrowed(uri), Cow::Owned)
}

pub(super) fn target_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

fn scheme(exchange: &Exchange) -> &'static str {
    match exchange.forwarded().and_then(|forwarded| forwarded.scheme) {
        Some(Scheme::Http) => "http",
        Some(Scheme::Https) => "https",
        None => exchange.connection.scheme(),
    }
}

/// What else the response can depend on that no `Vary` names: the site, what the routes have made of the request, and fields
/// that speak of another URL.
fn base(exchange: &Exchange, rules: &CacheRules, target: &Target) -> Vec<u8> {
    let mut base = rules.site.as_bytes().to_vec();
    let mut add = |part: &[u8]| {
        base.extend_from_slice(&(part.len() as u32).to_le_bytes());
        base.extend_from_slice(part);
    };
    add(target_of(&without_ignored(&exchange.uri, rules)).as_bytes());
    match target {
        Target::Php(php) => {
            add(b"php");
            add(&php.worker.map_or(0, |worker| worker.0 + 1).to_le_bytes());
            add(php.script_filename().as_os_str().as_bytes());
            add(php.path_info());
            add_variables(&php.delivery, &mut add);
        }
        Target::Native(native) => {
            add(b"native");
            add(&native.service.0.to_le_bytes());
            add(exchange.path());
            add_variables(&native.delivery, &mut add);
        }
        Target::Proxy(proxy) => {
            add(b"proxy");
            add(&proxy.rules.id().0.to_le_bytes());
        }
        Target::Mercure(_) | Target::Metrics => {}
    }
    for name in OF_THE_URL.iter().filter(|name| exchange.headers.contains_key(*name)) {
        add(name.as_str().as_bytes());
        exchange.headers.get_all(name).iter().for_each(|value| add(value.as_bytes()));
    }
    for value in exchange.headers.get_all(FORWARDED) {
        let parameters = value.as_bytes().split(|byte| matches!(byte, b',' | b';'));
        // Who the client is is none of the URL.
        let is_of_url = |part: &&[u8]| !part.starts_with(b"for=") && !part.starts_with(b"by=");
        let lower = parameters.map(|part| part.trim_ascii().to_ascii_lowercase());
        lower.filter(|part| is_of_url(&part.as_slice())).for_each(|part| add(&part));
    }
    base
}

fn add_variables(delivery: &Delivery, add: &mut impl FnMut(&[u8])) {
    for (name, value) in &delivery.env {
        add(name.as_bytes());
        add(value.as_bytes());
    }
}
