//! The bodies that engines make: whole ones, and those that are still being written.

use crate::fields::trailers;
use crate::upload::Upload;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use regent_engines::{InFlight, LogPace, Origin, Submitted};
use regent_exchange::ResponseBody;
use regent_spool::{SpoolReader, SpoolWriter, Spools, spool};
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

/// A whole answer with fields behind its body; what was sent of it is gone.
struct Trailed {
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
    pub in_flight: Rc<InFlight>,
    pub trailers: Option<TrailerSlot>,
}

/// A whole response.
pub(crate) fn whole(chunks: VecDeque<Bytes>) -> ResponseBody {
    joined(chunks).map_or_else(ResponseBody::empty, ResponseBody::full)
}

/// A whole response, and the fields behind its body.
pub(crate) fn trailed(chunks: VecDeque<Bytes>, trailers: HeaderMap) -> ResponseBody {
    ResponseBody::stream(Trailed { body: joined(chunks), trailers: Some(trailers) })
}

fn joined(mut chunks: VecDeque<Bytes>) -> Option<Bytes> {
    if chunks.len() < 2 {
        return chunks.pop_front();
    }
    let mut all = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    Some(all.freeze())
}

/// Of a known size no trailers could be sent: neither body says one.
impl Body for Trailed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.next_frame().map(Ok))
    }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.get_mut().poll_next(context)
    }

    /// A script that has written all that it has declared may go on working; its client does not wait for that.
    fn is_end_stream(&self) -> bool {
        self.owed == Some(0) && self.error.is_none()
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
    pub fn start(
        spools: &Arc<Spools>,
        begun: VecDeque<Bytes>,
        script: Script,
        owed: Option<u64>,
    ) -> ResponseBody {
        let (writer, reader) = spool(spools, begun);
        let trailers = script.trailers.clone();
        let pump = tokio::task::spawn_local(pump(writer, script));
        ResponseBody::stream(Self { reader, pump: Some(pump), owed, trailers, error: None })
    }

    /// An answer that broke off: the client gets what there is, and no proper end.
    pub fn broken(spools: &Arc<Spools>, chunks: VecDeque<Bytes>) -> ResponseBody {
        let (writer, reader) = spool(spools, chunks);
        writer.end(Err(broken()));
        ResponseBody::stream(Self { reader, pump: None, owed: None, trailers: None, error: None })
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
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
    let Script { submitted, mut upload, origin, in_flight, trailers: slot } = script;
    let mut pace = LogPace::default();
    let end = loop {
        let frame = poll_fn(|context| {
            // A client that breaks off its upload has left, or will see that it was not read to its end.
            let _ = upload.as_mut().map(|upload| upload.poll_pump(context, &submitted));
            match submitted.poll_frame(context) {
                Poll::Pending if submitted.is_overdue() => Poll::Ready(None),
                frame => frame.map(Some),
            }
        });
        let Some(frame) = frame.await else {
            in_flight.overdue();
            writer.end(Err(overdue()));
            return;
        };
        match frame {
            Ok(wire::Frame::Body(bytes)) => {
                pause(&mut upload);
                writer.write(apart(bytes)).await;
            }
            Ok(wire::Frame::Log(line)) => {
                origin.log(&line);
                pace.count();
                pause(&mut upload);
                poll_fn(|context| pace.poll_ready(context)).await;
            }
            Ok(wire::Frame::End(end)) => {
                end.timing.into_iter().for_each(|timing| in_flight.executed(timing));
                break match end.completion {
                    Completion::Complete => Ok(()),
                    Completion::Truncated | Completion::Refused => Err(broken()),
                    Completion::Overdue => {
                        in_flight.overdue();
                        Err(overdue())
                    }
                };
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

fn overdue() -> io::Error {
    io::Error::other("the script exceeded its request_timeout in the middle of its answer")
}

fn too_short() -> io::Error {
    io::Error::other("the script wrote less than the Content-Length that it declared")
}
