//! `reverse_proxy`: requests that are handed to other servers.

mod dynamic;

pub use dynamic::*;

use super::{HeaderOp, MatcherSet, ResponseMatcher, Rewrite, Route, Template, as_text};
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Index into [`Config::proxies`](super::Config::proxies).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ProxyId(pub u16);

/// One `reverse_proxy` directive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReverseProxy {
    /// At least one, unless there are `dynamic` ones: then they are for when DNS knows none.
    pub upstreams: Vec<Upstream>,
    /// `dynamic`: where upstreams are looked up, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dynamic: Vec<DynamicUpstreams>,
    pub transport: ProxyTransport,
    /// Whose `X-Forwarded-*` fields are believed, besides those of the whole server.
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// `header_up`: changes of the request's header, in the order of the file.
    pub header_up: Vec<HeaderOp>,
    /// `header_down`: changes of the response's.
    pub header_down: Vec<HeaderOp>,
    /// `method` and `rewrite`, for the upstream alone.
    pub rewrites: Vec<Rewrite>,
    pub balancing: Balancing,
    pub passive_health: PassiveHealth,
    /// `None`: upstreams are not asked how they are.
    pub active_health: Option<ActiveHealth>,
    /// How long a connection that has left HTTP may last. 0: no limit.
    pub stream_timeout: Duration,
    /// Bytes of such a connection that may be on their way, in each direction.
    pub stream_buffer_size: u32,
    /// How long such a connection goes on when the directive is gone or has changed. `None`: to its end.
    pub stream_close_delay: Option<Duration>,
    /// Bytes of a request's body that wait here for the rest of them before an upstream is asked. 0: none.
    pub request_buffers: u64,
    /// Bytes of a response that wait here for the client, so that the upstream need not. 0: none.
    pub response_buffers: u64,
    /// What becomes of responses: the first that fits. A response that none fits is the client's.
    pub responses: Vec<ResponseRule>,
}

/// `replace_status` and `handle_response`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseRule {
    /// `None`: every response.
    pub matcher: Option<ResponseMatcher>,
    pub action: ResponseAction,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ResponseAction {
    ReplaceStatus(Template),
    /// The request goes through these and then, if none answers, through what follows the directive.
    Routes(Vec<Route>),
}

/// `copy_response_headers`: which fields of an upstream's response the client gets. Both empty: all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CopiedFields {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

/// Which upstream a request goes to, and how often that is tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Balancing {
    pub policy: LbPolicy,
    /// Tries beyond the first. `None`: as many as `try_duration` allows.
    pub retries: Option<u32>,
    /// How long to try. 0: no time limit, but that of `retries`.
    pub try_duration: Duration,
    /// Between two tries.
    pub try_interval: Duration,
    /// Which requests may be sent again that an upstream may have seen: all of the conditions of one. Empty: those whose
    /// method does no harm twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry_match: Vec<MatcherSet>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum LbPolicy {
    Random,
    /// The one with the least requests of so many, at least 2.
    RandomChoose(u16),
    RoundRobin,
    /// A weight for each upstream, not all of them 0.
    WeightedRoundRobin(Vec<u32>),
    LeastConn,
    First,
    /// By a value of the request: equal values go to the same upstream.
    Hash(HashKey),
    /// By a value that a request may not have.
    HashOr(OptionalKey, Box<LbPolicy>),
    Cookie(CookiePolicy),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HashKey {
    /// The address that has connected.
    RemoteIp,
    /// That of the client, before proxies that are trusted.
    ClientIp,
    /// As the client has sent it.
    Uri,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum OptionalKey {
    Header(String),
    Query(String),
}

/// The upstream of a client's first request, for all others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CookiePolicy {
    pub name: String,
    /// Of the keyed digest that names the upstream.
    pub secret: String,
    /// `None`: until the browser is closed.
    pub max_age: Option<Duration>,
    pub fallback: Box<LbPolicy>,
}

