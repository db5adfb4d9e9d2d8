//! `reverse_proxy`: requests that are handed to other servers.

mod dynamic;
mod forward_proxy;
mod health;
mod transport;

pub use dynamic::*;
pub use forward_proxy::*;
pub use health::*;
pub use transport::*;

use super::{HeaderOp, MatcherSet, ResponseMatcher, Rewrite, Route, Template, as_text};
use crate::host_names::ascii_host;
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
    /// Reads `host:port`, `:port`, a host alone (port 80), each also behind `tcp/`, or `unix/PATH`. `None`: it is none of them.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix/") {
            return (!path.is_empty()).then(|| Self::Unix(path.into()));
        }
        let (host, port) = split_port(text.strip_prefix("tcp/").unwrap_or(text))?;
        let port = port.map_or(Some(80), |port| port.parse().ok().filter(|port| *port > 0))?;
        let host = ascii_host(host)?;
        is_host(&host).then_some(Self::Tcp { host, port })
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
            ("tcp/10.0.0.1:81", "10.0.0.1:81"),
            ("tcp/[::1]", "[::1]:80"),
        ] {
            let address = UpstreamAddress::parse(text);
            assert_eq!(address.map(|address| address.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in [
            "",
            "a:b",
            "a:0",
            "a:65536",
            "a:1:2",
            "::1",
            "[::1]x",
            "[a]:1",
            "a b:1",
            "a/b:1",
            "unix/",
            "é !:1",
            "tcp/",
            "tcp/tcp/a:1",
            "udp/a:1",
        ] {
            assert_eq!(UpstreamAddress::parse(text), None, "{text}");
        }
    }
}
