//! A request's way through PHP: its body in, its answer out.

use crate::answer::{Answer, Script, Streamed, plain};
use crate::gate::{Entering, Gate, Passage, Shed};
use crate::io_thread::{IoThread, Refused, Submitted};
use crate::response::{Collected, ResponseHeader};
use crate::spool::Spools;
use crate::upload::{BodyLimits, Prefix, Upload};
use crate::variables::{Peer, Variables};
use http::{Response, StatusCode, header};
use hyper::body::Incoming;
use regent_dispatch::admission::Reason;
use regent_dispatch::lanes::Place;
use regent_handlers::{Exchange, PhpTarget};
use regent_wire::{BodyState, Completion, Frame, LogLine, ReadError, SubmitError};
use std::cell::Cell;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What requests to PHP need on an I/O thread.
pub(crate) struct PhpGateway {
    io: Rc<IoThread>,
    gate: Rc<Gate>,
    variables: Variables,
    limits: PhpLimits,
    spools: Arc<Spools>,
    /// Requests that PHP did not answer.
    unanswered: Cell<u64>,
}

/// Bounds on the body of every request to PHP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhpLimits {
    /// Longest silence within a request body.
    pub read_body: Duration,
    /// Bytes of a request body.
    pub max_body_size: Option<u64>,
}

/// What a log line of PHP says about the request that it came from.
pub(crate) struct Origin {
    script: String,
    method: String,
    uri: String,
}

/// What became of a request: its answer, and where its figures go when that has been sent.
pub(crate) type Answered = (Response<Answer>, Rc<Passage>);

impl PhpGateway {
    pub fn new(io: Rc<IoThread>, gate: Rc<Gate>, limits: PhpLimits, spools: Arc<Spools>) -> Self {
        Self { io, gate, variables: Variables::new(), limits, spools, unanswered: Cell::new(0) }
    }

    /// Runs the request. Whatever goes wrong becomes an answer. `received` counts the bytes of the body.
    pub async fn run(
        &self,
        exchange: &Exchange,
        target: &PhpTarget,
        peer: &Peer,
        body: Incoming,
        received: &Rc<Cell<u64>>,
    ) -> Answered {
        let pool = target.worker.map_or(0, |worker| usize::from(worker.0) + 1);
        let path = exchange.original_uri.path();
        let passage = self.gate.arrive(pool, path, target.lane.as_deref(), target.deadline);
        let response = match self.answer(exchange, target, peer, body, received, &passage).await {
            Ok(response) => response,
            Err(failure) => self.failure(&failure, &passage),
        };
        passage.answered(response.status().as_u16());
        (response, passage)
    }

    async fn answer(
        &self,
        exchange: &Exchange,
        target: &PhpTarget,
        peer: &Peer,
        body: Incoming,
        received: &Rc<Cell<u64>>,
        passage: &Rc<Passage>,
    ) -> Result<Response<Answer>, Failure> {
        let limits = BodyLimits {
            silence: target.request_body_timeout.unwrap_or(self.limits.read_body),
            size: exchange.max_body_size.or(self.limits.max_body_size),
        };
        let mut upload = Upload::of(body, limits, received).map_err(Failure::Upload)?;
        if let Some(upload) = &mut upload {
            // Boxed, as all that few requests need: what every request carries is little and stays in the cache.
            let ring = self.io.request_capacity();
            let read_ahead = Box::pin(upload.read_ahead(target.request_buffering, ring, &self.spools));
            read_ahead.await.map_err(Failure::Upload)?;
            passage.complete();
        }
        let place = match passage.enter() {
            Entering::Entered(place) => place,
            Entering::Waiting(turn) => turn.await.map_err(Failure::Shed)?,
        };
        passage.admit(|| self.io.queue(passage.pool())).map_err(Failure::Shed)?;
        let (prefix, length) = upload
            .as_mut()
            .map_or((Prefix::EMPTY, Some(0)), |upload| (upload.take_prefix(), upload.length()));
        let head = |head: &mut _| self.variables.write(head, exchange, target, peer, length);
        let submitted = self.io.acquire(length, head)?;
        queue(&submitted, &prefix, place, passage)?;
        let mut collected = Collected::default();
        let frames = self.first_frames(&submitted, &mut upload, &mut collected, exchange, target);
        within(passage, &submitted, pin!(frames)).await?;
        self.respond(collected, submitted, upload, passage, || Origin::new(exchange, target))
    }

    /// The answer of what has come: whole, or streamed as the rest of it comes.
    fn respond(
        &self,
        collected: Collected,
        submitted: Submitted,
        upload: Option<Box<Upload>>,
        passage: &Rc<Passage>,
        origin: impl FnOnce() -> Origin,
    ) -> Result<Response<Answer>, Failure> {
        let Collected { head, body, end } = collected;
        let head = head.ok_or(Failure::Engine(ReadError::Lost))?;
        let body = match end {
            None => {
                let script = Script { submitted, upload, origin: origin(), passage: Rc::clone(passage) };
                Answer::Streamed(Streamed::start(&self.spools, body, script))
            }
            Some(end) => {
                submitted.finish();
                end.timing.into_iter().for_each(|timing| passage.executed(timing));
                match end.completion {
                    // A head alone, and then the end of the script: nothing is known to be missing.
                    Completion::Complete => Answer::whole(body),
                    Completion::Truncated => Answer::Streamed(Streamed::broken(&self.spools, body)),
                }
            }
        };
        Ok(head.into_response(body))
    }

