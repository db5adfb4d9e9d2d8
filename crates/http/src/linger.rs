//! Reading on behind the end of what the server sends.
//!
//! Closing a socket with unread bytes resets the connection, and a reset can overtake the last response (RFC 9112 §9.6).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

/// How long, and how much, a client may go on sending after the last answer.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// After the last answer.
pub(crate) struct Linger {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Linger {
    pub fn new() -> Self {
        Self { until: Box::pin(tokio::time::sleep(LINGER)), bytes_left: LINGER_BYTES }
    }

    /// Throws away what comes until the client closes, or has had its chance.
    pub fn poll_drain(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut scratch = [0; 16 * 1024];
        while self.bytes_left > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *socket).poll_read(context, &mut buffer) {
                Poll::Pending => return self.until.as_mut().poll(context),
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.bytes_left = self.bytes_left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}
