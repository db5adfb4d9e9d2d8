//! The body of a response on its way to the client.

use crate::owed::Owed;
use crate::response_head::drop_connection_fields;
use crate::timeouts::StallTimer;
use ::h2::SendStream;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes that a stream asks room for at a time. Streams take turns after each.
const PIECE: usize = 16 * 1024;

/// Why a body was not sent whole.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The client, or the end of the connection, has ended the stream.
    Reset,
    /// The client gave no room for too long.
    Stalled,
    /// It failed, or its length was not what the client was told.
    Failed(io::Error),
}

/// What sends a body: the stream of a response whose head was sent.
pub(super) struct Sender {
    stream: SendStream<Bytes>,
    wait: StallTimer,
}

/// Whether more follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Follows,
    Ends,
}

impl Sender {
    /// `limit`: how long the client may give no room.
    pub fn new(stream: SendStream<Bytes>, limit: Duration) -> Self {
        Self { stream, wait: StallTimer::new(limit) }
    }

    /// The stream, for a reset.
    pub fn into_stream(self) -> SendStream<Bytes> {
        self.stream
    }

    /// Sends a body to its end, and with it that of the stream. `owed`: its length, if the client was told.
    pub async fn send<B>(&mut self, body: B, owed: Option<u64>) -> Result<(), Unsent>
    where
        B: Body<Data = Bytes, Error = io::Error>,
    {
        let (mut body, mut owed) = (pin!(body), Owed::new(owed));
        while let Some(frame) = self.next_frame(body.as_mut()).await? {
            match frame.into_data() {
                Ok(data) => {
                    owed.take(data.len()).map_err(Unsent::Failed)?;
                    // A piece without bytes cannot carry the end.
                    if body.is_end_stream() && !data.is_empty() {
                        owed.check_whole().map_err(Unsent::Failed)?;
                        return self.send_data(data, More::Ends).await;
                    }
                    self.send_data(data, More::Follows).await?;
                }
                Err(frame) => {
                    owed.check_whole().map_err(Unsent::Failed)?;
                    return self.send_trailers(frame);
                }
            }
        }
        owed.check_whole().map_err(Unsent::Failed)?;
        self.stream.send_data(Bytes::new(), true).map_err(|_| Unsent::Reset)
    }

    /// Polled even while the body is waited for: a client that has left must not keep a script.
    async fn next_frame<B>(&mut self, mut body: Pin<&mut B>) -> Result<Option<Frame<Bytes>>, Unsent>
    where
        B: Body<Data = Bytes, Error = io::Error>,
    {
        poll_fn(|context| {
            if self.stream.poll_reset(context).is_ready() {
                return Poll::Ready(Err(Unsent::Reset));
            }
            body.as_mut().poll_frame(context).map(|frame| frame.transpose().map_err(Unsent::Failed))
        })
        .await
    }

    async fn send_data(&mut self, mut data: Bytes, more: More) -> Result<(), Unsent> {
        while !data.is_empty() {
            self.stream.reserve_capacity(data.len().min(PIECE));
            let room = poll_fn(|context| self.poll_room(context)).await?;
            let piece = data.split_to(room.min(data.len()).min(PIECE));
            let is_last = data.is_empty() && more == More::Ends;
            self.stream.send_data(piece, is_last).map_err(|_| Unsent::Reset)?;
        }
        Ok(())
    }

    fn send_trailers(&mut self, frame: Frame<Bytes>) -> Result<(), Unsent> {
        let mut trailers = frame.into_trailers().unwrap_or_default();
        drop_connection_fields(&mut trailers);
        self.stream.send_trailers(trailers).map_err(|_| Unsent::Reset)
    }

    /// Bytes that may be sent, at least one.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, Unsent>> {
        if self.stream.poll_reset(context).is_ready() {
            return Poll::Ready(Err(Unsent::Reset));
        }
        let room = match self.stream.capacity() {
            0 => self.stream.poll_capacity(context),
            room => Poll::Ready(Some(Ok(room))),
        };
        match room {
            Poll::Ready(Some(Ok(room))) => {
                self.wait.end();
                Poll::Ready(Ok(room))
            }
            Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(Unsent::Reset)),
            Poll::Pending => self.wait.poll_expired(context).map(|()| Err(Unsent::Stalled)),
        }
    }
}
