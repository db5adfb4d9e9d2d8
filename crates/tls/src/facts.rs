//! What is to be known of a connection.

use crate::policy::{cipher_name, cipher_suite, protocol_name};
use crate::{ClientAuthClass, ClientCertificate};
use rustls::{CommonState, HandshakeKind};

/// Settled with the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// `TLSv1.2` or `TLSv1.3`, as Apache's `SSL_PROTOCOL`.
    pub protocol: &'static str,
    /// By OpenSSL's name, as Apache's `SSL_CIPHER`: `TLS_AES_256_GCM_SHA384`, `ECDHE-ECDSA-AES128-GCM-SHA256`.
    pub cipher: &'static str,
    /// The same by IANA's name.
    pub cipher_suite: &'static str,
    /// The group of the key exchange by IANA's name, `X25519MLKEM768`. `None` of a TLS 1.2 session that was resumed.
    pub key_exchange: Option<String>,
    /// The name that the client asked for (SNI), in lower case.
    pub server_name: Option<String>,
    /// What the client speaks on the stream: `h2`, `http/1.1`. `None`: it did not say.
    pub alpn: Option<Vec<u8>>,
    /// It came back with a ticket.
    pub resumed: bool,
    /// What the site of the connection asks of clients.
    pub client_auth: ClientAuthClass,
    /// DER, the client's own first. Empty: it has shown none.
    pub client_certificates: Vec<Vec<u8>>,
    /// What the client's own says.
    pub client: Option<ClientCertificate>,
}

impl ConnectionFacts {
    /// Of a connection after its handshake, whose client asked for this name.
    pub(crate) fn of(
        connection: &CommonState,
        server_name: Option<&str>,
        client_auth: ClientAuthClass,
    ) -> Self {
        let chain = connection.peer_certificates().unwrap_or_default();
        Self {
            protocol: connection.protocol_version().map_or("", protocol_name),
            cipher: connection.negotiated_cipher_suite().map_or("", |suite| cipher_name(suite.suite())),
            cipher_suite: connection
                .negotiated_cipher_suite()
                .map_or("", |suite| cipher_suite(suite.suite())),
            key_exchange: connection
                .negotiated_key_exchange_group()
                .map(|group| format!("{:?}", group.name())),
            server_name: server_name.map(str::to_ascii_lowercase),
            alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client_auth,
            client: chain.first().map(|certificate| ClientCertificate::of(certificate)),
            client_certificates: chain.iter().map(|certificate| certificate.to_vec()).collect(),
        }
    }
}
