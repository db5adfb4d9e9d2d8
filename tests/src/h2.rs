//! Clients of HTTP/2, on the h2 crate.

use crate::TlsClient;
use crate::h3::Received;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection. Clones share it.
#[derive(Clone)]
pub struct Http2 {
    requests: SendRequest<Bytes>,
    scheme: &'static str,
    host: String,
}

/// A stream that was asked for with `CONNECT`, and what the server said.
pub struct Opened {
    pub status: StatusCode,
    fields: HeaderMap,
    send: SendStream<Bytes>,
    receive: RecvStream,
    /// Of a refusal.
    body: String,
}

impl Opened {
    #[track_caller]
    pub fn expect(self, status: StatusCode) -> Self {
        assert_eq!(self.status, status);
        self
    }

    /// The server has said no, and why.
    pub async fn expect_refusal(mut self, status: u16) -> Self {
        assert_eq!(self.status, status);
        self.body = self.rest().await.expect("a body");
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().expect("text"))
    }

    /// Of a refusal.
    pub fn text(&self) -> &str {
        &self.body
    }

    pub async fn send(&mut self, text: &'static str) {
        send(&mut self.send, Bytes::from_static(text.as_bytes())).await;
    }

    /// So many bytes.
    pub async fn read(&mut self, count: usize) -> String {
        let mut read = Vec::new();
        while read.len() < count {
            read.extend(next(&mut self.receive).await.expect("no end").expect("no reset"));
        }
        String::from_utf8(read).expect("text")
    }

    /// All until the end.
    ///
    /// # Errors
    /// When the stream is reset.
    pub async fn rest(&mut self) -> Result<String, h2::Error> {
        rest(&mut self.receive).await.map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    /// Nothing more is sent.
    pub fn finish(&mut self) {
        self.send.send_data(Bytes::new(), true).expect("a stream");
    }

    pub fn reset(&mut self) {
        self.send.send_reset(Reason::CANCEL);
    }

    /// Both directions by themselves.
    pub fn split(self) -> (Sending, Reading) {
        (Sending(self.send), Reading(self.receive))
    }
}

/// What is sent over a stream.
pub struct Sending(SendStream<Bytes>);

impl Sending {
    pub async fn send(&mut self, bytes: Bytes) {
        send(&mut self.0, bytes).await;
    }

    /// Nothing more is sent.
    pub fn finish(&mut self) {
        self.0.send_data(Bytes::new(), true).expect("a stream");
    }
}

/// What comes over a stream.
pub struct Reading(RecvStream);

impl Reading {
    /// All until the end.
    ///
    /// # Errors
    /// When the stream is reset.
    pub async fn rest(&mut self) -> Result<Vec<u8>, h2::Error> {
        rest(&mut self.0).await
    }
}

async fn rest(receive: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut read = Vec::new();
    while let Some(data) = next(receive).await {
        read.extend_from_slice(&data?);
    }
    Ok(read)
}

async fn next(receive: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let data = receive.data().await?;
    // Behind the end, this says that nothing more need be sent (RFC 9113, section 8.1).
    if data.as_ref().is_err_and(|error| error.reason() == Some(Reason::NO_ERROR)) {
        return None;
    }
    Some(data.inspect(|data| receive.flow_control().release_capacity(data.len()).expect("a stream")))
}

/// Waits for room.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room =
            poll_fn(|context| stream.poll_capacity(context)).await.expect("a stream").expect("no reset");
        stream.send_data(bytes.split_to(room.min(bytes.len())), false).expect("a stream");
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The server has not taken the request, and says so: it may be sent anew (RFC 9113, section 8.7).
    NotTaken(h2::Error),
    Lost(h2::Error),
}

impl Http2 {
    /// Connects to the site with this name.
    ///
    /// # Errors
    /// When the connection is refused, or a handshake fails.
    pub async fn connect(client: &TlsClient, address: SocketAddr, name: &str) -> io::Result<Self> {
        Self::connect_over(client, TcpStream::connect(address).await?, name).await
    }

