//! A request's way through PHP: its body in, its answer out.

use crate::answer::{Answer, Streamed, plain};
use crate::io_thread::{IoThread, Refused, Submitted};
use crate::response::{Collected, ResponseHeader};
use crate::upload::{BodyLimits, Prefix, Upload};
use crate::variables::{Peer, Variables};
use http::{Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use regent_handlers::{Exchange, PhpTarget};
use regent_wire::{BodyState, Completion, Frame, LogLine, ReadError, SubmitError};
use std::cell::Cell;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// What requests to PHP need on an I/O thread.
pub(crate) struct PhpGateway {
    io: Rc<IoThread>,
    variables: Variables,
    limits: PhpLimits,
    /// Requests that PHP did not answer.
    unanswered: Cell<u64>,
}

/// Bounds on every request to PHP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhpLimits {
    /// Longest silence within a request body.
    pub read_body: Duration,
    /// Bytes of a request body.
    pub max_body_size: Option<u64>,
    /// Longest time in the queue.
    pub max_wait_time: Option<Duration>,
}

/// What a log line of PHP says about the request that it came from.
pub(crate) struct Origin {
    script: String,
    method: String,
    uri: String,
}

impl PhpGateway {
    pub fn new(io: Rc<IoThread>, limits: PhpLimits) -> Self {
        Self { io, variables: Variables::new(), limits, unanswered: Cell::new(0) }
    }

    /// Runs the request. Whatever goes wrong becomes an answer. `received` counts the bytes of the body.
    pub async fn run(
        &self,
        exchange: &Exchange,
        target: &PhpTarget,
        peer: &Peer,
        body: Incoming,
        received: &Rc<Cell<u64>>,
    ) -> Response<Answer> {
        let limits = BodyLimits {
            silence: target.request_body_timeout.unwrap_or(self.limits.read_body),
            size: exchange.max_body_size.or(self.limits.max_body_size),
        };
        let length = body.size_hint().exact();
        let mut upload = match Upload::new(body, limits, Rc::clone(received)) {
            Ok(upload) => upload,
            Err(status) => return self.failure(&Failure::Upload(status)),
        };
        if let Err(status) = upload.read_prefix(self.prefix_size()).await {
            return self.failure(&Failure::Upload(status));
        }
        let submitted = match self.queue(exchange, target, peer, length, upload.prefix()) {
            Ok(submitted) => submitted,
            Err(refused) => return self.refusal(refused),
        };
        let mut collected = Collected::default();
        let first = {
            let frames = self.first_frames(&submitted, &mut upload, &mut collected, exchange, target);
            self.within_wait_time(&submitted, pin!(frames)).await
        };
        if let Err(failure) = first {
            return self.failure(&failure);
        }
        self.answer(collected, submitted, upload, || Origin::new(exchange, target))
    }

    /// A body up to this size is complete before PHP sees the request, so that no slow client holds a thread for it.
    fn prefix_size(&self) -> usize {
        self.io.request_capacity()
    }

    fn queue(
        &self,
        exchange: &Exchange,
        target: &PhpTarget,
        peer: &Peer,
        length: Option<u64>,
        prefix: &Prefix,
    ) -> Result<Submitted, Refused> {
        // A chunked body that is complete already has a length that PHP may know.
        let length = if prefix.complete { Some(prefix.bytes.len() as u64) } else { length };
        let write = |head: &mut _| self.variables.write(head, exchange, target, peer, length);
        let submitted = self.io.acquire(length, write)?;
        let damaged = |_: ReadError| Refused::Submit(SubmitError::Corrupt);
        submitted.write_body(&prefix.bytes).map_err(damaged)?;
        if prefix.complete {
            submitted.end_body(BodyState::Complete).map_err(damaged)?;
        }
        submitted.submit(target.worker.map_or(0, |worker| usize::from(worker.0) + 1))?;
        Ok(submitted)
    }

    /// The answer of what has come: whole, or streamed as the rest of it comes.
    fn answer(
        &self,
        collected: Collected,
        submitted: Submitted,
        upload: Upload,
        origin: impl FnOnce() -> Origin,
    ) -> Response<Answer> {
        let Collected { head, body, completion } = collected;
        let Some(head) = head else { return self.failure(&Failure::Engine(ReadError::Lost)) };
        let body = match completion {
            None => Answer::Streamed(Streamed::start(submitted, upload, body, origin())),
            Some(completion) => {
                submitted.finish();
                match completion {
                    // A head alone, and then the end of the script: nothing is known to be missing.
                    Completion::Complete => Answer::whole(body),
                    Completion::Truncated => Answer::Streamed(Streamed::broken(body)),
                }
            }
        };
        head.into_response(body)
    }

    /// Reads up to the head and what is there behind it, while the rest of the request body goes in.
    async fn first_frames(
        &self,
        submitted: &Submitted,
        upload: &mut Upload,
        collected: &mut Collected,
        exchange: &Exchange,
        target: &PhpTarget,
    ) -> Result<(), Failure> {
        poll_fn(|context| {
            if let Err(status) = upload.poll_pump(context, submitted) {
                return Poll::Ready(Err(Failure::Upload(status)));
            }
            loop {
                match submitted.try_frame() {
                    Ok(Some(Frame::Head(frame))) => collected.head = Some(ResponseHeader::new(&frame)),
                    Ok(Some(Frame::Body(bytes))) => collected.body.push_back(bytes),
                    Ok(Some(Frame::End(completion))) => collected.completion = Some(completion),
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
                if collected.completion.is_some() {
                    break;
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Gives up when the request has not left the queue in time.
    async fn within_wait_time(
        &self,
        submitted: &Submitted,
        mut first: Pin<&mut impl Future<Output = Result<(), Failure>>>,
    ) -> Result<(), Failure> {
        let Some(limit) = self.limits.max_wait_time else { return first.await };
        match tokio::time::timeout(limit, first.as_mut()).await {
            Ok(result) => result,
            Err(_) if submitted.is_queued() => Err(Failure::WaitTime),
            Err(_) => first.await,
        }
    }

    fn refusal(&self, refused: Refused) -> Response<Answer> {
        self.note_unanswered(&refused);
        match refused {
            Refused::NoSlot | Refused::Submit(SubmitError::QueueFull) => unavailable(),
            Refused::Submit(SubmitError::HeadTooLarge) => {
                plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &[])
            }
            Refused::Submit(SubmitError::Corrupt) => plain(StatusCode::BAD_GATEWAY, &[]),
        }
    }

    fn failure(&self, failure: &Failure) -> Response<Answer> {
        match failure {
            Failure::Engine(error) => {
                self.note_unanswered(error);
                plain(StatusCode::BAD_GATEWAY, &[])
            }
            Failure::Upload(status) => plain(*status, &[(header::CONNECTION, "close")]),
            Failure::WaitTime => {
                self.note_unanswered(&"it waited longer than max_wait_time for a thread");
                unavailable()
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

fn unavailable() -> Response<Answer> {
    plain(StatusCode::SERVICE_UNAVAILABLE, &[(header::RETRY_AFTER, "1")])
}

/// Why there is no answer of PHP's.
enum Failure {
    Engine(ReadError),
    Upload(StatusCode),
    WaitTime,
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
