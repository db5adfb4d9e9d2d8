//! Bodies that are read before an upstream is asked, so that it knows their length and waits for no client.

use crate::upload::{Progress, Upload};
use bytes::Bytes;
use http::StatusCode;
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

/// A body of a known length, in the spool at least as far as that has room.
struct Ahead {
    /// `None`: all of it has been taken.
    spooled: Option<SpoolReader>,
    /// Follows what is spooled.
    held: VecDeque<Bytes>,
    /// Follows that: what the client is still to send.
    rest: Option<Upload>,
    left: u64,
}

/// Reads a body into the spool. `received` counts its bytes. A body that the spool has no room for goes on as it comes, if its
/// length is known.
///
/// An error is the status to answer with; 413 is that of a body whose length nobody knows and which the spool cannot hold.
pub(crate) async fn read(
    body: RequestBody,
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
    let (held, is_whole) = fill(&writer, &mut upload, &progress, spools).await?;
    writer.end(Ok(()));
    let left = if is_whole { received.get() } else { announced.ok_or(StatusCode::PAYLOAD_TOO_LARGE)? };
    let rest = (!is_whole).then_some(upload);
    Ok(RequestBody::new(Ahead { spooled: Some(reader), held, rest, left }))
}

/// Answers what follows the spooled, and whether that is all.
async fn fill(
    writer: &SpoolWriter,
    upload: &mut Upload,
    progress: &Progress,
    spools: &Spools,
) -> Result<(VecDeque<Bytes>, bool), StatusCode> {
    let mut block = Block::new(BLOCK, spools);
    let mut chunk = Bytes::new();
    loop {
        while !block.fill(&mut chunk) {
            let full = block.pass_on().unwrap_or_else(|| mem::take(&mut chunk));
            match writer.offer(full).await {
                Ok(Offered::Taken) => {}
                Ok(Offered::Full(refused)) => return Ok(([refused, chunk].into(), false)),
                Err(_) => return Err(StatusCode::INSUFFICIENT_STORAGE),
            }
        }
        match poll_fn(|context| Pin::new(&mut *upload).poll_frame(context)).await {
            Some(Ok(frame)) => chunk = frame.into_data().unwrap_or_default(),
            Some(Err(_)) => return Err(progress.trouble().unwrap_or(StatusCode::BAD_REQUEST)),
            None => return Ok((block.pass_on().into_iter().collect(), true)),
        }
    }
}

impl Ahead {
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(spooled) = &mut self.spooled {
            match ready!(spooled.poll_chunk(context)) {
                Some(chunk) => return Poll::Ready(Some(chunk.map_err(Into::into))),
                None => self.spooled = None,
            }
        }
        while let Some(held) = self.held.pop_front() {
            if !held.is_empty() {
                return Poll::Ready(Some(Ok(held)));
            }
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        loop {
            match ready!(Pin::new(&mut *rest).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
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
        let bytes = ready!(self.poll_bytes(context)?);
        self.left = self.left.saturating_sub(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, Version};
    use http_body_util::{BodyExt, Full, StreamBody};
    use regent_exchange::{Patience, Tunnel};
    use std::time::Duration;

    struct Client;

    impl Informational for Client {
        fn send(&self, _: Version, _: StatusCode, _: &HeaderMap) {}
        fn close_connection(&self) {}
        fn hand_over(&self, _: Tunnel) {}
        fn abort(&self) {}
    }

    const LIMITS: BodyLimits = BodyLimits {
        patience: Patience { silence: Duration::from_secs(60), rate: 0, whole: None },
        size: Some(1 << 20),
    };

    async fn read_with(memory: u64, body: RequestBody) -> Result<(u64, Vec<u8>), StatusCode> {
        let bounds = regent_config::Spool { memory, file: 0, directory: None };
        let (client, spools): (Rc<dyn Informational>, _) = (Rc::new(Client), Spools::open(&bounds).unwrap());
        let received = Rc::default();
        let body = read(body, LIMITS, &received, &client, &spools).await?;
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
}
