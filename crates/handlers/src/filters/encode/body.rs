//! A body that is encoded while it is sent.
//!
//! The first 64 KiB are encoded where the body is polled, as most responses are no longer (less with formats that take
//! long, see [`inline_limit`]). The rest is encoded piece by piece on the runtime's blocking threads, as many at once as there
//! are cores, so that the other connections of the I/O thread go on: one piece of a body at a time, and the next one when the
//! client has taken what came of it. When the client leaves, the body is dropped: a piece that waits for its turn is given up,
//! one that is being encoded is thrown away when it is done.

use super::budget::Reserved;
use super::encoder::Encoder;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use regent_config::EncodeFormat;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Bytes that are encoded in one go.
const PIECE: usize = 32 * 1024;
/// The longest frame of encoded bytes; shorter ones are gathered unless they are flushed.
const FRAME: usize = 32 * 1024;
/// Bytes of a body that are encoded on the I/O thread. By format, so that its other connections wait for two milliseconds at
/// most: measured with 64 KiB of documentation, brotli takes 0.5 ms at level 4, 10 to 15 ms from level 5 on and 30 ms at 11
/// (of 4 KiB, 2 to 3 ms), zstd 1.3 ms at its best.
const fn inline_limit(format: EncodeFormat) -> u64 {
    match format {
        EncodeFormat::Brotli { level: 11.. } => 1024,
        EncodeFormat::Brotli { level: 5.. } => 4 * 1024,
        EncodeFormat::Brotli { .. } | EncodeFormat::Zstd { .. } | EncodeFormat::Gzip { .. } => 64 * 1024,
    }
}

/// The encoded form of `B`. It has the trailers of `B`. An error of `B` is one of this body, and the encoded stream then
/// has no end, so that no client takes it for complete.
pub(crate) struct EncodedBody<B> {
    inner: B,
    inner_state: InnerState,
    settings: Settings,
    work: Work,
    /// Bytes of the last frame that are not gathered yet.
    rest: Bytes,
    /// The next piece for the encoder.
    piece: Vec<u8>,
    /// Bytes that the encoder has been given.
    encoded: u64,
    /// Whether the encoder may hold bytes that the client waits for.
    is_unflushed: bool,
    output: BytesMut,
    /// Whether `output` is to be sent although it is less than a frame.
    is_urgent: bool,
    /// The client has had a chance to get what came before a failure.
    has_paused: bool,
    /// Given back when it is dropped.
    reserved: Option<Reserved>,
}

#[derive(Clone, Copy)]
struct Settings {
    format: EncodeFormat,
    length: Option<u64>,
    flushing: Flushing,
}

/// When the client is to have all that was given so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushing {
    /// When nothing more comes at the moment.
    OnPause,
    /// After each frame: `text/event-stream`.
    EachFrame,
}

enum InnerState {
    Open,
    Ended(Option<HeaderMap>),
    Failed(io::Error),
}

/// Where the encoder is.
enum Work {
    /// `None`: there was nothing to encode yet.
    Idle(Option<Box<Encoder>>),
    Away(Task),
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Encode,
    Flush,
    Finish,
}

/// What there is to encode.
enum Gathered {
    Piece(Operation),
    /// Nothing, and nothing to flush.
    Nothing,
}

/// A piece that is being encoded elsewhere. What waits for a thread is given up when this is dropped.
struct Task(JoinHandle<io::Result<Encoded>>);

