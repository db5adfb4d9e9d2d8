//! The body of an upstream's response on its way to the client.

use crate::fastcgi::Stdout;
use crate::pool::Lease;
use crate::state::InFlight;
use crate::upload::Progress;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The body of a response with what it comes over.
pub(crate) enum Received {
    Http(Incoming, Lease),
    FastCgi(Stdout),
}

/// A body on its connection.
enum Source {
    Http(Incoming),
    FastCgi(Stdout),
}

/// Read as the client takes it. Dropped before its end, it closes the connection that it comes over, or cancels its stream:
/// the client has left.
pub(crate) struct Download {
    body: Source,
    /// `None`: it has ended, or comes over a connection of its own.
    lease: Option<Lease>,
    upload: Rc<Progress>,
    /// Counts until the end.
    in_flight: Option<InFlight>,
    /// Where it broke off, until what came before has been sent.
    error: Option<io::Error>,
}

impl Download {
    pub fn new(received: Received, upload: Rc<Progress>, in_flight: InFlight) -> Self {
        let in_flight = Some(in_flight);
        let (body, lease) = match received {
            Received::Http(body, lease) => (Source::Http(body), Some(lease)),
            Received::FastCgi(body) => (Source::FastCgi(body), None),
        };
        let mut download = Self { body, lease, upload, in_flight, error: None };
        if download.body.is_end_stream() {
            download.end();
        }
        download
    }

    /// Where the client is still sending, the upstream has answered early and wants no more of it.
    fn end(&mut self) {
        let lease = self.lease.take().filter(|_| self.upload.is_done());
        lease.into_iter().for_each(Lease::finish);
        self.in_flight = None;
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(self.body.poll_frame(context)) {
            Some(Ok(frame)) => {
                if self.body.is_end_stream() {
                    self.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a response of an upstream broke off");
                (self.lease, self.in_flight) = (None, None);
                // hyper drops what it has not sent yet, the head too, when a body fails; while one is waited for, it
                // sends.
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Source {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self {
            Self::Http(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(io::Error::other))),
            Self::FastCgi(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http(body) => body.is_end_stream(),
            Self::FastCgi(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http(body) => body.size_hint(),
            Self::FastCgi(body) => body.size_hint(),
        }
    }
}
