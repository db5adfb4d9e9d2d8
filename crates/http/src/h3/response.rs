//! A response on its way to the client.

use crate::h3::code;
use crate::h3::fields;
use crate::h3::frames;
use crate::linger::LINGER;
use crate::owed::Owed;
use crate::response_head::drop_connection_fields;
use crate::timeouts::StallTimer;
use bytes::Bytes;
use http_body::{Body, Frame};
use quinn::{Connection, SendStream, VarInt};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::timeout;

/// Why a response was not sent whole.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The client, or the end of the connection, has ended the stream.
    Reset,
    /// The client gave no room for too long.
    Stalled,
    /// The body failed, or its length was not what the client was told.
    Failed(io::Error),
}

/// The way of a response. Dropped before its end, it tells the client that the response is not whole: quinn would end the stream as
/// if it were.
pub(super) struct Reply {
    stream: SendStream,
    stopped: Stopped,
    wait: StallTimer,
    has_ended: bool,
}

/// Ready when the client takes no more, or has taken all.
struct Stopped(Option<Pin<Box<dyn Future<Output = ()>>>>);

impl Stopped {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.0 else { return Poll::Ready(()) };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Reply {
    /// `limit`: how long the client may give no room.
    pub fn new(stream: SendStream, limit: Duration) -> Self {
        let stopped = stream.stopped();
        let stopped = Stopped(Some(Box::pin(async { drop(stopped.await) })));
        Self { stream, stopped, wait: StallTimer::new(limit), has_ended: false }
    }

    /// Ready when the client wants no response any more.
    pub fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stopped.poll(context)
    }

    /// Tells the client why there is no response, or no more of it.
    pub fn reset(mut self, code: VarInt) {
        self.has_ended = true;
        // An error says that the client has ended it.
        let _ = self.stream.reset(code);
    }

    /// Sends a body to its end, and with it that of the stream. `length`: what the client was told.
    pub async fn send<B>(&mut self, body: B, length: Option<u64>) -> Result<(), Unsent>
    where
        B: Body<Data = Bytes, Error = io::Error>,
    {
        let (mut body, mut owed) = (pin!(body), Owed::new(length));
        while let Some(frame) = self.next_frame(body.as_mut()).await? {
            match frame.into_data() {
                Ok(data) => {
                    owed.take(data.len()).map_err(Unsent::Failed)?;
                    self.write_data(data).await?;
                }
                Err(frame) => {
                    owed.check_whole().map_err(Unsent::Failed)?;
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    drop_connection_fields(&mut trailers);
                    self.write(fields::response_trailers(&trailers).into()).await?;
                    return self.finish();
                }
            }
        }
        owed.check_whole().map_err(Unsent::Failed)?;
        self.finish()
    }

    /// A client that has left must not keep a script.
    async fn next_frame<B>(&mut self, mut body: Pin<&mut B>) -> Result<Option<Frame<Bytes>>, Unsent>
    where
        B: Body<Data = Bytes, Error = io::Error>,
    {
        poll_fn(|context| {
            if self.poll_stopped(context).is_ready() {
                return Poll::Ready(Err(Unsent::Reset));
            }
            body.as_mut().poll_frame(context).map(|frame| frame.transpose().map_err(Unsent::Failed))
        })
        .await
    }

    async fn write_data(&mut self, data: Bytes) -> Result<(), Unsent> {
        if data.is_empty() {
            return Ok(());
        }
        let mut head = Vec::with_capacity(9);
        frames::write_head(frames::DATA, data.len(), &mut head);
        self.write_all(&mut [head.into(), data]).await
    }

    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Unsent> {
        self.write_all(&mut [bytes]).await
    }

    async fn write_all(&mut self, mut chunks: &mut [Bytes]) -> Result<(), Unsent> {
        while !chunks.is_empty() {
            let Self { stream, wait, .. } = self;
            let written = poll_fn(|context| match pin!(stream.write_chunks(chunks)).poll(context) {
                Poll::Ready(written) => Poll::Ready(written.map_err(|_| Unsent::Reset)),
                Poll::Pending => wait.poll_expired(context).map(|()| Err(Unsent::Stalled)),
            });
            let whole = written.await?.chunks;
            wait.end();
            chunks = &mut chunks[whole..];
        }
        Ok(())
    }

    /// Takes bytes of frames. Ready when some were taken; those are gone from `chunks`.
    pub fn poll_write(&mut self, chunks: &mut [Bytes], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(pin!(self.stream.write_chunks(chunks)).poll(context));
        Poll::Ready(written.map(drop).map_err(io::Error::other))
    }

    /// Whether the end was said.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn finish(&mut self) -> Result<(), Unsent> {
        self.has_ended = true;
        self.stream.finish().map_err(|_| Unsent::Reset)
    }

    /// Ends when the client has all of it, or wants no more: before, the connection must not be closed. A client may be slow, but not
    /// silent.
    pub async fn delivered(mut self, connection: &Connection) {
        let mut heard = heard(connection);
        while timeout(LINGER, poll_fn(|context| self.poll_stopped(context))).await.is_err() {
            let now = self::heard(connection);
            if now == heard {
                return;
            }
            heard = now;
        }
    }
}

/// Acknowledgements that have come.
fn heard(connection: &Connection) -> u64 {
    connection.stats().frame_rx.acks
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.stream.reset(code::INTERNAL_ERROR);
        }
    }
}
