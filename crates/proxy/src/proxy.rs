//! A request's way through an upstream.

use crate::ahead::{self, Extent};
use crate::attempt::{Attempt, Failed};
use crate::backend::{Backend, Chosen};
use crate::buffered::Buffers;
use crate::download::Received;
use crate::fields;
use crate::health::Checks;
use crate::request::{Asked, wanted_upgrade};
use crate::resolve::Resolver;
use crate::response;
use crate::transports::Transports;
use crate::tries::Tries;
use crate::trouble::Trouble;
use crate::tunnel;
use crate::upload::{Progress, Upload};
use http::{Method, Response, StatusCode, header};
use http_body::Body;
use regent_config::{self as config, DnsServers};
use regent_exchange::{BodyLimits, Informational, RequestBody, ResponseBody};
use regent_handlers::{Exchange, Failure, ProxyTarget};
use regent_spool::Spools;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A request that has been through so many servers like this one goes round.
const MOST_PASSAGES: usize = 20;

/// All that an I/O thread has for its requests to upstreams.
pub struct Proxy {
    /// As [`regent_config::ProxyId`] counts them.
    backends: Vec<Backend>,
    /// For bodies that upstreams get when they are complete.
    spools: Arc<Spools>,
    /// Requests that no upstream answered.
    unanswered: Cell<u64>,
    _checks: Option<Checks>,
}

/// Who asks upstreams how they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthChecks {
    /// This I/O thread, for all.
    Here,
    /// Another.
    Elsewhere,
}

/// A request that has come, but for its body.
pub struct IncomingRequest<'a> {
    pub exchange: &'a mut Exchange,
    pub client: &'a Rc<dyn Informational>,
    /// Of requests whose route has none of its own.
    pub limits: BodyLimits,
}

impl Proxy {
    pub fn new(transports: &Transports, checks: HealthChecks, spools: Arc<Spools>) -> Self {
        let resolver = Resolver::of(&DnsServers::default());
        let begin = || Checks::begin(transports.all(), &resolver);
        Self {
            _checks: (checks == HealthChecks::Here).then(begin),
            backends: transports.all().iter().map(|transport| Backend::new(transport, &resolver)).collect(),
            spools,
            unanswered: Cell::new(0),
        }
    }

    /// Runs the request. `received` counts the bytes of the body, which is left where the upstream is not to get it.
    ///
    /// # Errors
    /// When no upstream has responded, with the status that says why.
    pub async fn run(
        &self,
        arrived: IncomingRequest<'_>,
        target: &ProxyTarget,
        body: &mut RequestBody,
        received: &Rc<Cell<u64>>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let is_chunked = body.size_hint().exact().is_none();
        let client = arrived.client;
        self.exchange(arrived, target, body, received).await.map_err(|trouble| {
            // What the client goes on to send may not be what it seems.
            if is_chunked {
                client.close_connection();
            }
            self.note_unanswered(&trouble);
            trouble.failure()
        })
    }

    async fn exchange(
        &self,
        IncomingRequest { exchange, client, limits }: IncomingRequest<'_>,
        target: &ProxyTarget,
        body: &mut RequestBody,
        received: &Rc<Cell<u64>>,
    ) -> Result<Response<ResponseBody>, Trouble> {
        if fields::passages(&exchange.headers) >= MOST_PASSAGES {
            return Err(Trouble::Loop);
        }
        let backend = &self.backends[usize::from(target.rules.id().0)];
        let (asked, body) = asked(exchange, target, backend, body)?;
        let may_repeat = target.rules.may_repeat(exchange).unwrap_or_else(|| asked.method.is_idempotent());
        let (body, progress) = match read_ahead(&backend.transport.config) {
            Some(extent) => {
                let read = ahead::read(body, extent, limits, received, client, &self.spools).await;
                // It has been counted.
                (read.map_err(Trouble::Upload)?, Progress::new(&Rc::default()))
            }
            None => (body, Progress::new(received)),
        };
        let mut upload = Upload::new(body, limits, &progress, client).map_err(Trouble::Upload)?;
        let mut tries = Tries::new(&backend.transport.config.balancing);
        let mut tried = Vec::new();
        loop {
            let trouble = match backend.choose(target, exchange, &tried).await? {
                None => Trouble::Unavailable,
                Some(mut chosen) => {
                    exchange.proxied = Some(Box::new(chosen.proxied(tries.failed())));
                    let traceparent = chosen.trace(exchange, &asked, tries.failed());
                    let attempt = Attempt {
                        transport: &backend.transport,
                        pool: &chosen.pool,
                        rules: &*target.rules,
                        asked: &asked,
                        traceparent: traceparent.as_ref(),
                        exchange,
                        client,
                        progress: &progress,
                        limits,
                        may_repeat,
                    };
                    let Failed { trouble, upload: left } = match attempt.send(upload).await {
                        Ok(answered) => {
                            let most = backend.transport.config.response_buffers;
                            let buffers = Buffers { most, spools: Arc::clone(&self.spools) };
                            return answered.finish(chosen, exchange, target, &asked, client, &buffers);
                        }
                        Err(failed) => failed,
                    };
                    if let Some(span) = chosen.in_flight.span() {
                        span.failed(trouble.word(), trouble.to_string());
                    }
                    if !trouble.is_clients() {
                        chosen.state.fail();
                        tried.push(Arc::clone(&chosen.state));
                    }
                    match left {
                        Some(left) => upload = left,
                        None => return Err(trouble),
                    }
                    trouble
                }
            };
            if !tries.again().await {
                return Err(trouble);
            }
        }
    }

