//! The span of a request, by OpenTelemetry's conventions
//! (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span>).

use crate::context::exchange::Exchange;
use crate::context::observed::Traced;
use http::{Method, Response, StatusCode, Version, header};
use regent_traces::{Attribute, Recording};
use std::sync::Arc;

/// What a `tracing` says of the span of a request that has come by it.
pub(crate) trait SpanRules: Send + Sync {
    /// `None`: it leaves that to others.
    fn name(&self, exchange: &Exchange) -> Option<String>;

    /// Adds to those that are known, or replaces them.
    fn add_attributes(&self, exchange: &Exchange, attributes: &mut Vec<Attribute>);
}

/// Ends, and is on its way to whoever wants it, when it is dropped: with the last byte of the response.
pub struct RequestSpan {
    recording: Arc<Recording>,
    name: String,
    attributes: Vec<Attribute>,
    failure: Option<String>,
}

impl RequestSpan {
    /// The response broke off.
    pub fn broke_off(&mut self, why: &str) {
        if self.failure.is_none() {
            self.attributes.push(Attribute::text("error.type", b"response_broke_off"));
            self.failure = Some(why.to_owned());
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        let (name, attributes) = (std::mem::take(&mut self.name), std::mem::take(&mut self.attributes));
        self.recording.request(name, attributes, self.failure.take());
    }
}

pub(super) fn of<B>(exchange: &Exchange, response: &Response<B>) -> Option<Box<RequestSpan>> {
    let Traced { trace, rules } = exchange.observed.trace.as_ref()?;
    let recording = Arc::clone(trace.recording()?);
    let status = response.status();
    let mut attributes = request(exchange, recording.route());
    attributes.push(Attribute::number("http.response.status_code", status.as_u16()));
    if let Some(cache) = exchange.observed.cache {
        attributes.push(Attribute::text("regent.cache", cache.as_bytes()));
    }
    let failure = status.is_server_error().then(|| failure(status));
    if failure.is_some() {
        attributes.push(Attribute::text("error.type", status.as_str().as_bytes()));
    }
    rules.iter().for_each(|rules| rules.add_attributes(exchange, &mut attributes));
    let name = name(exchange, rules, recording.route());
    Some(Box::new(RequestSpan { recording, name, attributes, failure }))
}

fn failure(status: StatusCode) -> String {
    format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

/// What there is of it before any response.
fn request(exchange: &Exchange, route: Option<&str>) -> Vec<Attribute> {
    let original = exchange.original_method();
    let mut attributes = Vec::with_capacity(16);
    match is_known(original) {
        true => attributes.push(Attribute::text("http.request.method", original.as_str().as_bytes())),
        false => {
            attributes.push(Attribute::text("http.request.method", b"_OTHER"));
            attributes.push(Attribute::text("http.request.method_original", original.as_str().as_bytes()));
        }
    }
    let connection = &exchange.connection;
    let is_https =
        exchange.forwarded().map_or(connection.tls.is_some(), |forwarded| forwarded.is_https(connection));
    attributes.push(Attribute::text("url.scheme", if is_https { b"https" } else { b"http" }));
    // The query stays here: it may be somebody's secret.
    attributes.push(Attribute::text("url.path", exchange.original_uri.path().as_bytes()));
    attributes.extend(route.map(|route| Attribute::text("http.route", route.as_bytes())));
    if !exchange.host.is_empty() {
        attributes.push(Attribute::text("server.address", exchange.host.as_bytes()));
    }
    attributes.extend(port(exchange).map(|port| Attribute::number("server.port", port)));
    let client = exchange.client_ip().map(|client| client.to_string());
    attributes.extend(client.map(|client| Attribute::text("client.address", client.as_bytes())));
    if let Some(peer) = connection.remote {
        attributes.push(Attribute::text("network.peer.address", peer.ip().to_string().as_bytes()));
        attributes.push(Attribute::number("network.peer.port", peer.port()));
    }
    attributes.push(Attribute::text("network.protocol.version", version(exchange.version).as_bytes()));
    let agent = exchange.headers.get(header::USER_AGENT);
    attributes.extend(agent.map(|agent| Attribute::text("user_agent.original", agent.as_bytes())));
    attributes
}

/// Methods that the conventions know.
fn is_known(method: &Method) -> bool {
    let known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"];
    known.contains(&method.as_str())
}

/// The one that the client has named, or that of the listener.
fn port(exchange: &Exchange) -> Option<u16> {
    let named = std::str::from_utf8(exchange.host_port()).ok();
    let named = named.and_then(|named| named.rsplit_once(':')).and_then(|(_, port)| port.parse().ok());
    named.or(exchange.connection.local.map(|local| local.port()))
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

/// The last that a directive gives, or that of the conventions.
fn name(exchange: &Exchange, rules: &[Arc<dyn SpanRules>], route: Option<&str>) -> String {
    if let Some(name) = rules.iter().rev().find_map(|rules| rules.name(exchange)) {
        return name;
    }
    let original = exchange.original_method();
    let method = if is_known(original) { original.as_str() } else { "HTTP" };
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}
