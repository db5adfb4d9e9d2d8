//! The body of an answer: a file or a text, a whole answer of an engine, or one that is still being written.

use crate::engine_log::{LogPace, Origin};
use crate::gate::Passage;
use crate::link::Submitted;
use crate::response::trailers;
use crate::spool::{SpoolReader, SpoolWriter, Spools, spool};
use crate::upload::Upload;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use regent_wire::{self as wire, Completion};
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes: a quarter of a response ring.
const SMALL_PART: usize = 16 * 1024;

/// The body of an answer.
pub(crate) enum Answer {
    Static(regent_handlers::Body),
    Whole(Option<Bytes>),
    Trailed(Box<Trailed>),
    Streamed(Streamed),
}

/// A whole answer with fields behind its body; what was sent of it is gone.
pub(crate) struct Trailed {
    body: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

/// Where the fields behind the body are put when they come.
pub(crate) type TrailerSlot = Rc<Cell<Option<Box<HeaderMap>>>>;

/// An answer that a script is still writing. Dropped before its end, it cancels the script; one that has its declared
/// length lets the script run on, as if its client had not been told.
pub(crate) struct Streamed {
    reader: SpoolReader,
    /// Takes what the script writes. Aborted with an answer that is not whole.
    pump: Option<tokio::task::JoinHandle<()>>,
    /// Bytes that are missing of the length that the client was told.
    owed: Option<u64>,
    /// `None`: the client was told of none.
    trailers: Option<TrailerSlot>,
    /// Where the answer broke off, until what came before has been sent.
    error: Option<io::Error>,
}

/// A script whose answer has begun.
pub(crate) struct Script {
    pub submitted: Submitted,
    /// What is left of the request body.
    pub upload: Option<Box<Upload>>,
    pub origin: Origin,
    pub passage: Rc<Passage>,
    pub trailers: Option<TrailerSlot>,
}

impl Answer {
    /// A whole answer.
    pub fn whole(chunks: VecDeque<Bytes>) -> Self {
        Self::Whole(joined(chunks))
    }

    /// A whole answer, and the fields behind its body.
    pub fn trailed(chunks: VecDeque<Bytes>, trailers: HeaderMap) -> Self {
        Self::Trailed(Box::new(Trailed { body: joined(chunks), trailers: Some(trailers) }))
    }
}

fn joined(mut chunks: VecDeque<Bytes>) -> Option<Bytes> {
    if chunks.len() < 2 {
        return chunks.pop_front();
    }
    let mut all = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    Some(all.freeze())
}

/// Marks an answer of the server's own, so that a site's error page may take its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnAnswer;

/// An answer of the server's own: the status, and its name as the body.
pub(crate) fn plain(status: StatusCode, fields: &[(HeaderName, &'static str)]) -> Response<Answer> {
    let text = format!("{} {}\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let mut response = Response::new(Answer::Whole(Some(text.into())));
    *response.status_mut() = status;
    response.extensions_mut().insert(OwnAnswer);
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
            Self::Trailed(trailed) => Poll::Ready(trailed.next_frame().map(Ok)),
            Self::Streamed(streamed) => streamed.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Static(body) => body.is_end_stream(),
            Self::Whole(bytes) => bytes.is_none(),
            Self::Trailed(_) | Self::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Static(body) => body.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            // Of a known size no trailers could be sent.
            Self::Trailed(_) | Self::Streamed(_) => SizeHint::default(),
        }
    }
}

impl Trailed {
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        let body = self.body.take().map(Frame::data);
        body.or_else(|| self.trailers.take().map(Frame::trailers))
    }
}

impl Streamed {
    /// Goes on reading the answer of a script, and writing the rest of the request body to it. `begun` is what has been
    /// read of the answer, `owed` the bytes that the client has been promised, if it knows their number.
    pub fn start(spools: &Arc<Spools>, begun: VecDeque<Bytes>, script: Script, owed: Option<u64>) -> Self {
        let (writer, reader) = spool(spools, begun);
        let trailers = script.trailers.clone();
        let pump = tokio::task::spawn_local(pump(writer, script));
        Self { reader, pump: Some(pump), owed, trailers, error: None }
    }

