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
    /// The cipher by IANA's name, as Go has it: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    pub cipher_suite: &'static str,
    /// What is spoken on the stream (ALPN): `h2`. Empty: nothing was agreed on.
    pub alpn: Box<str>,
    /// The client came back with a ticket.
    pub is_resumed: bool,
    /// `None`: the client has shown no certificate.
    pub client: Option<Box<ClientCertificate>>,
}

/// What a client's certificate says. Whether it is to be trusted has been decided by the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    pub der: Vec<u8>,
    /// As Go writes names: `CN=client,O=Example`.
    pub subject: String,
    pub issuer: String,
    /// Decimal.
    pub serial: String,
    /// The key alone: a point, the bytes of Ed25519, or PKCS #1.
    pub public_key: Vec<u8>,
    pub dns_names: Vec<String>,
    pub emails: Vec<String>,
    pub ips: Vec<String>,
    pub uris: Vec<String>,
}

impl Connection {
    /// The scheme of URIs that are requested over it.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
