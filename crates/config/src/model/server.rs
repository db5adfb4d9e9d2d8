//! What `servers { … }` says of a listening address.

use super::HttpProtocol;
use serde::Serialize;
use std::net::IpAddr;
use std::time::Duration;

/// An address, and how many of its leading bits are those of the whole range.
pub type IpRange = (IpAddr, u8);

/// What `servers { … }` says of a listening address.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerOptions {
    /// In metrics. `None`: `srv0`, `srv1`, …, in the order of the addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is spoken with clients. Default: HTTP/1 and, over TLS, HTTP/2 and HTTP/3.
    pub protocols: Vec<HttpProtocol>,
    pub udp_port: UdpPort,
    pub timeouts: Timeouts,
    pub limits: Limits,
    /// `None`: the address of a client is that of its connection.
    pub trusted_proxies: Option<TrustedProxies>,
    /// `None`: connections begin with TLS or HTTP.
    pub proxy_protocol: Option<ProxyProtocol>,
    pub log_credentials: LogCredentials,
    /// Fields of requests that are taken though their names would be another's for PHP.
    #[serde(skip_serializing_if = "ExpectedFields::is_empty")]
    pub expected_fields: ExpectedFields,
    /// What clients get that speak HTTP where TLS is expected.
    #[serde(skip_serializing_if = "PlainHttp::is_refused")]
    pub plain_http: PlainHttp,
    /// Probes of silent connections. `None`: there are none.
    #[serde(skip_serializing_if = "is_usual")]
    pub keepalive: Option<Keepalive>,
}

fn is_usual(keepalive: &Option<Keepalive>) -> bool {
    *keepalive == Some(Keepalive::default())
}

/// Names of fields, in small letters, with an underscore or a dot; a `*` at the end stands for anything
/// (`expected_underscore_headers`, `expected_dot_headers`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExpectedFields {
    pub with_underscore: Vec<String>,
    pub with_dot: Vec<String>,
}

impl ExpectedFields {
    fn is_empty(&self) -> bool {
        self.with_underscore.is_empty() && self.with_dot.is_empty()
    }
}

/// Probes of a silent connection's other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Keepalive {
    /// Silence before the first one; at least a second. Default: 15 s.
    pub idle: Duration,
    /// Between two; at least a second. Default: 15 s.
    pub interval: Duration,
    /// So many that are not answered end the connection; from 1 to 127. Default: 9.
    pub count: u32,
}

/// What clients get that speak HTTP where TLS is expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum PlainHttp {
    /// A response that says what is wrong.
    #[default]
    Refused,
    /// The same place with `https://` (`listener_wrappers { http_redirect }`).
    Redirected,
}

impl PlainHttp {
    fn is_refused(&self) -> bool {
        *self == Self::Refused
    }
}

/// What becomes of an address that has HTTP/3 among its protocols, and whose UDP port cannot be had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum UdpPort {
    /// It goes without HTTP/3, with a warning.
    #[default]
    Optional,
    /// It is an error: HTTP/3 was asked for.
    Required,
}

/// What access logs have of `Cookie`, `Set-Cookie`, `Authorization` and `Proxy-Authorization`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LogCredentials {
    /// That they are there.
    #[default]
    Redacted,
    /// Their values.
    Shown,
}

/// Time-outs of a client's connection; 0: none, as in Caddy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeouts {
    /// From the first byte of a request's head to its end. Default: 10 s.
    pub read_header: Duration,
    /// Longest silence within a request body. Default: 60 s.
    pub read_body: Duration,
    /// Longest time that a client may take nothing of an answer that waits for it. Default: 60 s.
    pub write: Duration,
    /// Longest silence between two requests of a connection. Default: 5 min.
    pub idle: Duration,
    /// How long a connection that a stop, a reload or an upgrade ends is waited for, if its client may be about to send a
    /// request: one that has just been made, has sent a part of a head, or is kept while another process takes over. Default: 2 s.
    pub last_request: Duration,
}

/// Limits on what a client may send.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// Bytes of a request's head; above it: 431. Default: 64 KiB.
    pub max_header_size: usize,
    /// Bytes of a request body; above it: 413. `None`: no limit but PHP's own.
    pub max_body_size: Option<u64>,
    /// Bytes a second that a request body brings on average, after its first 30 s; below it: 408. 0: no bound. Default: 240.
    pub min_body_rate: u64,
}

/// The proxies that are believed when they say who the client is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustedProxies {
    pub ranges: Vec<IpRange>,
    /// Whoever connects to a Unix socket is such a proxy.
    pub unix: bool,
    pub reading: ClientIpReading,
    /// Request fields with a list of addresses, in lower case; the first that has one counts. Default: x-forwarded-for.
    pub headers: Vec<String>,
}

/// Which address of a list is the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ClientIpReading {
    /// The first one: the proxy replaces what a client sends.
    LeftMost,
    /// The last one that is no trusted proxy's (`trusted_proxies_strict`): proxies append to what a client sends.
    RightMostUntrusted,
}

/// `listener_wrappers { proxy_protocol { … } }`: what comes before TLS and HTTP.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProxyProtocol {
    /// How long a header may take to come; 0: no limit. Default: 5 s.
    pub timeout: Duration,
    /// Whose header is believed, if there is one.
    pub allow: Vec<IpRange>,
    /// Who may send no header.
    pub deny: Vec<IpRange>,
    /// For everybody else.
    pub fallback: ProxyPolicy,
}

/// What a header of the PROXY protocol means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum ProxyPolicy {
    /// Nothing; it is read past.
    #[default]
    Ignore,
    /// Its address is the client's.
    Use,
    /// The end of the connection.
    Reject,
    /// Its address is the client's, and a connection without one ends.
    Require,
    /// It is not looked for.
    Skip,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            name: None,
            protocols: vec![HttpProtocol::H1, HttpProtocol::H2, HttpProtocol::H3],
            udp_port: UdpPort::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            trusted_proxies: None,
            proxy_protocol: None,
            log_credentials: LogCredentials::default(),
            expected_fields: ExpectedFields::default(),
            plain_http: PlainHttp::default(),
            keepalive: Some(Keepalive::default()),
        }
    }
}

impl Default for Keepalive {
    /// As in Caddy.
    fn default() -> Self {
        Self { idle: Duration::from_secs(15), interval: Duration::from_secs(15), count: 9 }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            read_header: Duration::from_secs(10),
            read_body: Duration::from_secs(60),
            write: Duration::from_secs(60),
            idle: Duration::from_secs(300),
            last_request: Duration::from_secs(2),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_header_size: 64 * 1024, max_body_size: None, min_body_rate: 240 }
    }
}

impl Default for ProxyProtocol {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            allow: Vec::new(),
            deny: Vec::new(),
            fallback: ProxyPolicy::default(),
        }
    }
}
