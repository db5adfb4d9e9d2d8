//! A request on its way through the routes.

use crate::context::body_rules::BodyRules;
use crate::context::cache_rules::CacheRules;
use crate::context::client::Forwarded;
use crate::context::failure::Failure;
use crate::context::filter::{self, Filter};
use crate::context::found::{Captures, FileMatch};
use crate::context::interceptor::{Interceptor, ResponseHead};
use crate::context::log_value::LogValue;
use crate::context::observed::Observed;
use crate::context::origin::Origin;
use crate::context::place::Place;
use crate::context::proxied::Proxied;
use crate::context::server_timing;
use crate::context::uuid::Uuid;
use crate::context::verification::Verified;
use crate::paths::host;
use crate::paths::root::{CodeGeneration, Root};
use crate::paths::url_path::{self, BadRequest};
use http::{HeaderMap, Method, Response, Uri, Version, request};
use regent_config::{LaneChoice, LogLevel, RetryMethods};
use regent_exchange::{Connection, ResponseBody, WebSocketStream};
use std::borrow::Cow;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

mod detaching;
mod observing;
mod rewriting;
mod verifying;

/// The head of a request, with what handlers have changed of it so far.
#[derive(Clone)]
pub struct Exchange {
    pub method: Method,
    /// As it stands after rewrites.
    pub uri: Uri,
    /// As the client sent it.
    pub original_uri: Uri,
    pub version: Version,
    /// It opens a stream for WebSocket ([`WebSocketStream`]): a response that succeeds and does not take the stream misleads.
    pub is_websocket_stream: bool,
    pub headers: HeaderMap,
    pub connection: Connection,
    /// Of PHP's code, as it was when the request came.
    pub code: CodeGeneration,
    /// The `Host` field or the URI's authority, without the port, in lower case; empty if there is none.
    pub host: String,
    /// `None`: the connection is not one of a trusted proxy.
    pub(crate) forwarded: Option<Box<Forwarded>>,
    pub body: BodyRules,
    /// How its response is cached; `None`: not at all.
    pub(crate) cache: Option<Arc<CacheRules>>,
    /// Whether it says who it is from by fields that the client has not sent (`forward_auth`).
    pub(crate) is_personal: bool,
    /// The upstream that it was handed to last.
    pub proxied: Option<Box<Proxied>>,
    /// Where it goes on when that has responded.
    pub(crate) place: Place,
    /// Whether the access logs of its site have it (`log_skip`).
    pub(crate) is_logged: bool,
    /// The names of the only access logs that have it (`log_name`).
    pub(crate) log_names: Vec<String>,
    /// What access logs have of it beside the usual (`log_append`).
    log_fields: Vec<(String, Arc<dyn LogValue>)>,
    deadline: Option<Duration>,
    retry: Option<RetryMethods>,
    lane: Option<Arc<LaneChoice>>,
    /// Whether it goes on without its client (`run_departed`).
    pub runs_departed: bool,
    original_method: Method,
    /// The path of `uri` in normal form, where that differs from what is written there.
    path: Option<Vec<u8>>,
    is_rewritten: bool,
    flaw: Option<BadRequest>,
    /// Index of the site that it belongs to.
    site: Option<usize>,
    root: Option<Arc<Root>>,
    vars: Vec<(String, String)>,
    captures: Vec<Captures>,
    file_match: Option<FileMatch>,
    filters: Vec<Arc<dyn Filter>>,
    interceptors: Vec<Arc<dyn Interceptor>>,
    /// As the client sent it, if the request may have to start over.
    first_headers: Option<Box<HeaderMap>>,
    verified: Vec<Verified>,
    /// The zones of `rate_limit` that it has counted in.
    counted_in: Vec<Arc<str>>,
    /// Whose password was right (`basic_auth`).
    user: Option<String>,
    /// Of the response that `intercept` looks at, and then of the one that it replaces.
    response_head: Option<Box<ResponseHead>>,
    /// The error that is being handled, once there is one.
    failure: Option<Box<Failure>>,
    /// How many filters there were when it came up.
    filters_before_failure: usize,
    /// An engine was asked for the page of the error and had none: only what needs no engine is left.
    engines_are_out: bool,
    origin: Origin,
    /// When the server stops, if that was known when the request came.
    pub(crate) stops_at: Option<Instant>,
    /// When it came, if that is told.
    pub(crate) came_at: Option<Instant>,
    uuid: OnceLock<Uuid>,
    pub(crate) observed: Observed,
}

