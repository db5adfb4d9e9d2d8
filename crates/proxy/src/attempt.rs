//! A request at one upstream.

use crate::caller::Caller;
use crate::connect::connect;
use crate::download::Received;
use crate::fastcgi::{self, Fault, Question, Variables};
use crate::informational;
use crate::pool::{Freshness, Lease, Pool};
use crate::request::{Asked, Way};
use crate::transports::{Purpose, Transport};
use crate::trouble::Trouble;
use crate::upload::{Progress, Upload};
use http::{HeaderValue, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use regent_config::FastCgi;
use regent_exchange::{BodyLimits, Informational, RequestBody};
use regent_handlers::{Exchange, ProxyRules};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Attempt<'a> {
    pub transport: &'a Arc<Transport>,
    pub pool: &'a Rc<Pool>,
    pub rules: &'a dyn ProxyRules,
    pub asked: &'a Asked,
    pub traceparent: Option<&'a HeaderValue>,
    pub exchange: &'a Exchange,
    pub client: &'a Rc<dyn Informational>,
    pub progress: &'a Rc<Progress>,
    pub limits: BodyLimits,
    /// Whether a request without a body may be sent again that an upstream may have seen.
    pub may_repeat: bool,
}

/// The head of a response, whose body is still to come over the connection.
pub(crate) struct Answered {
    pub response: Response<Received>,
    pub upload: Rc<Progress>,
    /// From the request to the head of the response.
    pub latency: Duration,
}

/// Why there is none.
pub(crate) struct Failed {
    pub trouble: Trouble,
    /// The body, if the request can be sent again: nothing of it was sent, or it has none and may be repeated.
    pub upload: Option<Upload>,
}

/// How a request over one connection has failed.
enum Unsent {
    Broken(Box<TrySendError<Request<Upload>>>),
    Silent,
}

impl Attempt<'_> {
    /// Sends the request. A connection that was used before may have been closed by the upstream in the same moment: then
    /// the request is sent once more over a new one, if it can be.
    pub async fn send(&self, upload: Upload) -> Result<Answered, Failed> {
        let started = Instant::now();
        if let Some(fastcgi) = &self.transport.config.transport.fastcgi {
            return self.ask_fastcgi(fastcgi, upload, started).await;
        }
        let is_empty = upload.is_end_stream();
        let (was_used, error) = match self.send_over(Freshness::Any, upload, started).await? {
            Ok(answered) => return Ok(answered),
            Err(error) => error,
        };
        // In which the directive has no say: the upstream has most likely not seen it.
        let was_late = was_used && matches!(error, Unsent::Broken(_));
        let may_repeat = self.may_repeat || was_late && self.asked.method.is_idempotent();
        let failed = self.failed(error, is_empty && may_repeat);
        let upload = match failed {
            Failed { trouble: Trouble::Broken { .. }, upload: Some(upload) } if was_used => upload,
            failed => return Err(failed),
        };
        let sent = self.send_over(Freshness::New, upload, started).await?;
        sent.map_err(|(_, error)| self.failed(error, is_empty && self.may_repeat))
    }

    /// The inner error says whether the connection had been used before.
    async fn send_over(
        &self,
        freshness: Freshness,
        upload: Upload,
        started: Instant,
    ) -> Result<Result<Answered, (bool, Unsent)>, Failed> {
        let purpose = if self.asked.upgrade.is_some() { Purpose::Upgrade } else { Purpose::Requests };
        let caller = Caller::of(self.exchange);
        let mut lease = match self.pool.lease(purpose, freshness, caller).await {
            Ok(lease) => lease,
            Err(trouble) => return Err(Failed { trouble, upload: Some(upload) }),
        };
        let request = self.way().request(self.exchange, self.rules, upload, lease.sender.version());
        let was_used = lease.is_used;
        match self.wait(request, &mut lease).await {
            Ok(response) => {
                let upload = Rc::clone(self.progress);
                let response = response.map(|body| Received::Http(body, lease));
                Ok(Ok(Answered { response, upload, latency: started.elapsed() }))
            }
            Err(error) => Ok(Err((was_used, error))),
        }
    }

    fn way(&self) -> Way<'_> {
        let address = &self.pool.address;
        Way { transport: self.transport, address, asked: self.asked, traceparent: self.traceparent }
    }

    async fn wait(
        &self,
        mut request: Request<Upload>,
        lease: &mut Lease,
    ) -> Result<Response<Incoming>, Unsent> {
        let mut early = informational::listen(&mut request);
        let sent = lease.sender.send(request);
        let sent = informational::pass(&mut early, self.exchange, &**self.client, sent);
        let limit = self.transport.config.transport.response_header_timeout;
        let silence = async {
            self.progress.done().await;
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            sent = sent => sent.map_err(|error| Unsent::Broken(Box::new(error))),
            () = silence, if !limit.is_zero() => Err(Unsent::Silent),
        }
    }

    /// `may_repeat`: the request has no body, and may be sent again.
    fn failed(&self, error: Unsent, may_repeat: bool) -> Failed {
        let upstream = self.pool.name.clone();
        if let Some(status) = self.progress.trouble() {
            return Failed { trouble: Trouble::Upload(status), upload: None };
        }
        let (trouble, unsent) = match error {
            Unsent::Broken(mut error) => {
                let unsent = error.take_message().filter(|_| !self.progress.is_touched());
                let cause = error.into_error();
                (Trouble::Broken { upstream, cause }, unsent.map(Request::into_body))
            }
            Unsent::Silent => {
                let after = self.transport.config.transport.response_header_timeout;
                (Trouble::Silent { upstream, after }, None)
            }
        };
        Failed { trouble, upload: unsent.or_else(|| self.upload_again(may_repeat)) }
    }

    /// The body for another try: none.
    fn upload_again(&self, may_repeat: bool) -> Option<Upload> {
        let again = || Upload::new(RequestBody::empty(), self.limits, self.progress, self.client).ok();
        may_repeat.then(again).flatten()
    }
}

