//! Upstreams are asked how they are (Caddy's reverseproxy/healthchecks.go).

mod question;

use crate::caller::Caller;
use crate::connect::{Version, connect};
use crate::forward;
use crate::request::{in_form_for, relay};
use crate::resolve::Resolver;
use crate::transports::{Purpose, Transport};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use question::Question;
use regent_config::{ActiveHealth, Redirects, Upstream, UpstreamAddress};
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
/// As Go's client, which Caddy asks with.
const MOST_REDIRECTS: usize = 10;
/// In `health_headers`: the upstream that is asked about.
const TARGET: &str = "{http.reverse_proxy.active.target_upstream}";

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
                address: rules.upstream.clone().unwrap_or_else(|| at_port(address, rules.port)),
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
        let mut question = Question::first(&self.rules)?;
        for _ in 0..=MOST_REDIRECTS {
            match self.put(&question).await? {
                None => return Ok(()),
                Some(next) => question = next,
            }
        }
        Err(format!("it leads elsewhere more than {MOST_REDIRECTS} times").into())
    }

    /// `Some`: the response leads there.
    async fn put(&self, question: &Question) -> Result<Option<Question>, Reason> {
        let (transport, resolver) = (&self.transport, &self.resolver);
        let connecting = connect(&self.address, transport, Purpose::Requests, resolver, Caller::Unknown);
        let connected = connecting.await?;
        let io = TokioIo::new(connected.stream);
        let request = self.request(question, connected.version)?;
        // The connection ends with the question.
        match connected.version {
            Version::Http1 => {
                let (mut sender, connection) = http1::handshake(io).await?;
                self.listen(question, sender.send_request(request), connection).await
            }
            Version::Http2 => {
                let (mut sender, connection) = http2::handshake(crate::connection::Local, io).await?;
                self.listen(question, sender.send_request(request), connection).await
            }
        }
    }

    async fn listen(
        &self,
        question: &Question,
        response: impl Future<Output = hyper::Result<Response<Incoming>>>,
        connection: impl Future<Output = hyper::Result<()>>,
    ) -> Result<Option<Question>, Reason> {
        let mut judged = std::pin::pin!(async { self.judge_response(question, response.await?).await });
        tokio::select! {
            biased;
            judged = &mut judged => judged,
            // Its end, good or bad, is in what is still to be read.
            _ = connection => judged.await,
        }
    }

    async fn judge_response(
        &self,
        question: &Question,
        response: Response<Incoming>,
    ) -> Result<Option<Question>, Reason> {
        if self.rules.redirects == Redirects::Followed
            && let Some(next) = question.behind(&response)
        {
            return Ok(Some(next));
        }
        let status = response.status().as_u16();
        if !(self.rules.status.0..=self.rules.status.1).contains(&status) {
            return Err(format!("its status is {status}").into());
        }
        let body = read(response.into_body()).await?;
        match &self.body {
            Some(pattern) if !pattern.is_match(&body) => Err("its body is not what was expected".into()),
            _ => Ok(None),
        }
    }

    fn request(&self, question: &Question, version: Version) -> Result<Request<Full<Bytes>>, Reason> {
        let host = match &self.address {
            UpstreamAddress::Tcp { host, .. } if !host.is_empty() => self.address.to_string(),
            UpstreamAddress::Tcp { port, .. } => format!("localhost:{port}"),
            UpstreamAddress::Unix(_) => "localhost".to_owned(),
        };
        let host = question.host.clone().unwrap_or(host);
        let mut request = Request::new(Full::new(question.body.clone()));
        *request.method_mut() = question.method.clone();
        let fields = request.headers_mut();
        fields.insert(header::HOST, HeaderValue::try_from(host)?);
        fields.insert(header::USER_AGENT, HeaderValue::from_static("Regent"));
        for (index, (name, value)) in self.rules.headers.iter().enumerate() {
            let value = value.replace(TARGET, self.name());
            let (field, value) = (HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
            // The first of a name replaces what is there, the others are added.
            match self.rules.headers[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                true => drop(fields.append(field, value)),
                false => drop(fields.insert(field, value)),
            }
        }
        *request.uri_mut() = match version {
            Version::Http1 => {
                let relay = relay(&self.transport, &self.address);
                fields.extend(relay.and_then(forward::authorization));
                in_form_for(relay, &self.address, question.target.parse()?)
            }
            Version::Http2 => {
                let is_secure = self.transport.config.transport.tls_to(&self.address).is_some();
                let scheme = if is_secure { "https" } else { "http" };
                let host = fields.remove(header::HOST);
                let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or("localhost");
                format!("{scheme}://{host}{}", question.target).parse()?
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

/// A Unix socket has no port.
fn at_port(address: &UpstreamAddress, port: Option<u16>) -> UpstreamAddress {
    match (address, port) {
        (UpstreamAddress::Tcp { host, .. }, Some(port)) => UpstreamAddress::Tcp { host: host.clone(), port },
        (address, _) => address.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_for_the_checks_does_not_take_a_unix_socket_down() {
        let asked =
            |address: &str| at_port(&UpstreamAddress::parse(address).unwrap(), Some(2021)).to_string();
        assert_eq!(asked("unix//run/a.sock"), "unix//run/a.sock");
        assert_eq!(asked("a.test:80"), "a.test:2021");
    }
}
