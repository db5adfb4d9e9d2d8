//! A request body on its way into an engine: what is read before the request is queued, and the rest while it runs.

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::Body;
use regent_config::RequestBuffering;
use regent_engines::Submitted;
use regent_exchange::{BodyLimits, Informational, Pace, RequestBody};
use regent_spool::{Block, Offered, Share, SpoolReader, SpoolWriter, Spools, spool};
use regent_wire::BodyState;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes of a body that go into the spool at a time: what arrives in small pieces is put together, so that its memory is
/// what the bounds say and its file is written in large ones.
const BLOCK: usize = 64 * 1024;

/// What of a body goes into the ring before the request is queued.
#[derive(Default)]
pub(crate) struct Prefix {
    pub bytes: Bytes,
    /// It is all there is.
    pub complete: bool,
    /// What the bytes take of the memory of all bodies; nothing if they came in one piece.
    _memory: Option<Share>,
}

impl Prefix {
    /// Of a request without a body.
    pub const EMPTY: Self = Self { bytes: Bytes::new(), complete: true, _memory: None };
}

/// A body that is being read.
pub(crate) struct Upload {
    body: RequestBody,
    limits: BodyLimits,
    received: Rc<Cell<u64>>,
    client: Rc<dyn Informational>,
    /// Bytes of the body, if the client has said so.
    announced: Option<u64>,
    prefix: Prefix,
    /// On its way into the ring.
    pending: Bytes,
    ahead: Ahead,
    state: State,
    pace: Pace,
}

/// What was read before the request was queued and is more than the ring holds.
#[derive(Default)]
struct Ahead {
    spooled: Option<SpoolReader>,
    /// Follows what is spooled: an unfinished block, or what the spool had no room for.
    rest: VecDeque<Bytes>,
    /// What `rest` takes of the memory of all bodies.
    memory: Option<Share>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// The client has sent all; the ring has not taken all.
    Received,
    Done,
}

impl Prefix {
    fn of(block: Block) -> Self {
        let (bytes, memory) = block.into_parts();
        Self { bytes, complete: false, _memory: Some(memory) }
    }
}

impl Ahead {
    fn keep(&mut self, rest: impl IntoIterator<Item = Bytes>, mut memory: Share) {
        self.rest = rest.into_iter().filter(|bytes| !bytes.is_empty()).collect();
        memory.take_anyway(self.rest.iter().map(|bytes| bytes.len() as u64).sum());
        self.memory = Some(memory);
    }
}

impl Upload {
    /// `None`: there is no body. `received` counts the bytes. An error is the status to answer with; the request then
    /// never reaches an engine.
    pub fn of(
        body: RequestBody,
        limits: BodyLimits,
        received: &Rc<Cell<u64>>,
        client: &Rc<dyn Informational>,
    ) -> Result<Option<Box<Self>>, StatusCode> {
        if body.is_end_stream() {
            return Ok(None);
        }
        let hint = body.size_hint();
        if limits.size.is_some_and(|limit| hint.lower() > limit) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        Ok(Some(Box::new(Self {
            announced: hint.exact(),
            body,
            limits,
            received: Rc::clone(received),
            client: Rc::clone(client),
            prefix: Prefix::default(),
            pending: Bytes::new(),
            ahead: Ahead::default(),
            state: State::Reading,
            pace: Pace::default(),
        })))
    }

    /// Reads what the request has to wait for: of a body that is buffered, all of it, or as much as the spool holds.
    /// `ring`: bytes that go into the ring and need no spool.
    ///
    /// Errors as in [`Upload::of`]. That of a disk which fails is 507 (RFC 4918 §11.5), to tell it from the 503 of a
    /// server that is busy: a proxy would try that again elsewhere, and an operator look for load.
    pub async fn read_ahead(
        &mut self,
        buffering: RequestBuffering,
        ring: usize,
        spools: &Arc<Spools>,
    ) -> Result<(), StatusCode> {
        if buffering == RequestBuffering::Streaming {
            return Ok(());
        }
        self.read_prefix(ring, spools).await?;
        if self.state == State::Reading {
            let (writer, reader) = spool(spools, VecDeque::new());
            self.read_into(&writer, spools).await?;
            self.ahead.spooled = Some(reader);
            writer.end(Ok(()));
        }
        Ok(())
    }

    /// To be put into the ring before anything else is.
    pub fn take_prefix(&mut self) -> Prefix {
        mem::take(&mut self.prefix)
    }

    /// Bytes of the whole body, as the client has said or sent; `None` while neither is known.
    pub fn length(&self) -> Option<u64> {
        match self.state {
            State::Reading => self.announced,
            State::Received | State::Done => Some(self.received.get()),
        }
    }

