//! What becomes of a connection that leaves HTTP (RFC 9110 §7.8).

use std::future::Future;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes to and from a client, as they are.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// What goes on with a connection when its last response, a 101, has been sent. The connection ends with the future.
pub type Tunnel = Box<dyn FnOnce(Box<dyn Duplex>) -> Pin<Box<dyn Future<Output = ()>>>>;
