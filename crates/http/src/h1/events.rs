//! Event streams that are silent: thousands of them wait at a time.
//!
//! hyper keeps buffers of 8 KiB each way, and itself, for a response that goes on. So the body of an event stream is taken from it
//! when it has nothing to say, and its chunks are written here until it ends. Then hyper has the connection again.

use crate::h1::watched::{WatchedBody, WatchedSocket};
use crate::timeouts::Expired;
use bytes::{Buf, Bytes};
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use regent_exchange::EventStream;
use regent_net::Stream;
use std::cell::Cell;
use std::collections::VecDeque;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the body that are sent in one go. One frame may be longer.
const ENOUGH: usize = 16 * 1024;
/// Frames that are sent in one go.
const MOST_FRAMES: usize = 16;
/// Parts of a frame: what is before it, itself, and what is behind it.
const PARTS: usize = 3;
/// How often a stream sends before the other connections of the thread have their turn.
const ROUNDS: usize = 16;
/// Bytes that are read of a client, which has nothing to say: of the next request at most.
const READ: usize = 512;

const END_OF_CHUNK: Bytes = Bytes::from_static(b"\r\n");
const LAST_CHUNK: Bytes = Bytes::from_static(b"0\r\n\r\n");

/// How the end of a body is marked (RFC 9112 §6.3), and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The next response.
    Chunked,
    /// The end of the connection.
    LastChunked,
    /// It is the end of the connection that marks it.
    UntilClose,
}

/// Where a body waits to be taken from hyper once it is silent.
pub(crate) struct Lull<B: Body>(Cell<Option<(WatchedBody<B>, Framing)>>);

/// A stream on its way, instead of hyper's connection.
pub(super) struct Events<S: Stream, B: Body> {
    socket: WatchedSocket<S>,
    framing: Framing,
    /// `None`: it has ended.
    body: Option<WatchedBody<B>>,
    unsent: VecDeque<Bytes>,
    /// What the client has sent of its next request.
    ahead: Vec<u8>,
}

impl Framing {
    /// That of a response without a length to this request; `None`: the response stays with hyper, whatever it is.
    ///
    /// `is_last`: whether the client wants no other response.
    pub fn of(request: &Request<Incoming>, is_last: bool) -> Option<Self> {
        let is_plain = request.method() == Method::GET
            && request.body().is_end_stream()
            && request.extensions().get::<OnUpgrade>().is_none();
        is_plain.then(|| match (request.version(), is_last) {
            (Version::HTTP_10, _) => Self::UntilClose,
            (_, true) => Self::LastChunked,
            (_, false) => Self::Chunked,
        })
    }

    fn frame(self, data: Bytes) -> impl Iterator<Item = Bytes> {
        let parts = match self {
            Self::UntilClose => [None, Some(data), None],
            _ => [Some(format!("{:x}\r\n", data.len()).into()), Some(data), Some(END_OF_CHUNK)],
        };
        parts.into_iter().flatten()
    }

    fn end(self) -> Option<Bytes> {
        (self != Self::UntilClose).then_some(LAST_CHUNK)
    }
}

/// Whether the body of the response is an event stream that hyper frames as it frames any.
pub(super) fn take_mark<B: Body>(response: &mut Response<B>) -> bool {
    // A response without extensions, as nearly all are, costs one look.
    response.extensions_mut().remove::<EventStream>().is_some()
        && response.status() == StatusCode::OK
        && response.body().size_hint().exact().is_none()
        && ![header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
            .iter()
            .any(|name| response.headers().contains_key(name))
}

/// What a box held, without its memory, which is free again.
#[expect(clippy::boxed_local, reason = "moved out where the box stands, a value would leave it its memory")]
pub(super) fn unboxed<T>(boxed: Box<T>) -> T {
    *boxed
}

impl<B: Body> Default for Lull<B> {
    fn default() -> Self {
        Self(Cell::new(None))
    }
}

impl<B: Body> Lull<B> {
    pub fn put(&self, body: WatchedBody<B>, framing: Framing) {
        self.0.set(Some((body, framing)));
    }

    pub fn take(&self) -> Option<(WatchedBody<B>, Framing)> {
        self.0.take()
    }
}

impl<S, B> Events<S, B>
where
    S: Stream,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// `read`: what was read of the socket behind the request.
    pub fn new(socket: WatchedSocket<S>, read: &[u8], body: WatchedBody<B>, framing: Framing) -> Self {
        Self { socket, framing, body: Some(body), unsent: VecDeque::new(), ahead: read.to_vec() }
    }

    /// Sends the stream to its end. An error ends the connection: the client has gone, takes nothing any more, or the stream is not
    /// whole.
    pub async fn send(&mut self, mut expiry: Pin<&mut impl Future<Output = Expired>>) -> io::Result<()> {
        poll_fn(|context| match self.poll(context) {
            Poll::Pending => expiry.as_mut().poll(context).map(|_| Err(io::ErrorKind::TimedOut.into())),
            sent => sent,
        })
        .await
    }

    /// The socket, and what comes after the stream.
    pub fn into_socket(self) -> (WatchedSocket<S>, Framing) {
        let mut socket = self.socket;
        socket.give_back(self.ahead);
        (socket, self.framing)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch_client(context)?;
        for _ in 0..ROUNDS {
            ready!(self.poll_send(context))?;
            if self.body.is_none() {
                return Poll::Ready(Ok(()));
            }
            self.collect(context)?;
            if self.unsent.is_empty() && self.body.is_some() {
                // No memory is kept for the next event: there are more connections than events.
                self.unsent = VecDeque::new();
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Fails when it leaves. Behind the beginning of another request that is not seen, as hyper does not see it.
    fn watch_client(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.ahead.is_empty() {
            return Ok(());
        }
        let mut part = [0; READ];
        let mut buffer = ReadBuf::new(&mut part);
        match Pin::new(&mut self.socket).poll_read(context, &mut buffer) {
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Ok(())) => {
                self.ahead.extend_from_slice(buffer.filled());
                Ok(())
            }
            Poll::Pending => Ok(()),
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); MOST_FRAMES * PARTS];
            let parts = slices.iter_mut().zip(&self.unsent);
            let count = parts.map(|(slice, part)| *slice = IoSlice::new(part)).count();
            match ready!(Pin::new(&mut self.socket).poll_write_vectored(context, &slices[..count]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.advance(sent),
            }
        }
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn advance(&mut self, mut sent: usize) {
        while let Some(part) = self.unsent.front_mut() {
            if sent < part.len() {
                return part.advance(sent);
            }
            sent -= part.len();
            self.unsent.pop_front();
        }
    }

    /// Takes what the body has.
    fn collect(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut collected = 0;
        for _ in 0..MOST_FRAMES {
            let Some(body) = self.body.as_mut().filter(|_| collected < ENOUGH) else { break };
            match Pin::new(body).poll_frame(context) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(frame))) => {
                    // An empty chunk would be the last.
                    let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) else { continue };
                    collected += data.len();
                    self.unsent.extend(self.framing.frame(data));
                }
                Poll::Ready(Some(Err(error))) => return Err(io::Error::other(error)),
                Poll::Ready(None) => {
                    self.body = None;
                    self.unsent.extend(self.framing.end());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