    /// An answer that broke off: the client gets what there is, and no proper end.
    pub fn broken(spools: &Arc<Spools>, chunks: VecDeque<Bytes>) -> Self {
        let (writer, reader) = spool(spools, chunks);
        writer.end(Err(broken()));
        Self { reader, pump: None, owed: None, trailers: None, error: None }
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let error = match ready!(self.reader.poll_chunk(context)) {
            Some(Ok(chunk)) => return Poll::Ready(Some(Ok(Frame::data(self.cut(chunk))))),
            Some(Err(error)) => error,
            None if self.owed.is_some_and(|bytes| bytes > 0) => too_short(),
            None => {
                let trailers = self.trailers.take().and_then(|slot| slot.take());
                let trailers = trailers.filter(|trailers| !trailers.is_empty());
                return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(*trailers))));
            }
        };
        // hyper drops what it has not sent yet, the head too, when a body fails; while one is waited for, it sends.
        self.error = Some(error);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// What of the chunk belongs to a body of the length that the client was told: the rest would be taken for the
    /// beginning of the next response.
    fn cut(&mut self, mut chunk: Bytes) -> Bytes {
        if let Some(owed) = &mut self.owed {
            chunk.truncate(usize::try_from(*owed).unwrap_or(usize::MAX));
            *owed -= chunk.len() as u64;
        }
        chunk
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        let Some(pump) = &self.pump else { return };
        // What was spooled whole needs no pump any more. Otherwise the client has its answer and the script may have
        // other work to do, or the client has left, and so may the script.
        match self.owed {
            Some(0) => self.reader.discard_rest(),
            _ => pump.abort(),
        }
    }
}

/// Moves the answer into the spool at the script's speed, and the request body to the script.
async fn pump(writer: SpoolWriter, script: Script) {
    let Script { submitted, mut upload, origin, passage, trailers: slot } = script;
    let mut pace = LogPace::default();
    let end = loop {
        let frame = poll_fn(|context| {
            // A client that breaks off its upload has left, or will see that it was not read to its end.
            let _ = upload.as_mut().map(|upload| upload.poll_pump(context, &submitted));
            submitted.poll_frame(context)
        });
        match frame.await {
            Ok(wire::Frame::Body(bytes)) => {
                pause(&mut upload);
                if let Err(error) = writer.write(apart(bytes)).await {
                    // What the script goes on to write has no place to go: dropped, `submitted` cancels it.
                    writer.end(Err(error));
                    return;
                }
            }
            Ok(wire::Frame::Log(line)) => {
                origin.log(&line);
                pace.count();
                pause(&mut upload);
                poll_fn(|context| pace.poll_ready(context)).await;
            }
            Ok(wire::Frame::End(end)) => {
                end.timing.into_iter().for_each(|timing| passage.executed(timing));
                break if end.completion == Completion::Complete { Ok(()) } else { Err(broken()) };
            }
            Ok(wire::Frame::Trailers(frame)) => {
                slot.iter().for_each(|slot| slot.set(Some(trailers(frame.fields()))));
            }
            // A second head cannot be sent.
            Ok(wire::Frame::Head(_) | wire::Frame::Informational(_)) => {}
            Err(error) => break Err(io::Error::other(error)),
        }
    };
    writer.end(end);
    submitted.finish();
}

/// Nobody looks at the request's body while its answer, or the log, is waited for.
fn pause(upload: &mut Option<Box<Upload>>) {
    if let Some(upload) = upload {
        upload.pause();
    }
}

/// A part of what was fetched from the ring keeps the whole of that in memory. What is small beside it is copied, since it
/// may wait for a slow client.
fn apart(part: Bytes) -> Bytes {
    if part.len() < SMALL_PART { Bytes::copy_from_slice(&part) } else { part }
}

fn broken() -> io::Error {
    io::Error::other("the script ended in the middle of its answer")
}

fn too_short() -> io::Error {
    io::Error::other("the script wrote less than the Content-Length that it declared")
}