/// What failed requests say of an upstream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassiveHealth {
    /// How long a failure is remembered. 0: failures are not counted.
    pub fail_duration: Duration,
    /// Failures within that time from which on the upstream gets nothing; at least 1.
    pub max_fails: u32,
    /// Statuses that are failures, as ranges with both ends in them.
    pub unhealthy_status: Vec<(u16, u16)>,
    /// A response that took so long is a failure. 0: none does.
    pub unhealthy_latency: Duration,
    /// Requests at once, of all I/O threads, from which on the upstream gets no more. `None`: no bound.
    pub unhealthy_request_count: Option<u32>,
}

/// A server that requests are handed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum UpstreamAddress {
    Tcp {
        /// A name or an address, without brackets; empty: this machine.
        host: String,
        port: u16,
    },
    Unix(#[serde(serialize_with = "as_text")] PathBuf),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Upstream {
    Fixed(UpstreamAddress),
    /// `host:port`, a host alone, or `unix/PATH`, once there is a request.
    Computed(Template),
}

/// How upstreams are talked to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProxyTransport {
    /// `None`: HTTP, as all below is about but the first three limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastcgi: Option<FastCgi>,
    /// `None`: without TLS.
    pub tls: Option<UpstreamTls>,
    pub versions: UpstreamVersions,
    /// Who knows the addresses of upstreams' names. Not those of `dynamic`, which has its own.
    #[serde(skip_serializing_if = "DnsServers::is_default")]
    pub dns: DnsServers,
    /// From the look-up of the name to a connection. 0: no limit, as with all of these.
    pub dial_timeout: Duration,
    /// From the end of the request to the end of the response's head.
    pub response_header_timeout: Duration,
    /// Longest silence of an upstream in the middle of something.
    pub read_timeout: Duration,
    /// Longest time in which an upstream takes nothing.
    pub write_timeout: Duration,
    /// Bytes of a response's head.
    pub max_response_header: u32,
    /// How long a connection that is not in use is kept. `None`: each is closed after its request.
    pub keepalive: Option<Duration>,
    /// Between probes of a connection's other end. 0: none.
    pub keepalive_interval: Duration,
    /// Connections that are kept of an upstream while they are not in use, by each I/O thread.
    pub keepalive_idle_conns_per_host: u16,
}

/// `transport fastcgi`: what a FastCGI server, such as php-fpm, is told of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FastCgi {
    /// The document root, as the server sees it. `None`: the site's.
    pub root: Option<Template>,
    /// Where the script's path ends and PATH_INFO begins: behind a segment with one of these endings.
    pub split: Vec<String>,
    /// Variables of the request, before those that it has in any case.
    pub env: Vec<(String, Template)>,
    pub resolve_root_symlink: bool,
    /// Whether what scripts write to their error stream goes to the log.
    pub capture_stderr: bool,
}

/// What an upstream is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum UpstreamVersions {
    Http1,
    /// With TLS only.
    Http2,
    /// HTTP/2 if it is offered in TLS, otherwise HTTP/1.1.
    Either,
    /// HTTP/2 without TLS.
    H2c,
}

/// TLS to upstreams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamTls {
    pub verification: UpstreamVerification,
    /// What certificates have to be for. `None`: the host of the upstream.
    pub server_name: Option<String>,
    /// A certificate and its key to be shown to upstreams.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// 0: no limit.
    pub handshake_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum UpstreamVerification {
    SystemRoots,
    /// PEM files of roots.
    Roots(Vec<PathBuf>),
    None,
}

impl fmt::Display for UpstreamAddress {
    /// As Caddy shows it in metrics and its admin API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix/{}", path.display()),
        }
    }
}

impl UpstreamAddress {
    /// Reads `host:port`, `:port`, a host alone (port 80) or `unix/PATH`. `None`: it is none of them.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix/") {
            return (!path.is_empty()).then(|| Self::Unix(path.into()));
        }
        let (host, port) = split_port(text)?;
        let port = port.map_or(Some(80), |port| port.parse().ok().filter(|port| *port > 0))?;
        is_host(host).then(|| Self::Tcp { host: host.to_owned(), port })
    }
}

