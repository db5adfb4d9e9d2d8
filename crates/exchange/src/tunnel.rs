//! What becomes of a connection that leaves HTTP (RFC 9110 §7.8).

use std::future::Future;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes to and from a client, as they are.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// Among the extensions of a request's head: what looks like an upgrade by HTTP/1.1 is one stream of a connection that has others,
/// and is to carry WebSocket (RFC 8441, RFC 9220). It has no key. Any 2xx would tell its client that it does, so a response is one
/// that is handed over ([`crate::Informational::hand_over`]), or says that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSocketStream;

/// What goes on with a connection when its last response, a 101, has been sent. The connection, or the stream, ends with the future.
pub type Tunnel = Box<dyn FnOnce(Box<dyn Duplex>) -> Pin<Box<dyn Future<Output = ()>>>>;
