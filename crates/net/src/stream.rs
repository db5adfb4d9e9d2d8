//! What a connection may ask of its stream.

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

/// A stream of bytes to and from a client.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Whether closing the stream tells the client as much as shutting it down: that nothing more will come, and nothing is
    /// missing. Of a TLS stream it does not: without `close_notify` the end may be somebody else's (RFC 8446 §6.1).
    fn close_says_all(&self) -> bool {
        false
    }
}

/// For tests.
impl Stream for DuplexStream {
    fn close_says_all(&self) -> bool {
        true
    }
}
