//! A stream that begins with bytes which were read before.

use crate::stream::Stream;
use bytes::{Buf, Bytes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of which something was read before.
pub struct Prefixed<S> {
    prefix: Bytes,
    stream: S,
}

impl<S> Prefixed<S> {
    pub fn new(prefix: Bytes, stream: S) -> Self {
        Self { prefix, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let given = self.prefix.len().min(buffer.remaining());
        buffer.put_slice(&self.prefix[..given]);
        match given == self.prefix.len() {
            // Its memory is not kept for the rest of the connection.
            true => self.prefix = Bytes::new(),
            false => self.prefix.advance(given),
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Stream> Stream for Prefixed<S> {
    fn close_says_all(&self) -> bool {
        self.stream.close_says_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_prefix_is_given_in_parts_of_any_size() {
        let (client, server) = tokio::io::duplex(64);
        drop(client);
        let mut prefixed = Prefixed::new(Bytes::from_static(b"prefix"), server);
        let mut parts = Vec::new();
        loop {
            let mut part = [0; 4];
            match prefixed.read(&mut part).await.unwrap() {
                0 => break,
                count => parts.push(part[..count].to_vec()),
            }
        }
        assert_eq!(parts, [b"pref".to_vec(), b"ix".to_vec()]);
    }
}