impl Exchange {
    /// A request as it came in. Never fails: what cannot be routed is answered with 400 by [`crate::Sites::route`].
    pub fn new(head: request::Parts, connection: Connection) -> Self {
        let request::Parts { method, uri, version, mut headers, extensions, .. } = head;
        let host = host::of_request(&uri, &mut headers);
        let path = url_path::normalize(uri.path());
        let flaw = if host.is_none() { Some(BadRequest::Host) } else { path.as_ref().err().copied() };
        Self {
            original_method: method.clone(),
            method,
            original_uri: uri.clone(),
            uri,
            version,
            is_websocket_stream: extensions.get::<WebSocketStream>().is_some(),
            headers,
            connection,
            code: CodeGeneration::default(),
            host: host.unwrap_or_default(),
            forwarded: None,
            body: BodyRules::default(),
            cache: None,
            is_personal: false,
            proxied: None,
            place: Place::default(),
            deadline: None,
            retry: None,
            lane: None,
            runs_departed: false,
            path: path.unwrap_or_default(),
            is_logged: true,
            log_names: Vec::new(),
            log_fields: Vec::new(),
            is_rewritten: false,
            flaw,
            site: None,
            root: None,
            vars: Vec::new(),
            captures: Vec::new(),
            file_match: None,
            filters: Vec::new(),
            interceptors: Vec::new(),
            first_headers: None,
            verified: Vec::new(),
            counted_in: Vec::new(),
            user: None,
            response_head: None,
            failure: None,
            filters_before_failure: 0,
            engines_are_out: false,
            origin: Origin::Regent,
            stops_at: None,
            came_at: None,
            uuid: OnceLock::new(),
            observed: Observed::default(),
        }
    }

    /// Takes a response through the filters of the routes, whoever made it, and adds `Server` if there is none. An error
    /// page keeps the status and the fields of the error.
    pub fn finish(&self, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        if let Some(failure) = &self.failure {
            failure.mark(self.origin, &mut response);
        }
        let mut response = filter::finish(self, response);
        server_timing::write(self, response.headers_mut());
        response
    }

    /// What a trusted proxy says of the client; `None`: the connection is not one of such a proxy.
    pub fn forwarded(&self) -> Option<&Forwarded> {
        self.forwarded.as_deref()
    }

    /// The client's address, as a trusted proxy may tell it; `None` on a Unix socket.
    pub fn client_ip(&self) -> Option<IpAddr> {
        match &self.forwarded {
            Some(forwarded) => forwarded.address,
            None => self.connection.remote.map(|remote| remote.ip()),
        }
    }

