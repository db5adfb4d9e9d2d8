//! A response that is stored while its client reads it: the client waits for nothing but the bytes, and the store for nobody.

use super::fetch::{Fetched, Storing};
use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use regent_cache::Taken;
use regent_exchange::ResponseBody;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of a body on its way to the disk that its client is behind at most, whether memory has room for them or not.
const AHEAD: usize = 256 * 1024;

/// Reads a body to its end, whether its client stays or not, as long as it is to be stored.
pub struct Copying {
    head: Response<()>,
    body: ResponseBody,
    storing: Option<Storing>,
    pieces: VecDeque<Bytes>,
    taken: Taken,
    /// Memory has no room for more; the piece that was not stored, though the client has it.
    unstored: Option<Bytes>,
}

/// The rest of a body that the client has begun to read.
pub struct Rest {
    body: ResponseBody,
    storing: Storing,
    unstored: Option<Bytes>,
    shared: Rc<RefCell<Shared>>,
}

/// What is read and the client has not got.
struct Shared {
    pieces: VecDeque<Bytes>,
    taken: Taken,
    end: Option<io::Result<()>>,
    /// The client reads this by itself: it is not stored any more.
    rest: Option<ResponseBody>,
    reader: Option<Waker>,
    /// Goes on when the client has read most of it.
    writer: Option<Waker>,
    has_left: bool,
}

/// The client's end.
struct Reading {
    shared: Rc<RefCell<Shared>>,
    left: Option<u64>,
    /// Where it broke off, until what came before has been sent.
    error: Option<io::Error>,
}

impl Copying {
    pub(super) fn new(head: Response<()>, body: ResponseBody, storing: Storing) -> Self {
        let taken = storing.copies();
        Self { head, body, storing: Some(storing), pieces: VecDeque::new(), taken, unstored: None }
    }

    /// What the client gets, once all that is there has been read: the stored response, if that was all of it, or one that is
    /// still read.
    pub async fn begin(mut self) -> (Fetched, Option<Rest>) {
        let hint = self.body.len();
        let end = poll_fn(|context| Poll::Ready(self.read_ahead(context))).await;
        let Self { head, body, storing, pieces, taken, unstored } = self;
        let (end, storing, rest) = match (end, storing) {
            (Some(Ok(())), Some(storing)) => match storing.finish() {
                Ok(fetched) => return (fetched, None),
                Err(_) => (Some(Ok(())), None, None),
            },
            (Some(end), _) => (Some(end), None, None),
            (None, Some(storing)) => (None, Some((storing, body)), None),
            (None, None) => (None, None, Some(body)),
        };
        let shared = Shared { pieces, taken, end, rest, reader: None, writer: None, has_left: false };
        let shared = Rc::new(RefCell::new(shared));
        let reading = Reading { shared: Rc::clone(&shared), left: hint, error: None };
        let response = head.map(|()| ResponseBody::stream(reading));
        let rest = storing.map(|(storing, body)| Rest { body, storing, unstored, shared });
        (Fetched::Response(response), rest)
    }

    /// Reads what is there. `None`: there is more to come, or it is not stored any more.
    fn read_ahead(&mut self, context: &mut Context<'_>) -> Option<io::Result<()>> {
        while let Poll::Ready(piece) = next_piece(&mut self.body, context) {
            let storing = self.storing.as_mut()?;
            match piece {
                Piece::Data(data) => {
                    let is_stored = storing.push(&data).is_ok();
                    let has_room = self.taken.grow(data.len()).is_ok();
                    self.pieces.push_back(data.clone());
                    if (!is_stored || !has_room) && storing.may_spill() {
                        self.unstored = Some(if is_stored { Bytes::new() } else { data });
                        return None;
                    }
                    if !is_stored || !has_room {
                        self.storing.take().into_iter().for_each(Storing::give_up);
                        return None;
                    }
                }
                Piece::Other => drop(self.storing.take()),
                Piece::End(end) => return Some(end),
            }
        }
        None
    }
}

