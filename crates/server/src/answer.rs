//! The body of an answer: a file or a text, a whole answer of PHP, or one that is still being written.

use crate::io_thread::Submitted;
use crate::php::Origin;
use crate::upload::Upload;
use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use regent_wire::{self as wire, Completion, ReadError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of an answer that are held for a client that is slower than the script. Beyond it the script waits.
const SPOOL: usize = 1024 * 1024;

/// The body of an answer.
pub(crate) enum Answer {
    Static(regent_handlers::Body),
    Whole(Option<Bytes>),
    Streamed(Streamed),
}

/// An answer that a script is still writing. Dropped before its end, it cancels the script.
pub(crate) struct Streamed {
    spool: Rc<RefCell<Spool>>,
    /// Takes what the script writes; ends with the answer. Aborted with the answer otherwise.
    pump: Option<tokio::task::JoinHandle<()>>,
}

/// Between the script's speed and the client's.
struct Spool {
    chunks: VecDeque<Bytes>,
    size: usize,
    end: Option<Result<(), io::Error>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Answer {
    /// A whole answer.
    pub fn whole(mut chunks: VecDeque<Bytes>) -> Self {
        if chunks.len() < 2 {
            return Self::Whole(chunks.pop_front());
        }
        let mut all = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
        chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
        Self::Whole(Some(all.freeze()))
    }
}

/// An answer of the server's own: the status, and its name as the body.
pub(crate) fn plain(status: StatusCode, fields: &[(HeaderName, &'static str)]) -> Response<Answer> {
    let text = format!("{} {}\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let mut response = Response::new(Answer::Whole(Some(text.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Static(body) => Pin::new(body).poll_frame(context),
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Streamed(streamed) => {
                streamed.poll_chunk(context).map(|chunk| chunk.map(|c| c.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Static(body) => body.is_end_stream(),
            Self::Whole(bytes) => bytes.is_none(),
            Self::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Static(body) => body.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Streamed(_) => SizeHint::default(),
        }
    }
}

impl Streamed {
    /// Goes on reading the answer of `submitted`, and writing the rest of the request body to it. `begun` is what has
    /// been read of the answer.
    pub fn start(submitted: Submitted, upload: Upload, begun: VecDeque<Bytes>, origin: Origin) -> Self {
        let spool = Spool::new(begun, None);
        let pump = tokio::task::spawn_local(pump(Rc::clone(&spool), submitted, upload, origin));
        Self { spool, pump: Some(pump) }
    }

    /// An answer that broke off: the client gets what there is, and no proper end.
    pub fn broken(chunks: VecDeque<Bytes>) -> Self {
        Self { spool: Spool::new(chunks, Some(Err(broken()))), pump: None }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let mut spool = self.spool.borrow_mut();
        if let Some(chunk) = spool.chunks.pop_front() {
            spool.size -= chunk.len();
            if let Some(writer) = spool.writer.take() {
                writer.wake();
            }
            return Poll::Ready(Some(Ok(chunk)));
        }
        match spool.end.take() {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                spool.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // What was spooled whole needs no pump any more; otherwise the client has left, and so may the script.
        if let Some(pump) = &self.pump {
            pump.abort();
        }
    }
}

impl Spool {
    fn new(chunks: VecDeque<Bytes>, end: Option<Result<(), io::Error>>) -> Rc<RefCell<Self>> {
        let size = chunks.iter().map(Bytes::len).sum();
        Rc::new(RefCell::new(Self { chunks, size, end, reader: None, writer: None }))
    }

    fn push(&mut self, chunk: Bytes) {
        self.size += chunk.len();
        self.chunks.push_back(chunk);
    }
}

/// Moves the answer into the spool at the script's speed, and the request body to the script.
async fn pump(spool: Rc<RefCell<Spool>>, submitted: Submitted, mut upload: Upload, origin: Origin) {
    let end = std::future::poll_fn(|context| {
        // A client that breaks off its upload has left, or will see that it was not read to its end.
        let _ = upload.poll_pump(context, &submitted);
        poll_spool(&mut spool.borrow_mut(), &submitted, &origin, context)
    })
    .await;
    let mut spool = spool.borrow_mut();
    spool.end = Some(end);
    spool.wake_reader();
    submitted.finish();
}

fn poll_spool(
    spool: &mut Spool,
    submitted: &Submitted,
    origin: &Origin,
    context: &mut Context<'_>,
) -> Poll<Result<(), io::Error>> {
    loop {
        if spool.size >= SPOOL {
            spool.writer = Some(context.waker().clone());
            spool.wake_reader();
            return Poll::Pending;
        }
        match submitted.poll_frame(context) {
            Poll::Ready(Ok(wire::Frame::Body(bytes))) => spool.push(bytes.into()),
            Poll::Ready(Ok(wire::Frame::Log(line))) => origin.log(&line),
            Poll::Ready(Ok(wire::Frame::End(Completion::Complete))) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(wire::Frame::End(Completion::Truncated))) => return Poll::Ready(Err(broken())),
            // A second head cannot be sent.
            Poll::Ready(Ok(wire::Frame::Head(_) | wire::Frame::Informational(_))) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(lost(error))),
            Poll::Pending => {
                spool.wake_reader();
                return Poll::Pending;
            }
        }
    }
}

impl Spool {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("the script ended in the middle of its answer")
}

fn lost(error: ReadError) -> io::Error {
    io::Error::other(error)
}
