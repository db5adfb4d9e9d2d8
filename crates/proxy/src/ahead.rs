//! Bodies that are read before an upstream is asked, so that it knows their length and waits for no client.

use crate::upload::{Progress, Upload};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use regent_exchange::{BodyError, BodyLimits, Informational, RequestBody};
use regent_spool::{Block, Offered, SpoolReader, SpoolWriter, Spools, spool};
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes that go into the spool at a time.
const BLOCK: usize = 64 * 1024;

/// How much of a body is read before an upstream is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it. If the spool has no room for that, its length has to be known.
    Whole,
    /// So many bytes.
    UpTo(u64),
}

/// A body in the spool, at least as far as that has room.
struct Ahead {
    /// `None`: all of it has been taken.
    spooled: Option<SpoolReader>,
    /// Follows what is spooled.
    held: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// Follows that: what the client is still to send.
    rest: Option<Upload>,
    /// `None`: nobody knows.
    left: Option<u64>,
}

/// What was read.
struct Filled {
    /// Follows what is spooled.
    held: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    is_whole: bool,
}

/// Reads a body into the spool. `received` counts its bytes. What the spool has no room for goes on as it comes.
///
/// An error is the status to answer with; 413 is that of a body whose length has to be known, and is not, and which the spool
/// cannot hold.
pub(crate) async fn read(
    body: RequestBody,
    extent: Extent,
    limits: BodyLimits,
    received: &Rc<Cell<u64>>,
    client: &Rc<dyn Informational>,
    spools: &Arc<Spools>,
) -> Result<RequestBody, StatusCode> {
    if body.is_end_stream() {
        return Ok(body);
    }
    let announced = body.size_hint().exact();
    let progress = Progress::new(received);
    let mut upload = Upload::new(body, limits, &progress, client)?;
    let (writer, reader) = spool(spools, VecDeque::new());
    let filling = Filling { writer: &writer, progress: &progress, received, spools, extent };
    let Filled { held, trailers, is_whole } = filling.fill(&mut upload).await?;
    writer.end(Ok(()));
    let left = match is_whole {
        // A length leaves no place for them.
        true if trailers.is_some() => None,
        true => Some(received.get()),
        false if announced.is_none() && extent == Extent::Whole => return Err(StatusCode::PAYLOAD_TOO_LARGE),
        false => announced,
    };
    let rest = (!is_whole).then_some(upload);
    Ok(RequestBody::new(Ahead { spooled: Some(reader), held, trailers, rest, left }))
}

struct Filling<'a> {
    writer: &'a SpoolWriter,
    progress: &'a Progress,
    received: &'a Cell<u64>,
    spools: &'a Spools,
    extent: Extent,
}

impl Filling<'_> {
    async fn fill(&self, upload: &mut Upload) -> Result<Filled, StatusCode> {
        let mut block = Block::new(BLOCK, self.spools);
        let mut chunk = Bytes::new();
        let mut trailers = None;
        let filled = |held, trailers, is_whole| Ok(Filled { held, trailers, is_whole });
        loop {
            while !block.fill(&mut chunk) {
                let full = block.pass_on().unwrap_or_else(|| mem::take(&mut chunk));
                match self.writer.offer(full).await {
                    Ok(Offered::Taken) => {}
                    Ok(Offered::Full(refused)) => return filled([refused, chunk].into(), None, false),
                    Err(_) => return Err(StatusCode::INSUFFICIENT_STORAGE),
                }
            }
            if matches!(self.extent, Extent::UpTo(most) if self.received.get() >= most) {
                return filled(block.pass_on().into_iter().collect(), None, false);
            }
            match poll_fn(|context| Pin::new(&mut *upload).poll_frame(context)).await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => chunk = bytes,
                    Err(frame) => trailers = frame.into_trailers().ok(),
                },
                Some(Err(_)) => return Err(self.progress.trouble().unwrap_or(StatusCode::BAD_REQUEST)),
                None => {
                    // FastCGI has no trailers.
                    let trailers = trailers.filter(|_| self.extent != Extent::Whole);
                    return filled(block.pass_on().into_iter().collect(), trailers, true);
                }
            }
        }
    }
}

impl Ahead {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(spooled) = &mut self.spooled {
            match ready!(spooled.poll_chunk(context)) {
                Some(chunk) => return Poll::Ready(Some(chunk.map(Frame::data).map_err(Into::into))),
                None => self.spooled = None,
            }
        }
        while let Some(held) = self.held.pop_front() {
            if !held.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(held))));
            }
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }
}

