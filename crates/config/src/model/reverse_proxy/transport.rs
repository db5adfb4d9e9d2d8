//! How upstreams are talked to.

use super::{DnsServers, ForwardProxy, UpstreamAddress};
use crate::model::{Curve, Template};
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The same of all upstreams together. 0: no limit beside that of each.
    pub keepalive_idle_conns: u16,
    /// How long one address of a name is tried before the next is, too. `None`: until it has failed.
    pub head_start: Option<Duration>,
    /// Where connections come from. `None`: as the system has it.
    pub local_address: Option<IpAddr>,
    /// How upstreams are told whose connection it is, before anything else. `None`: not at all.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// What connections go through, but for those to `:PORT` and to socket files. `None`: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_proxy: Option<ForwardProxy>,
    /// Connections by HTTP/1.1 to an upstream, of all I/O threads. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_conns_per_host: Option<u16>,
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
    /// With TLS only. HTTP/1.1 where the server has no other, but no connection leaves HTTP.
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
    /// Ports of upstreams that are spoken to without TLS.
    pub except_ports: Vec<u16>,
    /// Key exchanges, in order of preference. Empty: those of the TLS library.
    pub curves: Vec<Curve>,
}

/// Of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ProxyProtocolVersion {
    V1,
    V2,
}

impl ProxyTransport {
    /// How this one is spoken to securely; `None`: without TLS.
    pub fn tls_to(&self, address: &UpstreamAddress) -> Option<&UpstreamTls> {
        let is_excepted = |tls: &&UpstreamTls| match address {
            UpstreamAddress::Tcp { port, .. } => tls.except_ports.contains(port),
            UpstreamAddress::Unix(_) => false,
        };
        self.tls.as_ref().filter(|tls| !is_excepted(tls))
    }

    /// What stands between this server and that upstream, unless it is on this machine.
    pub fn proxy_to(&self, address: &UpstreamAddress) -> Option<&ForwardProxy> {
        match address {
            UpstreamAddress::Tcp { host, .. } if !host.is_empty() => self.forward_proxy.as_ref(),
            UpstreamAddress::Tcp { .. } | UpstreamAddress::Unix(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum UpstreamVerification {
    SystemRoots,
    /// PEM files of roots.
    Roots(Vec<PathBuf>),
    None,
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
            keepalive_idle_conns: 0,
            // RFC 8305 §5.
            head_start: Some(Duration::from_millis(300)),
            local_address: None,
            proxy_protocol: None,
            forward_proxy: None,
            max_conns_per_host: None,
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
            except_ports: Vec::new(),
            curves: Vec::new(),
        }
    }
}
