//! Figures under Caddy's names: what is counted at which address, and the response that is counted until it has ended.

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use regent_config::{Config, HttpMetrics, Purpose, Server};
use regent_exchange::RequestBody;
use regent_gateway::Logged;
use regent_handlers::Exchange;
use regent_metrics::{HostLabel, Hosts, HttpLabels, HttpMeter, HttpRequest, Outcome, Registry};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// As Caddy calls what the sites of a file are made of, and the redirects that it adds to them.
const SITES: &str = "subroute";
const REDIRECTS: &str = "static_response";
/// The server of redirects to HTTPS, where the file has no site (modules/caddyhttp/autohttps.go).
const REDIRECTING: &str = "remaining_auto_https_redirects";

/// Under what the requests of each address are counted, in the order of the configuration; `None`: they are not.
pub fn labels(config: &Config, registry: &Registry) -> Vec<Option<Arc<HttpLabels>>> {
    let Some(metrics) = config.global.metrics else { return config.servers.iter().map(|_| None).collect() };
    let mut names = (0..).map(|number| format!("srv{number}"));
    let labels = |server: &Server| {
        let (name, handler) = match server.purpose {
            Purpose::Sites => {
                let numbered = names.next().expect("invariant: numbers do not end");
                (server.options.name.clone().unwrap_or(numbered), SITES)
            }
            Purpose::Redirects => (REDIRECTING.to_owned(), REDIRECTS),
        };
        let hosts = named_hosts(server);
        let hosts = match metrics {
            HttpMetrics::Together => Hosts::Together,
            HttpMetrics::PerHost => Hosts::Named(&hosts),
            HttpMetrics::PerAnyHost => Hosts::All(&hosts),
        };
        Some(Arc::new(registry.http_labels(&name, handler, hosts)))
    };
    config.servers.iter().map(labels).collect()
}

/// What is shown; `None`: nothing.
pub fn shown(metrics: Option<HttpMetrics>) -> Option<HostLabel> {
    metrics.map(|metrics| match metrics {
        HttpMetrics::Together => HostLabel::Absent,
        HttpMetrics::PerHost | HttpMetrics::PerAnyHost => HostLabel::Shown,
    })
}

/// Without those that stand for many.
fn named_hosts(server: &Server) -> Vec<String> {
    let hosts = server.sites.iter().flat_map(|site| &site.hosts).filter(|host| !host.contains('*'));
    hosts.map(|host| host.to_ascii_lowercase()).collect()
}

/// Counts the requests of a listening address.
pub struct HttpFigures {
    pub meter: Rc<HttpMeter>,
    pub labels: Arc<HttpLabels>,
}

impl HttpFigures {
    /// `None`: no site is asked, and then Caddy counts nothing either.
    pub fn begin(&self, exchange: &Exchange, body: &RequestBody, started: Instant) -> Option<HttpRequest> {
        exchange.site()?;
        let asked = (exchange.original_method().as_str(), exchange.host.as_str());
        Some(HttpRequest::begin(&self.meter, &self.labels, asked, size(exchange, body), started))
    }
}

/// As Caddy reckons it: names and values without what separates them, and the body if its length is known.
fn size(exchange: &Exchange, body: &RequestBody) -> u64 {
    let line = exchange.original_uri.path_and_query().map_or(0, |target| target.as_str().len())
        + exchange.original_method().as_str().len()
        + "HTTP/1.1".len();
    let fields = exchange.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    (line + fields.sum::<usize>()) as u64 + body.size_hint().exact().unwrap_or(0)
}

/// A response's body, with the request that is counted until it has ended.
pub struct Counted {
    body: Logged,
    request: Option<HttpRequest>,
}

impl Counted {
    pub fn nowhere(response: Response<Logged>) -> Response<Self> {
        response.map(|body| Self { body, request: None })
    }

    pub fn new(response: Response<Logged>, outcome: Outcome, request: Option<HttpRequest>) -> Response<Self> {
        let status = response.status().as_u16();
        let request = request.map(|mut request| {
            request.respond(status, outcome);
            request
        });
        response.map(|body| Self { body, request })
    }

    /// Of the body within.
    pub fn map(self, change: impl FnOnce(Logged) -> Logged) -> Self {
        Self { body: change(self.body), request: self.request }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(frame))), Some(request)) = (&frame, &mut self.request) {
            request.send(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
