//! The span of a request to an upstream, by OpenTelemetry's conventions
//! (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span>).

use http::{HeaderValue, Method, StatusCode};
use regent_config::UpstreamAddress;
use regent_handlers::{Exchange, Step};
use regent_traces::{Attribute, Period, SpanKind};
use std::time::Instant;

/// Ends when it is dropped.
pub(crate) struct UpstreamSpan {
    step: Step,
    began: Instant,
    name: String,
    attributes: Vec<Attribute>,
    end: End,
}

enum End {
    /// Neither a response nor trouble: the client has left.
    Left,
    Responded(StatusCode),
    Failed {
        word: &'static str,
        why: String,
    },
}

/// What is asked.
pub(crate) struct Call<'a> {
    pub address: &'a UpstreamAddress,
    pub scheme: &'static str,
    pub method: &'a Method,
    pub path: &'a str,
    /// Times that it was asked of an upstream before.
    pub resends: u32,
}

impl UpstreamSpan {
    /// `None`: nobody wants to know.
    pub fn begin(exchange: &Exchange, call: &Call<'_>) -> Option<Box<Self>> {
        let step = exchange.step()?;
        let Call { address, scheme, method, path, resends } = call;
        let method = method.as_str();
        let mut attributes = vec![
            Attribute::text("http.request.method", method.as_bytes()),
            // The query stays here: it may be somebody's secret.
            Attribute::text("url.full", format!("{scheme}://{address}{path}").as_bytes()),
        ];
        match address {
            UpstreamAddress::Tcp { host, port } => {
                attributes.push(Attribute::text("server.address", host.as_bytes()));
                attributes.push(Attribute::number("server.port", *port));
            }
            UpstreamAddress::Unix(path) => {
                attributes.push(Attribute::text("server.address", path.to_string_lossy().as_bytes()));
            }
        }
        if *resends > 0 {
            attributes.push(Attribute::number("http.request.resend_count", *resends));
        }
        let (began, name) = (Instant::now(), method.to_owned());
        Some(Box::new(Self { step, began, name, attributes, end: End::Left }))
    }

    /// The value of `traceparent` for the upstream.
    pub fn field(&self) -> Option<HeaderValue> {
        self.step.field()
    }

    pub fn responded(&mut self, status: StatusCode) {
        self.end = End::Responded(status);
    }

    pub fn failed(&mut self, word: &'static str, why: String) {
        self.end = End::Failed { word, why };
    }
}

impl Drop for UpstreamSpan {
    fn drop(&mut self) {
        let (name, mut attributes) = (std::mem::take(&mut self.name), std::mem::take(&mut self.attributes));
        let mut error = |word: &str| attributes.push(Attribute::text("error.type", word.as_bytes()));
        let failure = match &mut self.end {
            End::Left => {
                error("client_gone");
                Some("the client has left".to_owned())
            }
            End::Failed { word, why } => {
                error(word);
                Some(std::mem::take(why))
            }
            End::Responded(status) => {
                let is_error = status.is_client_error() || status.is_server_error();
                if is_error {
                    error(status.as_str());
                }
                attributes.push(Attribute::number("http.response.status_code", status.as_u16()));
                is_error.then(|| status.to_string())
            }
        };
        self.step.ended(SpanKind::Client, name, Period::since(self.began), attributes, failure);
    }
}
