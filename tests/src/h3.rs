//! Clients of HTTP/3: quinn, and above it the h3 crate, which is not what the server is made of.

use crate::{DEADLINE, TlsClient};
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use http::{HeaderMap, Request, Response, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connecting, ConnectionError, Endpoint};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The stream of a request.
pub type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Runs a client to its end, which has to come before [`DEADLINE`]. What it does in the background goes on while it calls something
/// that blocks.
pub fn block_on<T>(client: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
    let result =
        runtime.block_on(async { timeout(DEADLINE, client).await.expect("the client ends in time") });
    runtime.shutdown_background();
    result
}

/// A connection.
pub struct Http3 {
    pub quic: quinn::Connection,
    requests: SendRequest<h3_quinn::OpenStreams, Bytes>,
    /// Ends with the connection.
    pub driver: JoinHandle<h3::error::ConnectionError>,
    host: String,
    endpoint: Endpoint,
}

/// All of a response.
#[derive(Debug)]
pub struct Received {
    pub status: StatusCode,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
}

impl Received {
    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().expect("text"))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// A QUIC connection to the site with this name.
///
/// # Errors
/// When the handshake fails.
pub async fn connect_quic(
    client: &TlsClient,
    address: SocketAddr,
    name: &str,
) -> Result<(Endpoint, quinn::Connection), ConnectionError> {
    let (endpoint, connecting) = begin_quic(client, address, name);
    let connection = connecting.await?;
    Ok((endpoint, connection))
}

/// A handshake that has begun.
pub fn begin_quic(client: &TlsClient, address: SocketAddr, name: &str) -> (Endpoint, Connecting) {
    let mut tls = client.config();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3");
    let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let endpoint = Endpoint::client(local.parse().expect("an address")).expect("a socket");
    let config = ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, address, name).expect("a name");
    (endpoint, connecting)
}

impl Http3 {
    /// Connects to the site with this name.
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn connect(
        client: &TlsClient,
        address: SocketAddr,
        name: &str,
    ) -> Result<Self, ConnectionError> {
        let (endpoint, quic) = connect_quic(client, address, name).await?;
        let connection = h3_quinn::Connection::new(quic.clone());
        let (mut driver, requests) = h3::client::new(connection).await.expect("a connection");
        let driver = tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
        let host = format!("{name}:{}", address.port());
        Ok(Self { quic, requests, driver, host, endpoint })
    }

    /// A request to the connection's host.
    pub fn request(&self, method: &str, target: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("https://{}{target}", self.host))
    }

    /// Sends the head of a request.
    ///
    /// # Errors
    /// When the connection ends, or says that it does.
    pub async fn open(&mut self, request: http::request::Builder) -> Result<Stream, StreamError> {
        self.requests.send_request(request.body(()).expect("a request")).await
    }

    /// The response to a request without a body.
    ///
    /// # Errors
    /// When the stream is reset, or the connection ends.
    pub async fn send(&mut self, request: http::request::Builder) -> Result<Received, StreamError> {
        self.send_with(request, b"").await
    }

    /// The response to a request with this body.
    ///
    /// # Errors
    /// When the stream is reset, or the connection ends.
    pub async fn send_with(
        &mut self,
        request: http::request::Builder,
        body: &[u8],
    ) -> Result<Received, StreamError> {
        let mut stream = self.open(request).await?;
        for piece in body.chunks(1 << 20) {
            stream.send_data(Bytes::copy_from_slice(piece)).await?;
        }
        stream.finish().await?;
        let head = stream.recv_response().await?;
        receive(&mut stream, head).await
    }

    /// Ends the connection, and waits until the server can know. One that is only dropped says nothing, if the runtime ends first.
    pub async fn close(self) {
        // RFC 9114, section 8.1: H3_NO_ERROR.
        self.quic.close(0x100_u32.into(), b"");
        self.endpoint.wait_idle().await;
    }

    /// The code that the server closes the connection with.
    pub async fn closed(&self) -> u64 {
        closed(&self.quic).await
    }

    pub async fn get(&mut self, target: &str) -> Received {
        let request = self.request("GET", target);
        self.send(request).await.unwrap_or_else(|error| panic!("GET {target}: {error}"))
    }
}

/// The code that the server closes the connection with.
pub async fn closed(connection: &quinn::Connection) -> u64 {
    match connection.closed().await {
        ConnectionError::ApplicationClosed(closed) => closed.error_code.into_inner(),
        error => panic!("the connection ends otherwise: {error:?}"),
    }
}

/// The rest of a response.
///
/// # Errors
/// When it breaks off.
pub async fn receive(stream: &mut Stream, head: Response<()>) -> Result<Received, StreamError> {
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    let (head, ()) = head.into_parts();
    Ok(Received { status: head.status, fields: head.headers, body })
}
