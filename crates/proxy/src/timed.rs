//! A stream to an upstream that must not stall.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes both ways, that a tunnel may hand on.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Fails with [`io::ErrorKind::TimedOut`] where the other side gives, or takes, nothing for too long.
pub(crate) struct Timed {
    stream: Box<dyn Stream>,
    read: Limit,
    write: Limit,
}

/// How long something may be waited for.
struct Limit {
    /// `None`: for ever.
    limit: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    is_running: bool,
}

impl Timed {
    /// A limit of 0 is none.
    pub fn new(stream: Box<dyn Stream>, read: Duration, write: Duration) -> Self {
        Self { stream, read: Limit::new(read), write: Limit::new(write) }
    }
}

impl Limit {
    fn new(limit: Duration) -> Self {
        Self { limit: Some(limit).filter(|limit| !limit.is_zero()), timer: None, is_running: false }
    }

    fn guard<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        match result {
            Poll::Ready(result) => {
                self.is_running = false;
                Poll::Ready(result)
            }
            Poll::Pending => {
                ready!(self.poll_expired(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = self.limit else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.is_running {
            self.is_running = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(context)
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.read.guard(result, context)
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.write.guard(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.write.guard(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.write.guard(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.write.guard(result, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_read_and_bytes_begin_the_wait_anew() {
        let (mut other, stream) = tokio::io::duplex(64);
        let mut timed = Timed::new(Box::new(stream), Duration::from_secs(5), Duration::ZERO);
        let started = Instant::now();
        let writing = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                other.write_all(b"x").await.unwrap();
            }
        };
        let mut text = Vec::new();
        let (_, read) = tokio::join!(writing, timed.read_to_end(&mut text));
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!((text.len(), started.elapsed()), (3, Duration::from_secs(17)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_ends_a_write() {
        let (_other, stream) = tokio::io::duplex(4);
        let mut timed = Timed::new(Box::new(stream), Duration::ZERO, Duration::from_secs(5));
        let written = timed.write_all(b"more than four").await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