    /// A flood of failures must not become a flood of log lines: the first ones and every thousandth are logged.
    fn note_unanswered(&self, trouble: &Trouble) {
        let count = self.unanswered.get() + 1;
        self.unanswered.set(count);
        if count <= 10 || count.is_multiple_of(1000) {
            tracing::warn!(reason = %trouble, count, "a request was not answered by an upstream");
        }
    }
}

/// How much of a request's body is read before an upstream is asked; `None`: it goes on as it comes.
fn read_ahead(config: &config::ReverseProxy) -> Option<Extent> {
    match (&config.transport.fastcgi, config.request_buffers) {
        (Some(_), _) => Some(Extent::Whole),
        (None, 0) => None,
        (None, most) => Some(Extent::UpTo(most)),
    }
}

/// What is to be asked for, and the body that goes with it.
fn asked(
    exchange: &mut Exchange,
    target: &ProxyTarget,
    backend: &Backend,
    body: &mut RequestBody,
) -> Result<(Asked, RequestBody), Trouble> {
    let upgrade = wanted_upgrade(exchange, &backend.transport);
    let Some(rewritten) = target.rules.rewritten(exchange) else {
        let (method, uri) = (exchange.method.clone(), exchange.uri.clone());
        return Ok((Asked { method, uri, upgrade }, body.take()));
    };
    let (method, uri) = rewritten.map_err(Trouble::Rewrite)?;
    let is_changed = method != exchange.method;
    // As in Caddy: whoever is asked another question gets no answer to the first.
    let body = match is_changed && (method == Method::GET || method == Method::HEAD) {
        true => RequestBody::empty(),
        false => body.take(),
    };
    Ok((Asked { method, uri, upgrade }, body))
}

impl crate::attempt::Answered {
    /// Makes the response one for the client.
    fn finish(
        mut self,
        mut chosen: Chosen,
        exchange: &mut Exchange,
        target: &ProxyTarget,
        asked: &Asked,
        client: &Rc<dyn Informational>,
        buffers: &Buffers,
    ) -> Result<Response<ResponseBody>, Trouble> {
        chosen.note(&self.response, self.latency);
        if let Some(span) = chosen.in_flight.span() {
            span.responded(self.response.status());
        }
        if self.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (head, received) = self.response.into_parts();
            let Received::Http(body, lease) = received else {
                return Err(Trouble::Switched { upstream: chosen.pool.name.clone() });
            };
            let (response, limits) = (Response::from_parts(head, body), chosen.tunnel_limits());
            let wanted = asked.upgrade.as_ref();
            return tunnel::switch(response, lease, chosen.in_flight, wanted, limits, &**client);
        }
        if let Some(proxied) = &mut exchange.proxied {
            proxied.latency = Some(self.latency);
            proxied.response = Some((self.response.status(), self.response.headers().clone()));
        }
        response::change_head(&mut self.response, exchange, &asked.method, &*target.rules);
        if let Some(cookie) = chosen.cookie {
            self.response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(response::received(self.response, self.upload, chosen.in_flight, buffers))
    }
}
