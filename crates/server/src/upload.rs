//! A request body on its way into an engine: a prefix before the request is queued, the rest while it runs.

use crate::io_thread::Submitted;
use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use hyper::body::Incoming;
use regent_wire::BodyState;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// Bounds on a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Longest time without a byte.
    pub silence: Duration,
    /// Bytes in all.
    pub size: Option<u64>,
}

/// What was read before the request was queued.
pub(crate) struct Prefix {
    pub bytes: Bytes,
    /// It is all there is.
    pub complete: bool,
}

/// A body that is being read.
pub(crate) struct Upload {
    body: Incoming,
    limits: BodyLimits,
    received: Rc<Cell<u64>>,
    prefix: Prefix,
    /// Read from the client, not yet taken by the ring.
    pending: Bytes,
    state: State,
    /// Armed only while the client is awaited.
    silence: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// The client has sent all; the ring has not taken all.
    Flushing,
    Done,
}

impl Upload {
    /// `received` counts the bytes. An error is the status to answer with; the request then never reaches PHP.
    pub fn new(body: Incoming, limits: BodyLimits, received: Rc<Cell<u64>>) -> Result<Self, StatusCode> {
        let announced = body.size_hint().lower();
        if limits.size.is_some_and(|limit| announced > limit) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let state = if body.is_end_stream() { State::Done } else { State::Reading };
        Ok(Self {
            body,
            limits,
            received,
            prefix: Prefix { bytes: Bytes::new(), complete: true },
            pending: Bytes::new(),
            state,
            silence: None,
        })
    }

    /// Reads the body until it ends or `enough` bytes are there. Errors as in [`Upload::new`].
    pub async fn read_prefix(&mut self, enough: usize) -> Result<(), StatusCode> {
        if self.state == State::Done {
            return Ok(());
        }
        let mut bytes = BytesMut::new();
        while bytes.len() < enough {
            match poll_fn(|context| self.poll_chunk(context)).await? {
                Some(chunk) if bytes.is_empty() && chunk.len() <= enough && self.body.is_end_stream() => {
                    self.prefix.bytes = chunk;
                    self.state = State::Done;
                    return Ok(());
                }
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => {
                    self.prefix.bytes = bytes.freeze();
                    self.state = State::Done;
                    return Ok(());
                }
            }
        }
        // The last chunk may reach beyond the ring.
        self.pending = bytes.split_off(enough).freeze();
        self.prefix = Prefix { bytes: bytes.freeze(), complete: false };
        Ok(())
    }

    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// Moves what can be moved from the client to the engine. An error is the status to answer with.
    pub fn poll_pump(&mut self, context: &mut Context<'_>, to: &Submitted) -> Result<(), StatusCode> {
        loop {
            // A response that is lost is noticed by who reads it.
            if !self.pending.is_empty() {
                let taken = to.write_body(&self.pending).unwrap_or(self.pending.len());
                self.pending.advance(taken);
                if !self.pending.is_empty() {
                    to.wake_on_news(context);
                    return Ok(());
                }
            }
            match self.state {
                State::Done => return Ok(()),
                State::Flushing => {
                    self.state = State::Done;
                    let _ = to.end_body(BodyState::Complete);
                    return Ok(());
                }
                State::Reading => match self.poll_chunk(context) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Ok(Some(bytes))) => self.pending = bytes,
                    Poll::Ready(Ok(None)) => self.state = State::Flushing,
                    Poll::Ready(Err(status)) => {
                        self.state = State::Done;
                        let _ = to.end_body(BodyState::Broken);
                        return Err(status);
                    }
                },
            }
        }
    }

    /// The next bytes from the client; `None` at the end of a body that came whole.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StatusCode>> {
        loop {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                // Cut off, or wrongly coded.
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(StatusCode::BAD_REQUEST)),
                Poll::Ready(Some(Ok(frame))) => {
                    self.silence = None;
                    // Trailers are not for PHP.
                    let Ok(bytes) = frame.into_data() else { continue };
                    self.received.set(self.received.get() + bytes.len() as u64);
                    if self.limits.size.is_some_and(|limit| self.received.get() > limit) {
                        return Poll::Ready(Err(StatusCode::PAYLOAD_TOO_LARGE));
                    }
                    return Poll::Ready(Ok(Some(bytes)));
                }
                Poll::Pending => {
                    let limit = self.limits.silence;
                    let sleep = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
                    ready!(sleep.as_mut().poll(context));
                    return Poll::Ready(Err(StatusCode::REQUEST_TIMEOUT));
                }
            }
        }
    }
}
