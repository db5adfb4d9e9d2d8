//! A request as an upstream gets it.

use crate::connect::Version;
use crate::fields;
use crate::forward;
use crate::forwarded;
use crate::transports::Transport;
use crate::upload::Upload;
use crate::websocket::Key;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use regent_config::{ForwardProxy, UpstreamAddress};
use regent_handlers::{Exchange, ProxyRules};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What an upstream is asked for.
pub(crate) struct Asked {
    pub method: Method,
    pub uri: Uri,
    /// What the connection is to change to.
    pub upgrade: Option<Upgrade>,
}

/// A change of the protocol that a client wants.
pub(crate) struct Upgrade {
    pub protocol: HeaderValue,
    /// Where the client has none.
    pub key: Option<Key>,
}

/// Where a request goes, and how.
pub(crate) struct Way<'a> {
    pub transport: &'a Transport,
    pub address: &'a UpstreamAddress,
    pub asked: &'a Asked,
    /// What the upstream is told of the trace; `None`: what the client has sent, or other handlers have set.
    pub traceparent: Option<&'a HeaderValue>,
}

/// What the client wants to change to, if that can be passed on.
///
/// `h2c` cannot: what comes after it are requests that no route has seen. Nor is it of use (RFC 9113 §3.1).
pub(crate) fn wanted_upgrade(exchange: &Exchange, transport: &Transport) -> Option<Upgrade> {
    let protocol = fields::upgrade(&exchange.headers)?;
    let names_h2c = fields::has_token(&exchange.headers, &header::UPGRADE, "h2c");
    let is_one = exchange.headers.get_all(header::UPGRADE).iter().nth(1).is_none();
    let is_asked = exchange.version == http::Version::HTTP_11 || exchange.is_websocket_stream;
    let is_possible = is_asked && is_one && !names_h2c && transport.can_upgrade();
    is_possible.then(|| Upgrade { protocol, key: exchange.is_websocket_stream.then(Key::new) })
}

impl Way<'_> {
    pub fn request(
        &self,
        exchange: &Exchange,
        rules: &dyn ProxyRules,
        body: Upload,
        version: Version,
    ) -> Request<Upload> {
        let mut request = Request::new(body);
        *request.method_mut() = self.asked.method.clone();
        let head = self.head(exchange, rules);
        request.body_mut().go_behind(&head);
        *request.headers_mut() = head;
        let target = target(&self.asked.uri, &self.asked.method);
        match version {
            Version::Http1 => *request.uri_mut() = in_form_for(self.relay(), self.address, target),
            Version::Http2 => {
                *request.version_mut() = http::Version::HTTP_2;
                *request.uri_mut() = self.absolute(target, request.headers_mut());
            }
        }
        request
    }

    /// The header alone.
    pub fn head(&self, exchange: &Exchange, rules: &dyn ProxyRules) -> HeaderMap {
        let mut head = exchange.headers.clone();
        let takes_trailers = fields::has_token(&head, &header::TE, "trailers");
        let trailers = head.get(header::TRAILER).cloned();
        fields::remove_hop_by_hop(&mut head);
        forwarded::set(&mut head, exchange, &self.transport.config.trusted_proxies);
        fields::add_via(&mut head, exchange.version);
        set_host(&mut head, exchange, self.transport, self.address);
        self.traceparent.into_iter().for_each(|field| drop(head.insert(TRACEPARENT, field.clone())));
        rules.change_request(exchange, &mut head);
        // What frames a message, or changes the protocol, is nobody's to say but ours: hyper frames the body by its own
        // length. An expectation (RFC 9110 §10.1.1) is met here.
        fields::remove_hop_by_hop(&mut head);
        [header::CONTENT_LENGTH, header::EXPECT].iter().for_each(|name| drop(head.remove(name)));
        keep_one_host(&mut head);
        if takes_trailers {
            head.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        head.extend(trailers.map(|names| (header::TRAILER, names)));
        head.extend(self.relay().and_then(forward::authorization));
        if let Some(upgrade) = &self.asked.upgrade {
            head.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            head.insert(header::UPGRADE, upgrade.protocol.clone());
            head.extend(upgrade.key.as_ref().map(Key::field));
        }
        head
    }

    /// The proxy that hands the request itself on.
    fn relay(&self) -> Option<&ForwardProxy> {
        relay(self.transport, self.address)
    }

    /// As HTTP/2 has it: scheme and authority are no fields (RFC 9113 §8.3.1).
    fn absolute(&self, target: PathAndQuery, head: &mut HeaderMap) -> Uri {
        let is_secure = self.transport.config.transport.tls_to(self.address).is_some();
        let scheme = if is_secure { "https" } else { "http" };
        let host = head.remove(header::HOST);
        let host = host.as_ref().and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
        let uri = Uri::builder().scheme(scheme).authority(host.unwrap_or("localhost"));
        uri.path_and_query(target.clone()).build().unwrap_or_else(|_| target.into())
    }
}

/// A proxy that hands requests to this upstream on: without TLS.
pub(crate) fn relay<'a>(transport: &'a Transport, address: &UpstreamAddress) -> Option<&'a ForwardProxy> {
    let config = &transport.config.transport;
    config.proxy_to(address).filter(|_| config.tls_to(address).is_none())
}

/// For a proxy in absolute form, with the address of the upstream (RFC 9112 §3.2.2).
pub(crate) fn in_form_for(
    relay: Option<&ForwardProxy>,
    address: &UpstreamAddress,
    target: PathAndQuery,
) -> Uri {
    if relay.is_none() {
        return target.into();
    }
    // What is asked of all of a server has an absolute form without a path (RFC 9112 §3.2.4).
    let path = if target == "*" { "" } else { target.as_str() };
    format!("http://{address}{path}").parse().unwrap_or_else(|_| target.into())
}

/// That of the client, but for an upstream with TLS: a server with certificates knows itself by its own name (Caddy since
/// 2.11). A proxy replaces it by that of the target (RFC 9112 §3.2.2).
fn set_host(head: &mut HeaderMap, exchange: &Exchange, transport: &Transport, address: &UpstreamAddress) {
    let has_own_name =
        transport.config.transport.tls_to(address).is_some() || relay(transport, address).is_some();
    let host = match (has_own_name, address) {
        (true, UpstreamAddress::Tcp { .. }) => HeaderValue::try_from(address.to_string()).ok(),
        _ => HeaderValue::from_bytes(exchange.host_port()).ok(),
    };
    const HOST: HeaderName = header::HOST;
    head.insert(HOST, host.unwrap_or_else(|| HeaderValue::from_static("")));
}

/// RFC 9112 §3.2: two of them are two sites to two servers.
fn keep_one_host(head: &mut HeaderMap) {
    let last = head.get_all(header::HOST).iter().next_back().cloned();
    head.insert(header::HOST, last.unwrap_or_else(|| HeaderValue::from_static("")));
}

/// In origin form.
fn target(uri: &Uri, method: &Method) -> PathAndQuery {
    match uri.path_and_query() {
        Some(target) if target.as_str().starts_with('/') => target.clone(),
        _ if *method == Method::OPTIONS => PathAndQuery::from_static("*"),
        _ => PathAndQuery::from_static("/"),
    }
}