    /// How long ago it came, if that is told.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.came_at.map(|came_at| came_at.elapsed())
    }

    /// As the client sent it.
    pub fn original_method(&self) -> &Method {
        &self.original_method
    }

    /// The path of [`Self::uri`], decoded, without dot segments and doubled slashes.
    pub fn path(&self) -> &[u8] {
        match &self.path {
            Some(path) => path,
            None => self.uri.path().as_bytes(),
        }
    }

    /// The same of the URI that the client sent; empty if that has no path.
    pub(crate) fn original_path(&self) -> Cow<'_, [u8]> {
        if !self.is_rewritten && self.flaw.is_none() {
            return Cow::Borrowed(self.path());
        }
        match url_path::normalize(self.original_uri.path()) {
            Ok(None) => Cow::Borrowed(self.original_uri.path().as_bytes()),
            Ok(Some(path)) => Cow::Owned(path),
            Err(_) => Cow::Borrowed(&[]),
        }
    }

    pub(crate) fn flaw(&self) -> Option<BadRequest> {
        self.flaw
    }

    /// The URI's authority, or the `Host` field, as the client sent it; empty if there is none.
    pub fn host_port(&self) -> &[u8] {
        host::host_port(&self.uri, &self.headers)
    }

    pub(crate) fn enter_site(&mut self, site: usize, default_root: &Arc<Root>) {
        self.site = Some(site);
        self.root = Some(default_root.clone());
    }

    pub fn site(&self) -> Option<usize> {
        self.site
    }

    pub(crate) fn root(&self) -> Option<Arc<Root>> {
        self.root.clone()
    }

    pub(crate) fn set_root(&mut self, root: Arc<Root>) {
        self.root = Some(root);
    }

    pub(crate) fn set_var(&mut self, name: &str, value: String) {
        match self.vars.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.vars.push((name.to_owned(), value)),
        }
    }

    /// Of several of a name, the last counts.
    pub(crate) fn set_log_field(&mut self, name: &str, value: Arc<dyn LogValue>) {
        self.log_fields.retain(|(known, _)| known != name);
        self.log_fields.push((name.to_owned(), value));
    }

    pub(crate) fn log_fields<'a>(
        &'a self,
        response: &'a HeaderMap,
    ) -> impl Iterator<Item = (&'a str, Vec<u8>)> {
        self.log_fields.iter().map(|(name, value)| (name.as_str(), value.value(self, response)))
    }

    pub(crate) fn write_var(&self, name: &str, out: &mut Vec<u8>) {
        if let Some((_, value)) = self.vars.iter().find(|(known, _)| known == name) {
            return out.extend_from_slice(value.as_bytes());
        }
        match (name, &self.root) {
            ("root", Some(root)) => out.extend_from_slice(root.path().as_os_str().as_bytes()),
            ("client_ip", _) => {
                out.extend(self.client_ip().into_iter().flat_map(|ip| ip.to_string().into_bytes()))
            }
            ("trace_id" | "span_id", _) => self.write_trace_var(name, out),
            ("trusted_proxy", _) => out.extend_from_slice(self.forwarded.is_some().to_string().as_bytes()),
            _ => {}
        }
    }

    /// Of its lines in access logs (`log_level`, which is a variable, as in Caddy).
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        let (_, level) = self.vars.iter().find(|(name, _)| name == "log_level")?;
        let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];
        levels.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(level))
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = Some(deadline);
    }

    pub(crate) fn retry(&self) -> Option<RetryMethods> {
        self.retry
    }

    pub(crate) fn set_retry(&mut self, methods: RetryMethods) {
        self.retry = Some(methods);
    }

    pub(crate) fn lane(&self) -> Option<&Arc<LaneChoice>> {
        self.lane.as_ref()
    }

    pub(crate) fn set_lane(&mut self, lane: &Arc<LaneChoice>) {
        self.lane = Some(Arc::clone(lane));
    }

    pub(crate) fn add_captures(&mut self, captures: Captures) {
        self.captures.push(captures);
    }

    /// A group of the latest match of the regular expression of that name (of any, without one); empty if none.
    pub(crate) fn group(&self, name: Option<&str>, group: &str) -> &[u8] {
        let fits = |captures: &&Captures| name.is_none() || captures.name.as_deref() == name;
        let Some(captures) = self.captures.iter().rev().find(fits) else { return &[] };
        let found = match group.parse::<usize>() {
            Ok(index) => captures.groups.get(index),
            Err(_) => captures.groups.iter().find(|(known, _)| known.as_deref() == Some(group)),
        };
        found.map_or(&[], |(_, text)| text)
    }

    pub(crate) fn set_file_match(&mut self, found: FileMatch) {
        self.file_match = Some(found);
    }

    pub(crate) fn file_match(&self) -> Option<&FileMatch> {
        self.file_match.as_ref()
    }

    pub(crate) fn add_filter(&mut self, filter: Arc<dyn Filter>) {
        self.filters.push(filter);
    }

    pub(crate) fn add_interceptor(&mut self, interceptor: Arc<dyn Interceptor>) {
        self.interceptors.push(interceptor);
    }

    /// Whether anything is to be done with a response, in whole or in part.
    pub(crate) fn may_be_intercepted(&self) -> bool {
        !self.interceptors.is_empty() || self.response_head.is_some()
    }

    /// The one that is to be asked next.
    pub(crate) fn take_interceptor(&mut self) -> Option<Arc<dyn Interceptor>> {
        self.interceptors.pop()
    }

    pub(crate) fn response_head(&self) -> Option<&ResponseHead> {
        self.response_head.as_deref()
    }

    pub(crate) fn set_response_head(&mut self, head: Option<ResponseHead>) -> Option<ResponseHead> {
        std::mem::replace(&mut self.response_head, head.map(Box::new)).map(|head| *head)
    }

    pub(crate) fn filters(&self) -> &[Arc<dyn Filter>] {
        &self.filters
    }

    /// Starts over with the request as it came in, but for its header, root and variables, to be answered with an error
    /// page. Answers whether that is possible: there is one error to a request.
    pub(crate) fn enter_error(&mut self, failure: Failure) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.failure = Some(Box::new(failure));
        self.filters_before_failure = self.filters.len();
        self.begin_error_page();
        true
    }

    /// Starts over with the page of the error: no engine could make it. Answers whether that is possible: it is once.
    pub(crate) fn give_up_engines(&mut self) -> bool {
        if self.failure.is_none() || self.engines_are_out {
            return false;
        }
        self.engines_are_out = true;
        self.leave_error_page();
        self.begin_error_page();
        true
    }

    /// Forgets what the routes of the error page have asked for.
    pub(crate) fn leave_error_page(&mut self) {
        self.filters.truncate(self.filters_before_failure);
        self.origin = Origin::Regent;
    }

    /// Whether the cache may have to do with it.
    pub fn is_cached(&self) -> bool {
        self.cache.is_some()
    }

    /// The same request for whoever fetches the response for more than one client: its way back is another.
    pub(crate) fn of_cache(&self) -> Self {
        let mut own = self.clone();
        (own.filters, own.interceptors, own.cache) = (Vec::new(), Vec::new(), None);
        own
    }

    fn begin_error_page(&mut self) {
        self.cache = None;
        self.interceptors.clear();
        self.response_head = None;
        self.method = self.original_method.clone();
        self.uri = self.original_uri.clone();
        self.path = url_path::normalize(self.uri.path()).unwrap_or_default();
        self.is_rewritten = false;
        self.origin = Origin::Regent;
    }

    pub(crate) fn engines_are_out(&self) -> bool {
        self.engines_are_out
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Sets the `Host` of the request for the handlers that follow.
    pub(crate) fn refresh_host(&mut self) {
        self.host = host::host_name(self.host_port()).unwrap_or_default();
    }

    /// An identifier of this request, made when it is first asked for.
    pub(crate) fn uuid(&self) -> Uuid {
        *self.uuid.get_or_init(Uuid::new)
    }
}

#[cfg(test)]
pub(crate) mod tests;