    /// The same over a connection that has been made.
    ///
    /// # Errors
    /// As above.
    pub async fn connect_over(client: &TlsClient, socket: TcpStream, name: &str) -> io::Result<Self> {
        let mut tls = client.config();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let address = socket.peer_addr()?;
        socket.set_nodelay(true)?;
        let server = ServerName::try_from(name.to_owned()).expect("a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(server, socket).await?;
        Self::over(stream, "https", format!("{name}:{}", address.port())).await
    }

    /// Connects without TLS, to a server that knows what to expect.
    ///
    /// # Errors
    /// When the connection is refused, or the handshake fails.
    pub async fn connect_plain(address: SocketAddr) -> io::Result<Self> {
        Self::over_plain(TcpStream::connect(address).await?).await
    }

    /// The same over a connection that has been made.
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn over_plain(socket: TcpStream) -> io::Result<Self> {
        let address = socket.peer_addr()?;
        socket.set_nodelay(true)?;
        Self::over(socket, "http", address.to_string()).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        scheme: &'static str,
        host: String,
    ) -> io::Result<Self> {
        let (requests, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        // Its end is what requests on it say.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests, scheme, host })
    }

    /// Asks for a stream that carries WebSocket.
    pub async fn websocket(&self, target: &str) -> Opened {
        self.extended_connect(Some("websocket"), target).await
    }

    /// Asks for a stream that carries this, or without a protocol for one to the connection's own host.
    pub async fn extended_connect(&self, protocol: Option<&'static str>, target: &str) -> Opened {
        let uri = match protocol {
            Some(_) => format!("{}://{}{target}", self.scheme, self.host),
            None => self.host.clone(),
        };
        let request = Request::builder().method("CONNECT").uri(uri).header("sec-websocket-version", "13");
        let mut request = request.body(()).expect("a request");
        protocol.map(|protocol| request.extensions_mut().insert(Protocol::from_static(protocol)));
        let mut requests = self.requests.clone().ready().await.expect("a connection");
        let (response, send) = requests.send_request(request, false).expect("a connection");
        let (head, receive) = response.await.expect("a response").into_parts();
        Opened { status: head.status, fields: head.headers, send, receive, body: String::new() }
    }

    /// Asks for `target`, with a body if there is one.
    ///
    /// # Errors
    /// When the stream is reset, or the connection ends or is about to.
    pub async fn ask(&self, target: &str, body: Option<&[u8]>) -> Result<Received, Failure> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let request =
            Request::builder().method(method).uri(format!("{}://{}{target}", self.scheme, self.host));
        let request = request.header("content-type", "text/plain").body(()).expect("a request");
        let mut requests = self.requests.clone().ready().await.map_err(Failure::NotTaken)?;
        let (response, stream) = requests.send_request(request, body.is_none()).map_err(Failure::NotTaken)?;
        receive(response, stream, body).await.map_err(Failure::of)
    }

    /// The response to a request without a body, whose URI and fields are sent as they are.
    ///
    /// # Errors
    /// As above.
    pub async fn send(&self, request: http::request::Builder) -> Result<Received, Failure> {
        let mut requests = self.requests.clone().ready().await.map_err(Failure::NotTaken)?;
        let request = request.body(()).expect("a request");
        let (response, stream) = requests.send_request(request, true).map_err(Failure::NotTaken)?;
        receive(response, stream, None).await.map_err(Failure::of)
    }
}

impl Failure {
    fn of(error: h2::Error) -> Self {
        let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        let is_over = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
        if error.is_remote() && (is_refused || is_over) { Self::NotTaken(error) } else { Self::Lost(error) }
    }
}

async fn receive(
    response: ResponseFuture,
    mut stream: SendStream<Bytes>,
    body: Option<&[u8]>,
) -> Result<Received, h2::Error> {
    if let Some(body) = body {
        // Where the server has answered already, and wants none of it, the answer says so.
        let _ = stream.send_data(Bytes::copy_from_slice(body), true);
    }
    let (head, mut body) = response.await?.into_parts();
    let received = rest(&mut body).await?;
    Ok(Received { status: head.status, fields: head.headers, body: received })
}