    /// Moves what can be moved from the client to the engine. An error is the status to answer with.
    pub fn poll_pump(&mut self, context: &mut Context<'_>, to: &Submitted) -> Result<(), StatusCode> {
        while self.state != State::Done {
            // A response that is lost is noticed by who reads it.
            if !self.pending.is_empty() {
                let taken = to.write_body(&self.pending).unwrap_or(self.pending.len());
                self.pending.advance(taken);
                if !self.pending.is_empty() {
                    to.wake_on_news(context);
                    return Ok(());
                }
            }
            match self.poll_next(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(Some(bytes))) => self.pending = bytes,
                Poll::Ready(Ok(None)) => {
                    self.state = State::Done;
                    let _ = to.end_body(BodyState::Complete);
                }
                Poll::Ready(Err(status)) => {
                    self.state = State::Done;
                    let _ = to.end_body(BodyState::Broken);
                    return Err(status);
                }
            }
        }
        Ok(())
    }

    /// [`Self::poll_pump`] will not be called for a while: that is not the client's time.
    pub fn pause(&mut self) {
        self.pace.pause();
    }

    /// Reads the body until it ends, or more than `enough` bytes are there, or no memory is.
    async fn read_prefix(&mut self, enough: usize, spools: &Spools) -> Result<(), StatusCode> {
        let mut block = Block::new(enough, spools);
        while let Some(mut chunk) = poll_fn(|context| self.poll_chunk(context)).await? {
            if block.is_empty() && chunk.len() <= enough && self.body.is_end_stream() {
                self.prefix = Prefix { bytes: chunk, complete: true, _memory: None };
                self.state = State::Done;
                return Ok(());
            }
            if !block.fill(&mut chunk) {
                self.pending = chunk;
                self.prefix = Prefix::of(block);
                return Ok(());
            }
        }
        self.prefix = Prefix { complete: true, ..Prefix::of(block) };
        self.state = State::Done;
        Ok(())
    }

    /// Reads the body into a spool until it ends or the spool is full; what comes after the spooled is kept.
    async fn read_into(&mut self, writer: &SpoolWriter, spools: &Spools) -> Result<(), StatusCode> {
        let mut block = Block::new(BLOCK, spools);
        let mut chunk = mem::take(&mut self.pending);
        loop {
            while !block.fill(&mut chunk) {
                let full = block.pass_on().unwrap_or_else(|| mem::take(&mut chunk));
                match writer.offer(full).await {
                    Ok(Offered::Taken) => {}
                    Ok(Offered::Full(refused)) => {
                        self.ahead.keep([refused, chunk], spools.all_memory.share());
                        return Ok(());
                    }
                    Err(_) => return Err(StatusCode::INSUFFICIENT_STORAGE),
                }
            }
            match poll_fn(|context| self.poll_chunk(context)).await? {
                Some(next) => chunk = next,
                None => {
                    self.state = State::Received;
                    self.ahead.keep(block.pass_on(), spools.all_memory.share());
                    return Ok(());
                }
            }
        }
    }

    /// The next bytes for the ring: what was read ahead, and then what comes from the client.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StatusCode>> {
        if let Some(reader) = &mut self.ahead.spooled {
            match ready!(reader.poll_chunk(context)) {
                Some(result) => {
                    return Poll::Ready(result.map(Some).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR));
                }
                None => self.ahead.spooled = None,
            }
        }
        if let Some(bytes) = self.ahead.rest.pop_front() {
            return Poll::Ready(Ok(Some(bytes)));
        }
        self.ahead.memory = None;
        match self.state {
            State::Reading => self.poll_chunk(context),
            State::Received | State::Done => Poll::Ready(Ok(None)),
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
                    self.pace.came();
                    let Ok(bytes) = frame.into_data() else {
                        // Trailers are not for engines. hyper lets them end at an empty line of a bare LF and throws away
                        // what came with that, where another server sees the next request.
                        self.client.close_connection();
                        continue;
                    };
                    self.received.set(self.received.get() + bytes.len() as u64);
                    if self.limits.size.is_some_and(|limit| self.received.get() > limit) {
                        return Poll::Ready(Err(StatusCode::PAYLOAD_TOO_LARGE));
                    }
                    return Poll::Ready(Ok(Some(bytes)));
                }
                Poll::Pending => {
                    ready!(self.pace.poll_expired(&self.limits.patience, self.received.get(), context));
                    return Poll::Ready(Err(StatusCode::REQUEST_TIMEOUT));
                }
            }
        }
    }
}