/// Over FastCGI, each request has a connection of its own.
impl Attempt<'_> {
    async fn ask_fastcgi(
        &self,
        rules: &FastCgi,
        upload: Upload,
        started: Instant,
    ) -> Result<Answered, Failed> {
        let script = match self.rules.script(self.exchange, &self.asked.uri) {
            Ok(script) => script,
            Err(status) => return Err(Failed { trouble: Trouble::Script(status), upload: None }),
        };
        let address = &self.pool.address;
        let resolver = &self.pool.resolver;
        let caller = Caller::of(self.exchange);
        let stream = match connect(address, self.transport, Purpose::Requests, resolver, caller).await {
            Ok(connected) => connected.stream,
            Err(cause) => {
                let trouble = Trouble::Dial { upstream: self.pool.name.clone(), cause };
                return Err(Failed { trouble, upload: Some(upload) });
            }
        };
        let fields = self.way().head(self.exchange, self.rules);
        let question = Question {
            upstream: &self.pool.name,
            variables: Variables {
                exchange: self.exchange,
                fields: &fields,
                uri: &self.asked.uri,
                method: self.asked.method.as_str(),
                script: &script,
            },
            method: &self.asked.method,
            most_head: self.transport.config.transport.max_response_header as usize,
            captures_stderr: rules.capture_stderr,
        };
        let is_empty = upload.is_end_stream();
        match fastcgi::ask(stream, &question, upload, self.progress).await {
            Ok(response) => Ok(Answered {
                response: response.map(Received::FastCgi),
                upload: Rc::clone(self.progress),
                latency: started.elapsed(),
            }),
            Err(fault) => Err(self.failed_fastcgi(fault, is_empty && self.may_repeat)),
        }
    }

    fn failed_fastcgi(&self, cause: Fault, may_repeat: bool) -> Failed {
        if let Some(status) = self.progress.trouble() {
            return Failed { trouble: Trouble::Upload(status), upload: None };
        }
        let trouble = Trouble::FastCgi { upstream: self.pool.name.clone(), cause };
        Failed { trouble, upload: self.upload_again(may_repeat) }
    }
}
