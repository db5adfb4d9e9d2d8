//! TLS within QUIC (RFC 9001): the same sites, certificates, tickets and policies as over TCP.

mod hello;
mod session;

use crate::ConnectionFacts;
use crate::crypto;
use crate::sites::SiteTable;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{Keys, ServerConfig, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use session::QuicSession;
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

/// What follows on a stream, by its name in ALPN.
const ALPN: &[u8] = b"h3";

/// What handshakes within QUIC are made with.
pub struct QuicServer {
    /// `None`: nobody is served.
    sites: Option<Arc<SiteTable>>,
    /// The address that the client came to.
    local: Option<IpAddr>,
    /// For what is the same of all servers: the protection of first packets.
    initial: Arc<QuicServerConfig>,
}

/// What a handshake came to, of what the QUIC connection has of it. `None`: it was no handshake of [`QuicServer`].
pub fn quic_facts(data: Option<Box<dyn Any>>) -> Option<ConnectionFacts> {
    data?.downcast().ok().map(|facts| *facts)
}

impl QuicServer {
    pub(crate) fn new(sites: Arc<SiteTable>, local: Option<IpAddr>, initial: Arc<QuicServerConfig>) -> Self {
        Self { sites: Some(sites), local, initial }
    }

    /// For an endpoint, whose connections each get what they are accepted with.
    pub fn of_endpoint() -> Arc<Self> {
        Arc::new(Self { sites: None, local: None, initial: initial() })
    }
}

impl ServerConfig for QuicServer {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.initial.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.initial.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut bytes = Vec::new();
        parameters.write(&mut bytes);
        Box::new(QuicSession::new(self, version, bytes))
    }
}

/// Has no certificate: no handshake is made with it.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

/// Makes keys of first packets, which follow from constants (RFC 9001 §5.2).
pub(crate) fn initial() -> Arc<QuicServerConfig> {
    let config = rustls::ServerConfig::builder_with_provider(crypto::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("invariant: the provider has TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NoCertificate));
    Arc::new(QuicServerConfig::try_from(config).expect("invariant: the provider has TLS_AES_128_GCM_SHA256"))
}
