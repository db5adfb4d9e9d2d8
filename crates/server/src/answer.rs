//! The body of an answer: a file or a text, a whole answer of PHP, or one that is still being written.

use crate::gate::Passage;
use crate::io_thread::Submitted;
use crate::php::Origin;
use crate::spool::{SpoolReader, SpoolWriter, Spools, spool};
use crate::upload::Upload;
use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use regent_wire::{self as wire, Completion};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes: a quarter of a response ring.
const SMALL_PART: usize = 16 * 1024;

/// The body of an answer.
pub(crate) enum Answer {
    Static(regent_handlers::Body),
    Whole(Option<Bytes>),
    Streamed(Streamed),
}

/// An answer that a script is still writing. Dropped before its end, it cancels the script.
pub(crate) struct Streamed {
    reader: SpoolReader,
    /// Takes what the script writes. Aborted with the answer.
    pump: Option<tokio::task::JoinHandle<()>>,
}

/// A script whose answer has begun.
pub(crate) struct Script {
    pub submitted: Submitted,
    /// What is left of the request body.
    pub upload: Option<Box<Upload>>,
    pub origin: Origin,
    pub passage: Rc<Passage>,
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
            Self::Streamed(streamed) => {
                streamed.reader.poll_chunk(context).map(|chunk| chunk.map(|c| c.map(Frame::data)))
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
    /// Goes on reading the answer of a script, and writing the rest of the request body to it. `begun` is what has been
    /// read of the answer.
    pub fn start(spools: &Arc<Spools>, begun: VecDeque<Bytes>, script: Script) -> Self {
        let (writer, reader) = spool(spools, begun);
        let pump = tokio::task::spawn_local(pump(writer, script));
        Self { reader, pump: Some(pump) }
    }

    /// An answer that broke off: the client gets what there is, and no proper end.
    pub fn broken(spools: &Arc<Spools>, chunks: VecDeque<Bytes>) -> Self {
        let (writer, reader) = spool(spools, chunks);
        writer.end(Err(broken()));
        Self { reader, pump: None }
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

/// Moves the answer into the spool at the script's speed, and the request body to the script.
async fn pump(writer: SpoolWriter, script: Script) {
    let Script { submitted, mut upload, origin, passage } = script;
    let end = loop {
        let frame = poll_fn(|context| {
            // A client that breaks off its upload has left, or will see that it was not read to its end.
            let _ = upload.as_mut().map(|upload| upload.poll_pump(context, &submitted));
            submitted.poll_frame(context)
        });
        match frame.await {
            Ok(wire::Frame::Body(bytes)) => {
                if let Err(error) = writer.write(apart(bytes)).await {
                    // What the script goes on to write has no place to go: dropped, `submitted` cancels it.
                    writer.end(Err(error));
                    return;
                }
            }
            Ok(wire::Frame::Log(line)) => origin.log(&line),
            Ok(wire::Frame::End(end)) => {
                end.timing.into_iter().for_each(|timing| passage.executed(timing));
                break if end.completion == Completion::Complete { Ok(()) } else { Err(broken()) };
            }
            // A second head cannot be sent.
            Ok(wire::Frame::Head(_) | wire::Frame::Informational(_)) => {}
            Err(error) => break Err(io::Error::other(error)),
        }
    };
    writer.end(end);
    submitted.finish();
}

/// A part of what was fetched from the ring keeps the whole of that in memory. What is small beside it is copied, since it
/// may wait for a slow client.
fn apart(part: Bytes) -> Bytes {
    if part.len() < SMALL_PART { Bytes::copy_from_slice(&part) } else { part }
}

fn broken() -> io::Error {
    io::Error::other("the script ended in the middle of its answer")
}
