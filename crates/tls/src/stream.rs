//! A stream whose bytes are encrypted on the way.

use crate::ConnectionFacts;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// What is written leaves at a flush at the latest. Shutting it down says `close_notify` and shuts the inner stream down.
/// Reading ends with [`io::ErrorKind::UnexpectedEof`] if the client ended the stream without `close_notify`.
#[derive(Debug)]
pub struct Stream<S> {
    inner: TlsStream<S>,
    facts: Arc<ConnectionFacts>,
}

impl<S> Stream<S> {
    pub(crate) fn new(inner: TlsStream<S>, facts: ConnectionFacts) -> Self {
        Self { inner, facts: Arc::new(facts) }
    }

    pub fn facts(&self) -> &Arc<ConnectionFacts> {
        &self.facts
    }

    /// The stream below. Nothing may be read from it or written to it.
    pub fn get_ref(&self) -> &S {
        self.inner.get_ref().0
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Closing says less than shutting down: `close_notify` is missing then.
impl<S: AsyncRead + AsyncWrite + Unpin> regent_net::Stream for Stream<S> {}