impl Body for Ahead {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(self.poll(context)?);
        let bytes = frame.as_ref().and_then(|frame| frame.data_ref()).map_or(0, |bytes| bytes.len() as u64);
        self.left = self.left.map(|left| left.saturating_sub(bytes));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Version};
    use http_body_util::{BodyExt, Full, StreamBody};
    use regent_exchange::{BodyTimeouts, Tunnel};
    use std::time::Duration;

    struct Client;

    impl Informational for Client {
        fn send(&self, _: Version, _: StatusCode, _: &HeaderMap) {}
        fn close_connection(&self) {}
        fn hand_over(&self, _: Tunnel) {}
        fn abort(&self) {}
    }

    const LIMITS: BodyLimits = BodyLimits {
        patience: BodyTimeouts { silence: Duration::from_secs(60), rate: 0, whole: None },
        size: Some(1 << 20),
    };

    async fn read_ahead(
        memory: u64,
        extent: Extent,
        body: RequestBody,
        received: &Rc<Cell<u64>>,
    ) -> Result<RequestBody, StatusCode> {
        let bounds = regent_config::Spool { memory, file: 0, directory: None };
        let (client, spools): (Rc<dyn Informational>, _) = (Rc::new(Client), Spools::open(&bounds).unwrap());
        read(body, extent, LIMITS, received, &client, &spools).await
    }

    async fn read_with(memory: u64, body: RequestBody) -> Result<(u64, Vec<u8>), StatusCode> {
        let received = Rc::default();
        let body = read_ahead(memory, Extent::Whole, body, &received).await?;
        let length = body.size_hint().exact().unwrap();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        assert_eq!(received.get(), length);
        Ok((length, bytes))
    }

    fn streamed(pieces: &[Bytes]) -> RequestBody {
        let frames: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, BodyError>(Frame::data(piece.clone()))).collect();
        RequestBody::new(StreamBody::new(futures_util::stream::iter(frames)))
    }

    #[tokio::test]
    async fn the_length_of_a_body_is_known_once_it_is_there() {
        let pieces: Vec<_> = (0..300_u16).map(|piece| Bytes::from(piece.to_be_bytes().repeat(100))).collect();
        let (length, bytes) = read_with(1 << 20, streamed(&pieces)).await.unwrap();
        assert!(length == 60_000 && bytes == pieces.concat());
        assert_eq!(read_with(1 << 20, RequestBody::empty()).await, Ok((0, Vec::new())));
    }

    #[tokio::test]
    async fn what_the_spool_cannot_hold_goes_on_only_if_its_length_is_known() {
        let large = Bytes::from(vec![7; 900_000]);
        let pieces: Vec<_> = large.chunks(50_000).map(Bytes::copy_from_slice).collect();
        assert_eq!(read_with(1, streamed(&pieces)).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let (length, bytes) = read_with(1, RequestBody::new(Full::new(large.clone()))).await.unwrap();
        assert!(length == 900_000 && bytes == large);
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_breaks_off_is_the_clients_fault() {
        let too_large = RequestBody::new(Full::new(Bytes::from(vec![0; (1 << 20) + 1])));
        assert_eq!(read_with(1, too_large).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let frames = [Ok(Frame::data(Bytes::from("a"))), Err(BodyError::from("gone"))];
        let broken = RequestBody::new(StreamBody::new(futures_util::stream::iter(frames)));
        assert_eq!(read_with(1 << 20, broken).await, Err(StatusCode::BAD_REQUEST));
    }

    #[tokio::test]
    async fn only_so_much_is_read_as_is_wanted() {
        let pieces: Vec<_> = (0..10_u8).map(|piece| Bytes::from(vec![piece; 1000])).collect();
        let received = Rc::default();
        let body = read_ahead(1 << 20, Extent::UpTo(2500), streamed(&pieces), &received).await.unwrap();
        assert_eq!((received.get(), body.size_hint().exact()), (3000, None));
        assert_eq!(body.collect().await.unwrap().to_bytes(), pieces.concat());
        let received = Rc::default();
        let body = read_ahead(1 << 20, Extent::UpTo(10_001), streamed(&pieces), &received).await.unwrap();
        assert_eq!((received.get(), body.size_hint().exact()), (10_000, Some(10_000)));
        let received = Rc::default();
        let body = read_ahead(1, Extent::UpTo(u64::MAX), streamed(&pieces), &received).await.unwrap();
        assert_eq!(body.size_hint().exact(), None, "what the spool cannot hold goes on as it comes");
        assert_eq!(body.collect().await.unwrap().to_bytes(), pieces.concat());
    }

    #[tokio::test]
    async fn trailers_come_last() {
        let fields: HeaderMap = [(http::header::ETAG, HeaderValue::from_static("x"))].into_iter().collect();
        let frames = [Ok::<_, BodyError>(Frame::data(Bytes::from("a"))), Ok(Frame::trailers(fields.clone()))];
        let body = RequestBody::new(StreamBody::new(futures_util::stream::iter(frames)));
        let body = read_ahead(1 << 20, Extent::UpTo(100), body, &Rc::default()).await.unwrap();
        assert_eq!(body.size_hint().exact(), None);
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&fields));
        assert_eq!(collected.to_bytes(), "a");
    }
}
