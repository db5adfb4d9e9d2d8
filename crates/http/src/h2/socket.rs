//! A byte stream that reports to the connection's [`Activity`].

use crate::h2::activity::Activity;
use crate::linger::Linger;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose reads and writes are noticed. Shut down, it lingers until the client closes its end: what it sends until
/// then, if only acknowledgements, must not reset the connection before it has read the last frames. Dropped before that, it
/// says that it ends, which a client of TLS would otherwise take for an attack, as far as the client takes that.
pub(super) struct ObservedStream<S: AsyncWrite + Unpin> {
    stream: S,
    activity: Rc<Activity>,
    linger: Option<Linger>,
}

impl<S: AsyncWrite + Unpin> ObservedStream<S> {
    pub fn new(stream: S, activity: Rc<Activity>) -> Self {
        Self { stream, activity, linger: None }
    }

    fn noticed<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match result {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(_) => self.activity.written(),
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.activity.received(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noticed(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noticed(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// A stream with TLS may have taken bytes that its socket has not.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        match result {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(_) => self.activity.flushed(),
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            // With TLS there is something to send.
            let result = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.noticed(result))?;
        }
        this.linger.get_or_insert_with(Linger::new).poll_drain(&mut this.stream, context).map(Ok)
    }
}

impl<S: AsyncWrite + Unpin> Drop for ObservedStream<S> {
    fn drop(&mut self) {
        if self.linger.is_none() {
            let _ = Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }
}
