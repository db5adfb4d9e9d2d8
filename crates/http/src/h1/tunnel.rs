//! A connection that has left HTTP.

use crate::h1::watched::WatchedSocket;
use bytes::{Buf, Bytes};
use regent_exchange::Tunnel;
use regent_net::{Drain, Stream};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives the socket to the tunnel until that ends, or the server drains: nobody knows when a tunnel would.
///
/// `read`: what came behind the head of the request.
pub(super) async fn dig<S: Stream + 'static>(
    mut socket: WatchedSocket<S>,
    read: &[u8],
    tunnel: Tunnel,
    drain: &Drain,
) {
    let read = Bytes::from([read, &socket.take_rest()].concat());
    tokio::select! {
        () = tunnel(Box::new(Rewound { read, socket })) => {}
        () = drain.begun() => {}
    }
}

/// A socket of which something has been read.
struct Rewound<S: Stream> {
    read: Bytes,
    socket: WatchedSocket<S>,
}

impl<S: Stream> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return self.socket.raw().poll_read(context, buffer);
        }
        let count = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..count]);
        self.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.raw().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket.raw().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.raw().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.raw().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::activity::Activity;
    use std::rc::Rc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn what_was_read_comes_first() {
        let (mut client, server) = tokio::io::duplex(64);
        client.write_all(b"late").await.unwrap();
        drop(client);
        let socket = WatchedSocket::new(server, Rc::new(Activity::new()), Rc::default(), Rc::default());
        let mut stream = Rewound { read: Bytes::from_static(b"early "), socket };
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "early late");
    }
}
