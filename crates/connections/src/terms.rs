//! What a connection is bound to.

use regent_config::{ClientAuth, HttpProtocol, Keepalive, ProxyProtocol, Server, ServerTls, Site, Timeouts};

/// All of a configuration that a connection is bound to from its beginning: once that changes, it ends after its running
/// requests.
#[derive(Debug, PartialEq)]
pub struct Terms {
    pub protocols: Vec<HttpProtocol>,
    /// `None`: no probes.
    pub keepalive: Option<Keepalive>,
    timeouts: Timeouts,
    max_header_size: usize,
    proxy_protocol: Option<ProxyProtocol>,
    tls: Option<TlsTerms>,
}

/// What a client was told in its handshake, and what was asked of it.
#[derive(Debug, PartialEq)]
struct TlsTerms {
    server: ServerTls,
    /// By the names of the sites that ask for certificates.
    client_auth: Vec<(Vec<String>, ClientAuth)>,
}

impl Terms {
    pub fn of(server: &Server) -> Self {
        let client_auth = |site: &Site| {
            let auth = site.tls.as_ref()?.client_auth.clone()?;
            Some((site.hosts.clone(), auth))
        };
        Self {
            protocols: server.options.protocols.clone(),
            keepalive: server.options.keepalive,
            timeouts: server.options.timeouts.clone(),
            max_header_size: server.options.limits.max_header_size,
            proxy_protocol: server.options.proxy_protocol.clone(),
            tls: server.tls.clone().map(|tls| TlsTerms {
                server: tls,
                client_auth: server.sites.iter().filter_map(client_auth).collect(),
            }),
        }
    }
}
