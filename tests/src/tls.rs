//! Clients of HTTPS.

use crate::{Conn, DEADLINE};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, StreamOwned,
};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// A stream over TLS. It ends with an error if the server does not say that it ends.
pub type Secured = StreamOwned<ClientConnection, TcpStream>;

/// A connection over TLS.
pub type TlsConn = Conn<Secured>;

/// Clones come back with each other's tickets.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// One that trusts the certificates in this file, and no others.
    pub fn trusting(roots: &Path) -> Self {
        Self(Arc::new(builder(roots).with_no_client_auth()))
    }

    /// The same with a certificate of its own.
    pub fn with_certificate(roots: &Path, certificate: &Path, key: &Path) -> Self {
        let chain = vec![CertificateDer::from_pem_file(certificate).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        Self(Arc::new(builder(roots).with_client_auth_cert(chain, key).expect("a pair")))
    }

    /// One that takes every certificate.
    pub fn credulous() -> Self {
        let verifier = Arc::new(Credulous(provider()));
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.expect("versions of the provider").dangerous();
        Self(Arc::new(builder.with_custom_certificate_verifier(verifier).with_no_client_auth()))
    }

    /// For a client of QUIC with the same trust and certificate.
    pub(crate) fn config(&self) -> ClientConfig {
        (*self.0).clone()
    }

    /// Connects to the site with this name or address.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn try_connect(&self, address: SocketAddr, name: &str) -> io::Result<TlsConn> {
        self.try_connect_behind(b"", address, name)
    }

    /// The same, and sends these bytes before the handshake.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn try_connect_behind(&self, first: &[u8], address: SocketAddr, name: &str) -> io::Result<TlsConn> {
        self.shake_hands(self.greet(first, TcpStream::connect(address)?, name)?)
    }

    /// The same over a connection that has been made.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn try_connect_over(&self, socket: TcpStream, name: &str) -> io::Result<TlsConn> {
        self.shake_hands(self.greet(b"", socket, name)?)
    }

    fn shake_hands(&self, mut conn: Secured) -> io::Result<TlsConn> {
        while conn.conn.is_handshaking() {
            conn.conn.complete_io(&mut conn.sock)?;
        }
        Ok(Conn::over(conn))
    }

    /// One whose handshake the client ends with what it sends first; the server has not seen the end of it before.
    #[track_caller]
    pub fn half_connect(&self, address: SocketAddr, name: &str) -> TlsConn {
        let mut conn = TcpStream::connect(address)
            .and_then(|socket| self.greet(b"", socket, name))
            .expect("the server listens");
        conn.conn.write_tls(&mut conn.sock).expect("the server listens");
        while conn.conn.is_handshaking() {
            assert!(conn.conn.read_tls(&mut conn.sock).expect("the server responds") > 0);
            conn.conn.process_new_packets().expect("the server shakes hands");
        }
        Conn::over(conn)
    }

    fn greet(&self, first: &[u8], mut socket: TcpStream, name: &str) -> io::Result<Secured> {
        socket.write_all(first)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(DEADLINE))?;
        socket.set_write_timeout(Some(DEADLINE))?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connection = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, socket))
    }

    #[track_caller]
    pub fn connect(&self, address: SocketAddr, name: &str) -> TlsConn {
        self.try_connect(address, name)
            .unwrap_or_else(|error| panic!("connecting to {name} on {address}: {error}"))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn builder(roots: &Path) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut trusted = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(roots)
        .unwrap_or_else(|error| panic!("reading {}: {error}", roots.display()));
    trusted.add(root).expect("a root certificate");
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    builder.expect("versions of the provider").with_root_certificates(trusted)
}

#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
