//! A response that waits here for its client, so that the upstream need not (`response_buffers`).

use crate::download::Download;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use regent_spool::{SpoolReader, SpoolWriter, Spools, spool};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

/// How much may wait, and where.
pub(crate) struct Buffers {
    /// Bytes of each response.
    pub most: u64,
    pub spools: Arc<Spools>,
}

/// What a client takes of a response that is read at the upstream's speed. Dropped before its end, it ends the reading, too.
pub(crate) struct Buffered {
    reader: SpoolReader,
    ahead: Rc<Ahead>,
    /// `None`: nobody knows.
    left: Option<u64>,
    reading: AbortHandle,
    /// Where it broke off, until what came before has been sent.
    error: Option<io::Error>,
}

/// What is between the two.
struct Ahead {
    most: u64,
    bytes: Cell<u64>,
    taken: Notify,
    trailers: RefCell<Option<HeaderMap>>,
}

impl Buffered {
    pub fn new(download: Download, buffers: &Buffers) -> Self {
        let (writer, reader) = spool(&buffers.spools, VecDeque::new());
        let ahead = Rc::new(Ahead {
            most: buffers.most,
            bytes: Cell::new(0),
            taken: Notify::new(),
            trailers: RefCell::default(),
        });
        let left = download.size_hint().exact();
        let reading = spawn_local(read(download, writer, Rc::clone(&ahead))).abort_handle();
        Self { reader, ahead, left, reading, error: None }
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// At the upstream's speed, as far as there is room.
async fn read(mut download: Download, writer: SpoolWriter, ahead: Rc<Ahead>) {
    let end = loop {
        match poll_fn(|context| Pin::new(&mut download).poll_frame(context)).await {
            None => break Ok(()),
            Some(Err(error)) => break Err(error),
            Some(Ok(frame)) => match frame.into_data() {
                Err(frame) => drop(ahead.trailers.replace(frame.into_trailers().ok())),
                Ok(bytes) => {
                    ahead.wait_for_room().await;
                    ahead.bytes.set(ahead.bytes.get() + bytes.len() as u64);
                    writer.write(bytes).await;
                }
            },
        }
    };
    writer.end(end);
}

impl Ahead {
    /// One that is empty takes a chunk in any case.
    async fn wait_for_room(&self) {
        while self.bytes.get() >= self.most {
            self.taken.notified().await;
        }
    }

    fn take(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.taken.notify_one();
    }
}

impl Body for Buffered {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(self.reader.poll_chunk(context)) {
            Some(Ok(bytes)) => {
                self.ahead.take(bytes.len() as u64);
                self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(error)) => {
                // As in `Download`: what came before is to be sent.
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(self.ahead.trailers.take().map(|fields| Ok(Frame::trailers(fields)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
