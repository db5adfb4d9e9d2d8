//! A stream that has left HTTP (RFC 8441).

use crate::h2::stream::Outcome;
use ::h2::{RecvStream, SendStream};
use bytes::{Buf, Bytes};
use regent_exchange::Tunnel;
use regent_net::Drain;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that it asks room for at a time. Streams take turns after each.
const PIECE: usize = 16 * 1024;

/// Gives the stream to the tunnel until that ends, the client resets it, or the server drains: nobody knows when a tunnel would.
pub(super) async fn dig(
    send: SendStream<Bytes>,
    receive: RecvStream,
    tunnel: Tunnel,
    drain: &Drain,
) -> Outcome {
    let send = Rc::new(RefCell::new(send));
    let channel = Channel { send: Rc::clone(&send), receive, rest: Bytes::new() };
    let is_reset = poll_fn(|context| send.borrow_mut().poll_reset(context).map(drop));
    tokio::select! {
        biased;
        () = is_reset => Outcome::Reset,
        () = drain.begun() => {
            // In good order, as far as there is any; an error says that it has ended.
            let _ = send.borrow_mut().send_data(Bytes::new(), true);
            Outcome::Complete
        }
        // What it has not ended is reset when it is dropped.
        () = tunnel(Box::new(channel)) => Outcome::Complete,
    }
}

/// A stream as bytes both ways. The client may send as much more as was taken.
struct Channel {
    send: Rc<RefCell<SendStream<Bytes>>>,
    receive: RecvStream,
    /// What has come and was not taken.
    rest: Bytes,
}

impl Channel {
    fn take(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..count]);
        self.rest.advance(count);
        // An error says that the stream has ended.
        let _ = self.receive.flow_control().release_capacity(count);
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.receive.poll_data(context)) {
                Some(data) => self.rest = data.map_err(io::Error::other)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        self.take(buffer);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Channel {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut send = self.send.borrow_mut();
        let wanted = bytes.len().min(PIECE);
        send.reserve_capacity(wanted);
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(context)) {
                Some(room) => drop(room.map_err(io::Error::other)?),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let piece = Bytes::copy_from_slice(&bytes[..wanted.min(send.capacity())]);
        let count = piece.len();
        Poll::Ready(send.send_data(piece, false).map(|()| count).map_err(io::Error::other))
    }

    /// The connection sends as its client gives room.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// RFC 8441 §5: the end of the stream is that of a connection.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.send.borrow_mut().send_data(Bytes::new(), true).map_err(io::Error::other))
    }
}
