//! The body of a request on its way to an upstream.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use http_body::{Body, Frame, SizeHint};
use regent_exchange::{BodyError, BodyLimits, Informational, Pace, RequestBody};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;

/// A body that is read as the upstream takes it, within the limits of the route.
pub(crate) struct Upload {
    body: RequestBody,
    limits: BodyLimits,
    pace: Pace,
    progress: Rc<Progress>,
    client: Rc<dyn Informational>,
    /// Fields of the head: no trailer says otherwise.
    said: Vec<HeaderName>,
}

/// A body that cannot be read, with what the client is told.
#[derive(Debug, thiserror::Error)]
#[error("the request's body could not be read")]
struct Refused(StatusCode);

/// How far a body has come, for those who do not have it.
pub(crate) struct Progress {
    /// Bytes.
    received: Rc<Cell<u64>>,
    is_touched: Cell<bool>,
    is_done: Cell<bool>,
    done: Notify,
    /// What the client is told of a body that cannot be read.
    trouble: Cell<Option<StatusCode>>,
}

impl Progress {
    pub fn new(received: &Rc<Cell<u64>>) -> Rc<Self> {
        Rc::new(Self {
            received: Rc::clone(received),
            is_touched: Cell::new(false),
            is_done: Cell::new(false),
            done: Notify::new(),
            trouble: Cell::new(None),
        })
    }

    /// Whether something of it may have been sent.
    pub fn is_touched(&self) -> bool {
        self.is_touched.get()
    }

    /// Whether nothing of it is to come any more.
    pub fn is_done(&self) -> bool {
        self.is_done.get()
    }

    pub fn trouble(&self) -> Option<StatusCode> {
        self.trouble.get()
    }

    /// Ends when nothing of the body is to come any more.
    pub async fn done(&self) {
        let done = self.done.notified();
        if !self.is_done() {
            done.await;
        }
    }

    fn end(&self) {
        self.is_done.set(true);
        self.done.notify_waiters();
    }
}

impl Upload {
    /// An error is the status to answer with.
    pub fn new(
        body: RequestBody,
        limits: BodyLimits,
        progress: &Rc<Progress>,
        client: &Rc<dyn Informational>,
    ) -> Result<Self, StatusCode> {
        if limits.size.is_some_and(|limit| body.size_hint().lower() > limit) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if body.is_end_stream() {
            progress.end();
        }
        let (progress, client) = (Rc::clone(progress), Rc::clone(client));
        Ok(Self { body, limits, pace: Pace::default(), progress, client, said: Vec::new() })
    }

    /// Keeps out trailers that are in the head that goes before this body. Who a request is from may be said there, by the routes:
    /// a server that merges both would take the client's word for it (RFC 9110 §6.5.1).
    pub fn go_behind(&mut self, head: &HeaderMap) {
        if self.body.size_hint().exact().is_none() {
            self.said = head.keys().cloned().collect();
        }
    }

    fn fail(&mut self, status: StatusCode) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.progress.trouble.set(Some(status));
        self.progress.end();
        Poll::Ready(Some(Err(Refused(status).into())))
    }

    fn take(&mut self, mut frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.pace.came();
        match frame.data_ref() {
            Some(bytes) => {
                let received = &self.progress.received;
                received.set(received.get() + bytes.len() as u64);
                if self.limits.size.is_some_and(|limit| received.get() > limit) {
                    return self.fail(StatusCode::PAYLOAD_TOO_LARGE);
                }
            }
            // hyper lets trailers end at an empty line of a bare LF and throws away what came with that, where another
            // server sees the next request.
            None => {
                self.client.close_connection();
                let trailers = frame.trailers_mut();
                trailers
                    .into_iter()
                    .for_each(|fields| self.said.iter().for_each(|name| drop(fields.remove(name))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        this.progress.is_touched.set(true);
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(None) => {
                this.progress.end();
                Poll::Ready(None)
            }
            // Cut off, or wrongly coded, unless whoever has read it before knows better.
            Poll::Ready(Some(Err(error))) => {
                let known = error.downcast_ref().map(|Refused(status)| *status);
                this.fail(known.unwrap_or(StatusCode::BAD_REQUEST))
            }
            Poll::Ready(Some(Ok(frame))) => this.take(frame),
            Poll::Pending => {
                let received = this.progress.received.get();
                ready!(this.pace.poll_expired(&this.limits.patience, received, context));
                this.fail(StatusCode::REQUEST_TIMEOUT)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Upload {
    /// Whoever took it wants no more of it, or has all.
    fn drop(&mut self) {
        self.progress.end();
    }
}
