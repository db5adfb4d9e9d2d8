//! The body of a response on its way to the client.

use crate::h2::head::drop_connection_fields;
use crate::patience::Stall;
use ::h2::SendStream;
use bytes::Bytes;
use http_body::{Body, Frame};
use regent_net::CoarseInstant;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

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
    wait: Wait,
}

/// How long a client has given no room.
struct Wait {
    limit: Duration,
    stall: Stall,
    /// Looks at `stall` now and then: it is not armed and disarmed for each piece.
    timer: Option<Pin<Box<Sleep>>>,
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
        Self { stream, wait: Wait { limit, stall: Stall::default(), timer: None } }
    }

    /// The stream, for a reset.
    pub fn into_stream(self) -> SendStream<Bytes> {
        self.stream
    }

    /// Sends a body to its end, and with it that of the stream. `owed`: its length, if the client was told.
    pub async fn send<B>(&mut self, body: B, mut owed: Option<u64>) -> Result<(), Unsent>
    where
        B: Body<Data = Bytes, Error = io::Error>,
    {
        let mut body = pin!(body);
        while let Some(frame) = self.next_frame(body.as_mut()).await? {
            match frame.into_data() {
                Ok(data) => {
                    take(&mut owed, data.len())?;
                    // A piece without bytes cannot carry the end.
                    if body.is_end_stream() && !data.is_empty() {
                        check_whole(owed)?;
                        return self.send_data(data, More::Ends).await;
                    }
                    self.send_data(data, More::Follows).await?;
                }
                Err(frame) => {
                    check_whole(owed)?;
                    return self.send_trailers(frame);
                }
            }
        }
        check_whole(owed)?;
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
                self.wait.stall.end();
                Poll::Ready(Ok(room))
            }
            Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(Unsent::Reset)),
            Poll::Pending => self.wait.poll_expired(context).map(|()| Err(Unsent::Stalled)),
        }
    }
}

impl Wait {
    /// Ready when it has been too long.
    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stall.begin();
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        loop {
            ready!(timer.as_mut().poll(context));
            let left = self.stall.left(self.limit, CoarseInstant::now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            timer.set(sleep(left));
        }
    }
}

/// A body must not be longer than the client was told.
fn take(owed: &mut Option<u64>, length: usize) -> Result<(), Unsent> {
    if let Some(owed) = owed {
        *owed = owed.checked_sub(length as u64).ok_or_else(|| Unsent::Failed(wrong_length("more")))?;
    }
    Ok(())
}

/// Nor shorter.
fn check_whole(owed: Option<u64>) -> Result<(), Unsent> {
    match owed {
        None | Some(0) => Ok(()),
        Some(_) => Err(Unsent::Failed(wrong_length("less"))),
    }
}

fn wrong_length(comparison: &str) -> io::Error {
    io::Error::other(format!("a response has {comparison} bytes than its Content-Length says"))
}
