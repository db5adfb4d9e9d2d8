//! An answer that is noted in the access log when it has ended, in whatever way.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use regent_engines::InFlight;
use regent_exchange::ResponseBody;
use regent_handlers::{AccessRecord, Exchange, RequestSpan, Sites};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// An answer's body, with what the access log will say of it.
pub struct Logged {
    body: ResponseBody,
    /// `None`: nobody wants to know.
    end: Option<Box<End>>,
    /// Of a request to PHP; it ends with the answer.
    in_flight: Option<Rc<InFlight>>,
}

/// What there is to be done with when it has ended.
#[derive(Default)]
struct End {
    /// `None`: no log is to have it.
    entry: Option<Entry>,
    /// `None`: it is not traced.
    span: Option<Box<RequestSpan>>,
}

struct Entry {
    sites: Arc<Sites>,
    exchange: Box<Exchange>,
    status: StatusCode,
    headers: HeaderMap,
    received: Option<Rc<Cell<u64>>>,
    sent: u64,
    started: Instant,
}

impl Logged {
    /// An answer that no log is kept of.
    pub fn nowhere(response: Response<ResponseBody>) -> Response<Self> {
        response.map(|body| Self { body, end: None, in_flight: None })
    }

    /// `received` counts the bytes of the request's body, if it is read; `started`: when its head was complete.
    pub fn new(
        response: Response<ResponseBody>,
        sites: &Arc<Sites>,
        exchange: Box<Exchange>,
        received: Option<Rc<Cell<u64>>>,
        started: Instant,
    ) -> Response<Self> {
        if sites.access_logs(&exchange).next().is_none() {
            return Self::nowhere(response);
        }
        let entry = Entry {
            sites: Arc::clone(sites),
            exchange,
            status: response.status(),
            headers: response.headers().clone(),
            received,
            sent: 0,
            started,
        };
        let end = Some(Box::new(End { entry: Some(entry), span: None }));
        response.map(|body| Self { body, end, in_flight: None })
    }

    /// The figures of the request are complete when the answer has ended.
    pub fn measured(mut self, in_flight: Rc<InFlight>) -> Self {
        self.in_flight = Some(in_flight);
        self
    }

    /// The request's span ends when the answer has ended.
    pub fn traced(mut self, span: Box<RequestSpan>) -> Self {
        self.end.get_or_insert_default().span = Some(span);
        self
    }
}

impl Body for Logged {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(part)), Some(end)) = (&frame, &mut self.end) {
            end.note(part);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let Some(mut end) = self.end.take() else { return };
        if let Some(entry) = end.entry.take() {
            entry.write(self.in_flight.as_ref().is_some_and(|in_flight| in_flight.is_repeated()));
        }
        // The spans of an engine end before that of the request.
        self.in_flight = None;
    }
}

impl End {
    fn note(&mut self, part: &io::Result<Frame<Bytes>>) {
        match (part, &mut self.entry, &mut self.span) {
            (Ok(frame), Some(entry), _) => entry.sent += frame.data_ref().map_or(0, |data| data.len() as u64),
            (Err(error), _, Some(span)) => span.broke_off(&error.to_string()),
            _ => {}
        }
    }
}

impl Entry {
    fn write(self, is_retried: bool) {
        let record = AccessRecord {
            exchange: &self.exchange,
            status: self.status,
            response_headers: &self.headers,
            bytes_read: self.received.as_ref().map_or(0, |received| received.get()),
            size: self.sent,
            duration: self.started.elapsed(),
            is_retried,
        };
        for log in self.sites.access_logs(&self.exchange) {
            log.write(&record);
        }
    }
}
