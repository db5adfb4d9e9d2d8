//! Clients of HTTP/2 over TLS, on the h2 crate.

use crate::TlsClient;
use crate::h3::Received;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection. Clones share it.
#[derive(Clone)]
pub struct Http2 {
    requests: SendRequest<Bytes>,
    host: String,
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
        let mut tls = client.config();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let server = ServerName::try_from(name.to_owned()).expect("a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(server, socket).await?;
        let (requests, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        // Its end is what requests on it say.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests, host: format!("{name}:{}", address.port()) })
    }

    /// Asks for `target`, with a body if there is one.
    ///
    /// # Errors
    /// When the stream is reset, or the connection ends or is about to.
    pub async fn ask(&self, target: &str, body: Option<&[u8]>) -> Result<Received, Failure> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request::builder().method(method).uri(format!("https://{}{target}", self.host));
        let request = request.header("content-type", "text/plain").body(()).expect("a request");
        let mut requests = self.requests.clone().ready().await.map_err(Failure::NotTaken)?;
        let (response, stream) = requests.send_request(request, body.is_none()).map_err(Failure::NotTaken)?;
        receive(response, stream, body).await.map_err(Failure::of)
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
        stream.send_data(Bytes::copy_from_slice(body), true)?;
    }
    let (head, mut body) = response.await?.into_parts();
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        received.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len())?;
    }
    Ok(Received { status: head.status, fields: head.headers, body: received })
}
