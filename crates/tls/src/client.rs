//! The other end: TLS to a server that requests are handed to.

mod unverified;

use crate::certificate::{VERSION_1, parse_chain, parse_key};
use crate::options::KeyPairFiles;
use crate::{Curve, Error, crypto, roots};
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use unverified::Unverified;

/// How servers are talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    pub verification: Verification,
    /// Shown to servers that ask for one.
    pub certificate: Option<KeyPairFiles>,
    pub alpn: Alpn,
    /// Key exchanges, in order of preference. Empty: rustls' own.
    pub curves: Vec<Curve>,
}

/// What a server's certificate is verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    SystemRoots,
    /// PEM files of roots.
    Roots(Vec<PathBuf>),
    /// Whoever is in between can read and change everything.
    None,
}

/// The versions of HTTP that are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    Http1,
    /// HTTP/2 if the server has it.
    Both,
}

/// Makes connections to servers. Clones come back with each other's tickets.
#[derive(Clone)]
pub struct Client(TlsConnector);

/// A connection to a server. Shutting it down says `close_notify`; reading ends with [`io::ErrorKind::UnexpectedEof`] if the
/// server ended it without that.
pub struct ClientStream<S>(TlsStream<S>);

impl Client {
    /// Blocks: it reads roots and certificates.
    pub fn new(options: &ClientOptions) -> Result<Self, Error> {
        let provider = crypto::provider_with(&options.curves);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider has ciphers for TLS 1.2 and 1.3");
        let builder = match &options.verification {
            Verification::SystemRoots => builder.with_root_certificates(roots::system()?),
            Verification::Roots(files) => builder.with_root_certificates(roots::of_files(files)?),
            Verification::None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified::new(crypto::provider()))),
        };
        let mut config = match &options.certificate {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = parse_chain(&pair.certificate, &read(&pair.certificate)?)?;
                let key = parse_key(&pair.key, &read(&pair.key)?)?;
                let bad = |error: rustls::Error| Error::BadKey {
                    path: pair.key.clone(),
                    reason: error.to_string(),
                };
                builder.with_client_auth_cert(chain, key).map_err(bad)?
            }
        };
        config.alpn_protocols = options.alpn.names();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// `name`: what the server's certificate has to be for, a host name or an IP address.
    ///
    /// # Errors
    /// When the name is neither, when the handshake fails, or when the certificate does not fit.
    pub async fn connect<S>(&self, name: &str, stream: S) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is no host name"));
        let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
        self.0.connect(name, stream).await.map(ClientStream).map_err(explained)
    }
}

/// In words that say what to do, where the library has none.
fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
            if other.to_string().contains("UnsupportedCertVersion") =>
        {
            io::Error::other(format!("the server's certificate cannot be verified: {VERSION_1}"))
        }
        _ => error,
    }
}

impl Alpn {
    fn names(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Both => &[b"h2", b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

impl<S> ClientStream<S> {
    /// Whether the server chose HTTP/2.
    pub fn speaks_h2(&self) -> bool {
        self.0.get_ref().1.alpn_protocol() == Some(b"h2")
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::read(path, error))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