impl Rest {
    /// Reads it to its end, or hands it to the client if it is not to be stored after all.
    pub async fn read(self) {
        let Self { mut body, mut storing, unstored, shared } = self;
        if let Some(data) = unstored
            && !storing.spill(data).await
        {
            storing.give_up();
            return shared.borrow_mut().hand_over(body);
        }
        let end = loop {
            if storing.is_spilled() {
                poll_fn(|context| shared.borrow_mut().poll_read(context)).await;
            }
            match poll_fn(|context| next_piece(&mut body, context)).await {
                Piece::Data(data) => {
                    let has_room = shared.borrow_mut().add(data.clone());
                    let has_room = has_room || storing.is_spilled() || storing.spill(Bytes::new()).await;
                    if !has_room || !store(&mut storing, data).await {
                        storing.give_up();
                        return shared.borrow_mut().hand_over(body);
                    }
                }
                Piece::Other => return shared.borrow_mut().hand_over(body),
                Piece::End(end) => break end,
            }
        };
        if end.is_ok() && (!storing.is_spilled() || storing.spill(Bytes::new()).await) {
            // If it is not stored, the client has it all the same.
            drop(storing.finish());
        }
        shared.borrow_mut().end(end);
    }
}

impl Shared {
    /// Answers whether there was room for it beside what is stored; the client gets it in any case.
    fn add(&mut self, data: Bytes) -> bool {
        if self.has_left {
            return true;
        }
        let has_room = self.taken.grow(data.len()).is_ok();
        self.pieces.push_back(data);
        self.wake();
        has_room
    }

    /// Whether the client has read most of it: what is too large for memory goes no faster than its client.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_left || self.pieces.iter().map(Bytes::len).sum::<usize>() < AHEAD {
            return Poll::Ready(());
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }

    fn hand_over(&mut self, body: ResponseBody) {
        if !self.has_left {
            self.rest = Some(body);
            self.wake();
        }
    }

    fn end(&mut self, end: io::Result<()>) {
        self.end = Some(end);
        self.wake();
    }

    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}

/// In memory, or on the disk if it is too large.
async fn store(storing: &mut Storing, data: Bytes) -> bool {
    storing.push(&data).is_ok() || storing.spill(data).await
}

/// What came of a body.
enum Piece {
    Data(Bytes),
    /// Trailers, which are not stored.
    Other,
    End(io::Result<()>),
}

/// A body ends when it says so: a script that has written all that it has declared may go on working.
fn next_piece(body: &mut ResponseBody, context: &mut Context<'_>) -> Poll<Piece> {
    if body.is_end_stream() {
        return Poll::Ready(Piece::End(Ok(())));
    }
    Pin::new(body).poll_frame(context).map(|frame| match frame {
        None => Piece::End(Ok(())),
        Some(Err(error)) => Piece::End(Err(error)),
        Some(Ok(frame)) => frame.into_data().map_or(Piece::Other, Piece::Data),
    })
}

impl Body for Reading {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let reading = self.get_mut();
        let mut shared = reading.shared.borrow_mut();
        if let Some(piece) = shared.pieces.pop_front() {
            shared.taken.shrink(piece.len());
            shared.writer.take().into_iter().for_each(Waker::wake);
            reading.left = reading.left.map(|left| left.saturating_sub(piece.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(rest) = &mut shared.rest {
            return Pin::new(rest).poll_frame(context);
        }
        if let Some(error) = reading.error.take() {
            shared.end = Some(Ok(()));
            return Poll::Ready(Some(Err(error)));
        }
        match shared.end.take() {
            Some(Ok(())) => {
                shared.end = Some(Ok(()));
                return Poll::Ready(None);
            }
            Some(Err(error)) => {
                // hyper drops what it has not sent yet, the head too, when a body fails; while one is waited for, it sends.
                reading.error = Some(error);
                context.waker().wake_by_ref();
            }
            None => shared.reader = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let shared = self.shared.borrow();
        let is_read = shared.pieces.is_empty() && self.error.is_none();
        match &shared.rest {
            Some(rest) => is_read && rest.is_end_stream(),
            None => is_read && matches!(shared.end, Some(Ok(()))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let shared = self.shared.borrow();
        match (&shared.rest, self.left) {
            (Some(rest), Some(_)) if shared.pieces.is_empty() => rest.size_hint(),
            (_, Some(left)) => SizeHint::with_exact(left),
            (_, None) => SizeHint::default(),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.has_left = true;
        let pieces = std::mem::take(&mut shared.pieces);
        shared.taken.shrink(pieces.iter().map(Bytes::len).sum());
        shared.rest = None;
        shared.writer.take().into_iter().for_each(Waker::wake);
    }
}
