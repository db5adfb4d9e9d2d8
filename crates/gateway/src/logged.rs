//! An answer that is noted in the access log when it has ended, in whatever way.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use regent_engines::InFlight;
use regent_exchange::ResponseBody;
use regent_handlers::{AccessRecord, Exchange, Sites};
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
    entry: Option<Box<Entry>>,
    /// Of a request to PHP; it ends with the answer.
    passage: Option<Rc<InFlight>>,
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
        response.map(|body| Self { body, entry: None, passage: None })
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
        response.map(|body| Self { body, entry: Some(Box::new(entry)), passage: None })
    }

    /// The figures of the request are complete when the answer has ended.
    pub fn measured(mut self, passage: Rc<InFlight>) -> Self {
        self.passage = Some(passage);
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
        if let (Poll::Ready(Some(Ok(frame))), Some(entry)) = (&frame, &mut self.entry) {
            entry.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
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
        let Some(entry) = self.entry.take() else { return };
        let record = AccessRecord {
            exchange: &entry.exchange,
            status: entry.status,
            response_headers: &entry.headers,
            bytes_read: entry.received.as_ref().map_or(0, |received| received.get()),
            size: entry.sent,
            duration: entry.started.elapsed(),
            is_retried: self.passage.as_ref().is_some_and(|passage| passage.is_repeated()),
        };
        for log in entry.sites.access_logs(&entry.exchange) {
            log.write(&record);
        }
    }
}
