//! A client's handshake, from its first byte to the stream.

use crate::facts::ConnectionFacts;
use crate::handshakes::{HandshakeError, Handshakes};
use crate::quic::{self, QuicServer};
use crate::sites::{Found, SiteTable};
use crate::{PlainHttp, Stream, acme, hello};
use quinn_proto::crypto::rustls::QuicServerConfig;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_rustls::StartHandshake;

/// As much plaintext and ciphertext as may wait for a slow client, each; then a write waits. Two full records, so that
/// one is sealed while another leaves.
const BUFFER_LIMIT: usize = 32 * 1024;

/// The fatal alert `unrecognized_name` as a record in the clear (RFC 8446 §5.1, §6.2): the handshake has not begun.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// How far a handshake has come.
enum Shaken<'a, S> {
    Done(Box<Stream<S>>),
    /// The hello is read, and there is no certificate yet.
    Waits(Box<StartHandshake<S>>, Found<'a>),
}

/// Of one I/O thread and one listening address.
#[derive(Clone)]
pub struct Acceptor {
    sites: Arc<SiteTable>,
    handshakes: Handshakes,
    plain_http: PlainHttp,
    /// For QUIC.
    initial: Arc<QuicServerConfig>,
}

impl Acceptor {
    pub fn new(sites: Arc<SiteTable>, handshakes: Handshakes) -> Self {
        Self { sites, handshakes, plain_http: PlainHttp::default(), initial: quic::initial() }
    }

    /// With this for clients that speak HTTP without TLS.
    #[must_use]
    pub fn with_plain_http(self, plain_http: PlainHttp) -> Self {
        Self { plain_http, ..self }
    }

    pub fn sites(&self) -> &Arc<SiteTable> {
        &self.sites
    }

    /// For the handshake of a QUIC connection, which [`Self::within_limits`] runs.
    pub fn quic(&self, local: Option<IpAddr>) -> Arc<QuicServer> {
        Arc::new(QuicServer::new(Arc::clone(&self.sites), local, Arc::clone(&self.initial)))
    }

    /// Runs a handshake of QUIC as one of those that may be under way.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub async fn within_limits<T>(
        &self,
        handshake: impl Future<Output = Result<T, HandshakeError>>,
    ) -> io::Result<T> {
        Ok(self.handshakes.run(handshake).await?)
    }

    /// `local`: the address that the client connected to, by which a site is found if the client names none.
    ///
    /// # Errors
    /// With a [`HandshakeError`] inside. The client got the alert that fits, if it still listens.
    pub async fn accept<S>(&self, stream: S, local: Option<IpAddr>) -> io::Result<Stream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // In memory of its own, so that the connection's task does not go on holding a place for it.
        match self.handshakes.run(Box::pin(self.handshake(stream, local))).await? {
            Shaken::Done(stream) => Ok(*stream),
            Shaken::Waits(started, found) => Ok(Box::pin(self.complete_later(*started, found)).await?),
        }
    }

    /// An order takes as long as many handshakes, and has bounds of its own.
    async fn complete_later<S>(
        &self,
        started: StartHandshake<S>,
        found: Found<'_>,
    ) -> Result<Stream<S>, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let server_name = started.client_hello().server_name().map(str::to_owned);
        match found.prepare(server_name.as_deref()).await {
            Ok(()) => self.handshakes.run(self.complete(started, &found)).await,
            Err(error) => {
                let refused = async {
                    refuse(started).await;
                    Ok(())
                };
                self.handshakes.run(refused).await?;
                Err(error)
            }
        }
    }

    async fn handshake<S>(
        &self,
        mut stream: S,
        local: Option<IpAddr>,
    ) -> Result<Shaken<'_, S>, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let started = StartHandshake::from_parts(hello::read(&mut stream, self.plain_http).await?, stream);
        let server_name = started.client_hello().server_name().map(str::to_owned);
        if is_challenge(&started) {
            return Err(self.show_challenge(started, server_name.unwrap_or_default()).await);
        }
        let Some(found) = self.sites.find(server_name.as_deref(), local) else {
            refuse(started).await;
            return Err(server_name.map_or(HandshakeError::NoName, HandshakeError::UnknownName));
        };
        if found.entry.is_without_certificate() {
            refuse(started).await;
            return Err(HandshakeError::NoCertificate(server_name.unwrap_or_default()));
        }
        if !found.is_ready(server_name.as_deref()) {
            return Ok(Shaken::Waits(Box::new(started), found));
        }
        self.complete(started, &found).await.map(|stream| Shaken::Done(Box::new(stream)))
    }

    async fn complete<S>(
        &self,
        started: StartHandshake<S>,
        found: &Found<'_>,
    ) -> Result<Stream<S>, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let entry = found.entry;
        let handshake = started.into_stream_with(found.config(), |connection| {
            connection.set_buffer_limit(Some(BUFFER_LIMIT));
        });
        let mut stream = handshake.await.map_err(HandshakeError::of)?;
        if let Err(error) = self.sites.check_resumed(entry, stream.get_ref().1) {
            // For the client the handshake is through; it is to know that this is no attack. It may be gone already.
            let _ = stream.shutdown().await;
            return Err(HandshakeError::Failed(error.to_string()));
        }
        let connection = stream.get_ref().1;
        let facts = ConnectionFacts::of(connection, connection.server_name(), entry.class);
        Ok(Stream::new(stream, facts))
    }

    /// The handshake is all that the CA wants (RFC 8737 §3).
    async fn show_challenge<S>(&self, started: StartHandshake<S>, name: String) -> HandshakeError
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (challenges, asked) = (Arc::clone(&self.sites.challenges), name.to_ascii_lowercase());
        // It may read a file.
        let found = tokio::task::spawn_blocking(move || challenges.tls_response(&asked)).await;
        let Some(config) = found.ok().flatten() else {
            refuse(started).await;
            return HandshakeError::UnknownName(name);
        };
        match started.into_stream(config).await {
            Ok(mut stream) => {
                // The CA has seen the certificate; it may be gone already.
                let _ = stream.shutdown().await;
                HandshakeError::Challenge(name)
            }
            Err(error) => HandshakeError::of(error),
        }
    }
}

/// RFC 8737 §4: such a client offers this protocol and no other.
fn is_challenge<S: AsyncRead + AsyncWrite + Unpin>(started: &StartHandshake<S>) -> bool {
    let hello = started.client_hello();
    hello.alpn().is_some_and(|protocols| protocols.eq([acme::ALPN]))
}

/// A client that does not take the alert will find its connection closed.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut started: StartHandshake<S>) {
    if started.io.write_all(&UNRECOGNIZED_NAME).await.is_ok() {
        let _ = started.io.shutdown().await;
    }
}