/// The host without brackets, and the port if there is one.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host, Some(port))),
        None => (!text.is_empty()).then_some((text, None)),
    }
}

/// A name, an IPv4 address, the inside of brackets, or nothing. What a request says ends up here, too.
fn is_host(host: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    host.len() <= 253 && (host.parse::<std::net::Ipv6Addr>().is_ok() || host.chars().all(is_part))
}

impl Default for ProxyTransport {
    /// Times are Caddy's (reverseproxy/httptransport.go).
    fn default() -> Self {
        Self {
            fastcgi: None,
            tls: None,
            versions: UpstreamVersions::Either,
            dns: DnsServers::default(),
            dial_timeout: Duration::from_secs(3),
            response_header_timeout: Duration::ZERO,
            read_timeout: Duration::ZERO,
            write_timeout: Duration::ZERO,
            max_response_header: 128 * 1024,
            keepalive: Some(Duration::from_secs(120)),
            keepalive_interval: Duration::from_secs(30),
            keepalive_idle_conns_per_host: 32,
        }
    }
}

/// How upstreams are asked how they are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActiveHealth {
    /// Path and query.
    pub uri: String,
    /// `None`: that of the upstream.
    pub port: Option<u16>,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub interval: Duration,
    /// For the whole response.
    pub timeout: Duration,
    /// Both ends of a range of statuses.
    pub status: (u16, u16),
    /// A regular expression that the body has to match.
    pub body: Option<String>,
    /// Good responses in a row that make an upstream healthy again; at least 1.
    pub passes: u32,
    /// Bad ones that make it unhealthy; at least 1.
    pub fails: u32,
}

impl Default for ActiveHealth {
    /// As in Caddy (reverseproxy/healthchecks.go).
    fn default() -> Self {
        Self {
            uri: "/".into(),
            port: None,
            method: "GET".into(),
            headers: Vec::new(),
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
            status: (200, 299),
            body: None,
            passes: 1,
            fails: 1,
        }
    }
}

impl Default for Balancing {
    fn default() -> Self {
        Self {
            policy: LbPolicy::Random,
            retries: Some(0),
            try_duration: Duration::ZERO,
            try_interval: Duration::ZERO,
            retry_match: Vec::new(),
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        Self {
            fail_duration: Duration::ZERO,
            max_fails: 1,
            unhealthy_status: Vec::new(),
            unhealthy_latency: Duration::ZERO,
            unhealthy_request_count: None,
        }
    }
}

impl Default for UpstreamTls {
    fn default() -> Self {
        Self {
            verification: UpstreamVerification::SystemRoots,
            server_name: None,
            client_certificate: None,
            handshake_timeout: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_an_address_is_shown_as_one(text in ".{0,40}|[a-z0-9.:\\[\\]-]{0,20}|unix/.{0,10}") {
            if let Some(address) = UpstreamAddress::parse(&text) {
                prop_assert_eq!(UpstreamAddress::parse(&address.to_string()), Some(address));
            }
        }
    }

    #[test]
    fn addresses_are_read_and_written() {
        for (text, shown) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("localhost", "localhost:80"),
            (":8080", ":8080"),
            ("[::1]:81", "[::1]:81"),
            ("[::1]", "[::1]:80"),
            ("my_app.internal:1", "my_app.internal:1"),
            ("unix//run/app.sock", "unix//run/app.sock"),
        ] {
            let address = UpstreamAddress::parse(text);
            assert_eq!(address.map(|address| address.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in
            ["", "a:b", "a:0", "a:65536", "a:1:2", "::1", "[::1]x", "[a]:1", "a b:1", "a/b:1", "unix/", "é:1"]
        {
            assert_eq!(UpstreamAddress::parse(text), None, "{text}");
        }
    }
}
