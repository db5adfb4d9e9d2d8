//! What is known of the connection that a request came over.

use std::net::SocketAddr;
use std::sync::Arc;

/// The connection of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// The client; `None` on a Unix socket.
    pub remote: Option<SocketAddr>,
    /// The listener's side; `None` on a Unix socket.
    pub local: Option<SocketAddr>,
    /// `None`: it is not encrypted.
    pub tls: Option<Arc<Tls>>,
}

/// What a TLS handshake came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// As Apache's `SSL_PROTOCOL` has it: `TLSv1.3`.
    pub protocol: &'static str,
    /// As Apache's `SSL_CIPHER` has it: `TLS_AES_128_GCM_SHA256`, `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: &'static str,
    /// The name that the client asked for, in lower case.
    pub server_name: Option<Box<str>>,
}

impl Connection {
    /// The scheme of URIs that are requested over it.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
