//! Upstreams are asked how they are (Caddy's reverseproxy/healthchecks.go).

use crate::connect::{Version, connect};
use crate::resolve::Resolver;
use crate::transports::{Purpose, Transport};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use regent_config::{ActiveHealth, Upstream, UpstreamAddress};
use regent_exchange::RequestBody;
use regex::bytes::Regex;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

/// Bytes of a response that are looked at.
const MOST_READ: usize = 1 << 20;

type Reason = Box<dyn Error + Send + Sync>;

/// Asks as long as it lives.
pub(crate) struct Checks(Vec<AbortHandle>);

/// What is asked of one upstream.
struct Check {
    transport: Arc<Transport>,
    /// In the directive.
    index: usize,
    address: UpstreamAddress,
    rules: ActiveHealth,
    body: Option<Regex>,
    resolver: Rc<Resolver>,
}

impl Checks {
    pub fn begin(transports: &[Arc<Transport>], resolver: &Rc<Resolver>) -> Self {
        let checks = transports.iter().flat_map(|transport| Check::all(transport, resolver));
        Self(checks.map(|check| spawn_local(check.run()).abort_handle()).collect())
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl Check {
    fn all(transport: &Arc<Transport>, resolver: &Rc<Resolver>) -> Vec<Self> {
        let Some(rules) = &transport.config.active_health else { return Vec::new() };
        let resolver = Resolver::for_transport(&transport.config.transport, resolver);
        let check = |(index, upstream): (usize, &Upstream)| {
            let Upstream::Fixed(address) = upstream else { return None };
            Some(Self {
                transport: Arc::clone(transport),
                index,
                address: at_port(address, rules.port),
                rules: rules.clone(),
                body: rules.body.as_ref().and_then(|pattern| Regex::new(pattern).ok()),
                resolver: Rc::clone(&resolver),
            })
        };
        transport.config.upstreams.iter().enumerate().filter_map(check).collect()
    }

    /// All upstreams are asked at once, and from then on one after the other.
    async fn run(self) {
        let count = u32::try_from(self.transport.states.len()).unwrap_or(u32::MAX);
        let place = u32::try_from(self.index).unwrap_or(0) + 1;
        let mut wait = self.rules.interval / count * place;
        let (mut passes, mut fails) = (0, 0);
        loop {
            match timeout(self.rules.timeout, self.ask()).await.unwrap_or_else(|_| Err(self.late())) {
                Ok(()) => (passes, fails) = (passes + 1, 0),
                Err(reason) => {
                    tracing::debug!(upstream = self.name(), %reason, "an upstream is not well");
                    (passes, fails) = (0, fails + 1);
                }
            }
            self.judge(passes, fails);
            sleep(wait).await;
            wait = self.rules.interval;
        }
    }

    fn judge(&self, passes: u32, fails: u32) {
        let state = &self.transport.states[self.index];
        if passes == self.rules.passes {
            tracing::debug!(upstream = self.name(), "an upstream is well");
            state.comes_up();
        } else if fails == self.rules.fails {
            tracing::warn!(upstream = self.name(), "an upstream is not well: it gets no requests");
            state.goes_down();
        }
    }

    async fn ask(&self) -> Result<(), Reason> {
        let connected = connect(&self.address, &self.transport, Purpose::Requests, &self.resolver).await?;
        let io = TokioIo::new(connected.stream);
        let request = self.request(connected.version)?;
        // The connection ends with the question.
        match connected.version {
            Version::Http1 => {
                let (mut sender, connection) = http1::handshake(io).await?;
                self.listen(sender.send_request(request), connection).await
            }
            Version::Http2 => {
                let (mut sender, connection) = http2::handshake(crate::connection::Local, io).await?;
                self.listen(sender.send_request(request), connection).await
            }
        }
    }

    async fn listen(
        &self,
        response: impl Future<Output = hyper::Result<Response<Incoming>>>,
        connection: impl Future<Output = hyper::Result<()>>,
    ) -> Result<(), Reason> {
        let mut judged = std::pin::pin!(async { self.judge_response(response.await?).await });
        tokio::select! {
            biased;
            judged = &mut judged => judged,
            // Its end, good or bad, is in what is still to be read.
            _ = connection => judged.await,
        }
    }

    async fn judge_response(&self, response: Response<Incoming>) -> Result<(), Reason> {
        let status = response.status().as_u16();
        if !(self.rules.status.0..=self.rules.status.1).contains(&status) {
            return Err(format!("its status is {status}").into());
        }
        let body = read(response.into_body()).await?;
        match &self.body {
            Some(pattern) if !pattern.is_match(&body) => Err("its body is not what was expected".into()),
            _ => Ok(()),
        }
    }

    fn request(&self, version: Version) -> Result<Request<RequestBody>, Reason> {
        let host = match &self.address {
            UpstreamAddress::Tcp { host, .. } if !host.is_empty() => self.address.to_string(),
            UpstreamAddress::Tcp { port, .. } => format!("localhost:{port}"),
            UpstreamAddress::Unix(_) => "localhost".to_owned(),
        };
        let mut request = Request::new(RequestBody::empty());
        *request.method_mut() = Method::from_bytes(self.rules.method.as_bytes())?;
        let fields = request.headers_mut();
        fields.insert(header::HOST, HeaderValue::try_from(host)?);
        fields.insert(header::USER_AGENT, HeaderValue::from_static("Regent"));
        for (index, (name, value)) in self.rules.headers.iter().enumerate() {
            let (field, value) = (HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
            // The first of a name replaces what is there, the others are added.
            match self.rules.headers[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                true => drop(fields.append(field, value)),
                false => drop(fields.insert(field, value)),
            }
        }
        *request.uri_mut() = match version {
            Version::Http1 => self.rules.uri.parse()?,
            Version::Http2 => {
                let scheme = if self.transport.config.transport.tls.is_some() { "https" } else { "http" };
                let host = fields.remove(header::HOST);
                let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or("localhost");
                format!("{scheme}://{host}{}", self.rules.uri).parse()?
            }
        };
        Ok(request)
    }

    fn name(&self) -> &str {
        &self.transport.states[self.index].name
    }

    fn late(&self) -> Reason {
        format!("it did not respond within {} ms", self.rules.timeout.as_millis()).into()
    }
}

fn at_port(address: &UpstreamAddress, port: Option<u16>) -> UpstreamAddress {
    match (address, port) {
        (UpstreamAddress::Tcp { host, .. }, Some(port)) => UpstreamAddress::Tcp { host: host.clone(), port },
        (UpstreamAddress::Unix(_), Some(port)) => UpstreamAddress::Tcp { host: String::new(), port },
        (address, None) => address.clone(),
    }
}

/// The beginning of a body that comes whole as far as it is read.
async fn read(mut body: Incoming) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    while bytes.len() < MOST_READ {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.transpose()?;
        let Some(frame) = frame else { break };
        let data: Bytes = frame.into_data().unwrap_or_default();
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