    /// Reads up to the head and what is there behind it, while the rest of the request body goes in.
    async fn first_frames(
        &self,
        submitted: &Submitted,
        upload: &mut Option<Box<Upload>>,
        collected: &mut Collected,
        exchange: &Exchange,
        target: &PhpTarget,
    ) -> Result<(), Failure> {
        poll_fn(|context| {
            if let Some(Err(status)) = upload.as_mut().map(|upload| upload.poll_pump(context, submitted)) {
                return Poll::Ready(Err(Failure::Upload(status)));
            }
            loop {
                match submitted.try_frame() {
                    Ok(Some(Frame::Head(frame))) => collected.head = Some(ResponseHeader::new(&frame)),
                    Ok(Some(Frame::Body(bytes))) => collected.body.push_back(bytes),
                    Ok(Some(Frame::End(end))) => collected.end = Some(end),
                    Ok(Some(Frame::Log(line))) => Origin::new(exchange, target).log(&line),
                    // hyper cannot send 1xx answers but 100, which it sends by itself.
                    Ok(Some(Frame::Informational(_))) => {}
                    Ok(None) if collected.head.is_some() => break,
                    Ok(None) => {
                        submitted.wake_on_news(context);
                        return Poll::Pending;
                    }
                    Err(error) => return Poll::Ready(Err(Failure::Engine(error))),
                }
                if collected.end.is_some() {
                    break;
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn failure(&self, failure: &Failure, passage: &Passage) -> Response<Answer> {
        match failure {
            Failure::Upload(status) => {
                passage.refused();
                plain(*status, &[(header::CONNECTION, "close")])
            }
            Failure::Shed(shed) => {
                passage.shed(shed.reason);
                self.note_unanswered(&shed.reason);
                unavailable(shed.retry_after)
            }
            Failure::Refused(refused) => {
                self.note_unanswered(refused);
                refusal(*refused, passage)
            }
            Failure::Engine(error) => {
                passage.lost();
                self.note_unanswered(error);
                plain(StatusCode::BAD_GATEWAY, &[])
            }
        }
    }

    /// A flood of refusals must not become a flood of log lines: the first ones and every thousandth are logged.
    fn note_unanswered(&self, reason: &dyn Display) {
        let count = self.unanswered.get() + 1;
        self.unanswered.set(count);
        if count <= 10 || count % 1000 == 0 {
            tracing::warn!(%reason, count, "a request was not answered by PHP");
        }
    }
}

fn queue(submitted: &Submitted, prefix: &Prefix, place: Place, passage: &Passage) -> Result<(), Refused> {
    submitted.keep(place);
    let damaged = |_: ReadError| Refused::Submit(SubmitError::Corrupt);
    submitted.write_body(&prefix.bytes).map_err(damaged)?;
    if prefix.complete {
        submitted.end_body(BodyState::Complete).map_err(damaged)?;
    }
    submitted.submit(passage.pool(), passage.ready())
}

/// Gives up when the request has not left the queue in time.
async fn within(
    passage: &Passage,
    submitted: &Submitted,
    mut first: Pin<&mut impl Future<Output = Result<(), Failure>>>,
) -> Result<(), Failure> {
    let Some((left, shed)) = passage.patience() else { return first.await };
    match Box::pin(tokio::time::timeout(left, first.as_mut())).await {
        Ok(result) => result,
        Err(_) if submitted.is_queued() => Err(Failure::Shed(shed)),
        Err(_) => first.await,
    }
}

fn refusal(refused: Refused, passage: &Passage) -> Response<Answer> {
    match refused {
        Refused::NoSlot | Refused::Submit(SubmitError::QueueFull) => {
            passage.shed(Reason::QueueFull);
            unavailable(Duration::from_secs(1))
        }
        Refused::Submit(SubmitError::HeadTooLarge) => {
            passage.refused();
            plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &[])
        }
        Refused::Submit(SubmitError::Corrupt) => {
            passage.lost();
            plain(StatusCode::BAD_GATEWAY, &[])
        }
    }
}

fn unavailable(retry_after: Duration) -> Response<Answer> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, &[]);
    response.headers_mut().insert(header::RETRY_AFTER, retry_after.as_secs().max(1).into());
    response
}

/// Why there is no answer of PHP's.
enum Failure {
    Upload(StatusCode),
    Shed(Shed),
    Refused(Refused),
    Engine(ReadError),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Origin {
    pub fn new(exchange: &Exchange, target: &PhpTarget) -> Self {
        Self {
            script: target.script_filename().display().to_string(),
            method: exchange.method.to_string(),
            uri: exchange.original_uri.to_string(),
        }
    }

    /// PHP's levels are syslog's.
    pub fn log(&self, line: &LogLine) {
        let message = String::from_utf8_lossy(&line.message);
        let context = String::from_utf8_lossy(&line.context);
        let Self { script, method, uri } = self;
        match line.level {
            0..=3 => tracing::error!(target: "php", script, method, uri, %context, "{message}"),
            4 => tracing::warn!(target: "php", script, method, uri, %context, "{message}"),
            5 | 6 => tracing::info!(target: "php", script, method, uri, %context, "{message}"),
            _ => tracing::debug!(target: "php", script, method, uri, %context, "{message}"),
        }
    }
}