/// What comes of one piece.
struct Encoded {
    /// `None` after [`Operation::Finish`].
    encoder: Option<Box<Encoder>>,
    output: Vec<u8>,
    /// The piece's memory, emptied.
    piece: Vec<u8>,
    operation: Operation,
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> EncodedBody<B> {
    pub(crate) fn new(inner: B, format: EncodeFormat, flushing: Flushing) -> Self {
        let length = inner.size_hint().exact();
        Self {
            inner,
            inner_state: InnerState::Open,
            settings: Settings { format, length, flushing },
            work: Work::Idle(None),
            rest: Bytes::new(),
            piece: Vec::new(),
            encoded: 0,
            is_unflushed: false,
            output: BytesMut::new(),
            is_urgent: false,
            has_paused: false,
            reserved: None,
        }
    }

    /// Gives this back when it is dropped.
    pub(crate) fn holding(self, reserved: Reserved) -> Self {
        Self { reserved: Some(reserved), ..self }
    }

    /// Encodes a body at once that is short and all there; otherwise gives it back.
    pub(crate) fn whole(mut self: Box<Self>) -> Result<Bytes, Box<Self>> {
        if self.settings.length.is_none_or(|length| length > inline_limit(self.settings.format)) {
            return Err(self);
        }
        let mut cx = Context::from_waker(Waker::noop());
        // The waker is not lost: whoever gets the body back polls it again.
        while matches!(self.inner_state, InnerState::Open) && self.poll_inner(&mut cx).is_ready() {
            self.piece.extend_from_slice(&std::mem::take(&mut self.rest));
        }
        if !matches!(self.inner_state, InnerState::Ended(None)) {
            return Err(self);
        }
        match encode(self.settings, None, std::mem::take(&mut self.piece), Operation::Finish) {
            Ok(encoded) => Ok(encoded.output.into()),
            Err(error) => {
                self.inner_state = InnerState::Failed(error);
                Err(self)
            }
        }
    }

    /// Takes one frame into `rest`, or notes how the inner body ended.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.inner.is_end_stream() {
            // Who makes it may go on working, and end it much later.
            self.inner_state = InnerState::Ended(None);
            return Poll::Ready(());
        }
        self.inner_state = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            None => InnerState::Ended(None),
            Some(Err(error)) => InnerState::Failed(error),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    InnerState::Open
                }
                Err(frame) => InnerState::Ended(frame.into_trailers().ok()),
            },
        };
        Poll::Ready(())
    }

    /// Collects a piece for the encoder, as long as there is more at once.
    fn gather(&mut self, cx: &mut Context<'_>) -> io::Result<Gathered> {
        loop {
            let fitting = self.rest.len().min(PIECE.saturating_sub(self.piece.len()));
            self.piece.extend_from_slice(&self.rest.split_to(fitting));
            if self.piece.len() >= PIECE {
                return Ok(Gathered::Piece(Operation::Encode));
            }
            if self.settings.flushing == Flushing::EachFrame && !self.piece.is_empty() {
                return Ok(Gathered::Piece(Operation::Flush));
            }
            match &mut self.inner_state {
                InnerState::Open => {}
                InnerState::Ended(_) => return Ok(Gathered::Piece(Operation::Finish)),
                // What came before the failure is for the client.
                InnerState::Failed(_) if self.is_unflushed || !self.piece.is_empty() => {
                    return Ok(Gathered::Piece(Operation::Flush));
                }
                InnerState::Failed(error) => {
                    return Err(std::mem::replace(error, io::Error::other("the body has failed")));
                }
            }
            if self.poll_inner(cx).is_pending() {
                let has_something = self.is_unflushed || !self.piece.is_empty();
                return Ok(if has_something { Gathered::Piece(Operation::Flush) } else { Gathered::Nothing });
            }
        }
    }

    /// Encodes the piece, here or elsewhere.
    fn start(&mut self, encoder: Option<Box<Encoder>>, operation: Operation) -> io::Result<()> {
        let (settings, piece) = (self.settings, std::mem::take(&mut self.piece));
        self.encoded += piece.len() as u64;
        let most = inline_limit(settings.format);
        let is_long = self.encoded > most || settings.length.is_some_and(|length| length > most);
        match Handle::try_current() {
            Ok(runtime) if is_long => {
                let turns = self.reserved.as_ref().map(Reserved::turns);
                let work = move || encode(settings, encoder, piece, operation);
                self.work = Work::Away(Task(begin_elsewhere(&runtime, turns, work)));
                Ok(())
            }
            _ => {
                let encoded = encode(settings, encoder, piece, operation)?;
                self.take_back(encoded);
                Ok(())
            }
        }
    }

    fn take_back(&mut self, encoded: Encoded) {
        let Encoded { encoder, output, piece, operation } = encoded;
        self.output.extend_from_slice(&output);
        self.piece = piece;
        self.is_unflushed = operation == Operation::Encode;
        self.is_urgent |= operation != Operation::Encode;
        self.work = if operation == Operation::Finish { Work::Done } else { Work::Idle(encoder) };
    }

    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        let is_due = self.output.len() >= FRAME || self.is_urgent;
        if !is_due || self.output.is_empty() {
            self.is_urgent = false;
            return None;
        }
        let length = self.output.len().min(FRAME);
        Some(Frame::data(self.output.split_to(length).freeze()))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut has_worked = false;
        loop {
            if let Work::Away(task) = &mut self.work {
                let encoded = ready!(Pin::new(&mut task.0).poll(cx)).map_err(io::Error::other)??;
                self.take_back(encoded);
            }
            if let Some(frame) = self.next_frame() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let encoder = match &mut self.work {
                Work::Done => {
                    return Poll::Ready(self.take_trailers().map(|trailers| Ok(Frame::trailers(trailers))));
                }
                Work::Idle(_) if has_worked => {
                    // The other connections of the thread come first.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Work::Idle(encoder) => encoder.take(),
                Work::Away(_) => return Poll::Pending,
            };
            match self.gather(cx) {
                Ok(Gathered::Piece(operation)) => self.start(encoder, operation)?,
                Ok(Gathered::Nothing) => {
                    self.work = Work::Idle(encoder);
                    return Poll::Pending;
                }
                // hyper drops what it has not sent yet, the head too, when a body fails; while one is waited for, it sends.
                Err(error) if !self.has_paused => {
                    self.has_paused = true;
                    self.inner_state = InnerState::Failed(error);
                    self.work = Work::Idle(encoder);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            has_worked = !matches!(self.work, Work::Away(_));
        }
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        match &mut self.inner_state {
            InnerState::Ended(trailers) => trailers.take(),
            InnerState::Open | InnerState::Failed(_) => None,
        }
    }
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> Body for EncodedBody<B> {
    type Data = Bytes;
    type Error = io::Error;

    /// After an error nothing follows.
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let polled = this.poll_next(cx);
        if let Poll::Ready(Some(Err(_))) = &polled {
            this.work = Work::Done;
            this.inner_state = InnerState::Ended(None);
            this.output.clear();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        matches!((&self.work, &self.inner_state), (Work::Done, InnerState::Ended(None)))
            && self.output.is_empty()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// On a thread for work that blocks, when it is its turn. `turns`: `None`: at once.
fn begin_elsewhere(
    runtime: &Handle,
    turns: Option<Arc<Semaphore>>,
    work: impl FnOnce() -> io::Result<Encoded> + Send + 'static,
) -> JoinHandle<io::Result<Encoded>> {
    let Some(turns) = turns else { return runtime.spawn_blocking(work) };
    // The turn ends when the work is done, also if the client has left by then.
    let take = |turn: OwnedSemaphorePermit| {
        move || {
            let done = work();
            drop(turn);
            done
        }
    };
    match Arc::clone(&turns).try_acquire_owned() {
        Ok(turn) => runtime.spawn_blocking(take(turn)),
        Err(_) => runtime.spawn(async move {
            let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
            tokio::task::spawn_blocking(take(turn)).await.map_err(io::Error::other)?
        }),
    }
}

/// `encoder`: `None` before the first piece.
fn encode(
    settings: Settings,
    encoder: Option<Box<Encoder>>,
    mut piece: Vec<u8>,
    operation: Operation,
) -> io::Result<Encoded> {
    let mut encoder = match encoder {
        Some(encoder) => encoder,
        None => Box::new(Encoder::new(settings.format, settings.length)?),
    };
    encoder.write(&piece)?;
    piece.clear();
    let (encoder, output) = match operation {
        Operation::Encode => {
            let output = encoder.take();
            (Some(encoder), output)
        }
        Operation::Flush => {
            encoder.flush()?;
            let output = encoder.take();
            (Some(encoder), output)
        }
        Operation::Finish => (None, encoder.finish()?),
    };
    Ok(Encoded { encoder, output, piece, operation })
}

#[cfg(test)]
mod tests;
