//! The body of a request.

use crate::h3::code;
use crate::h3::early::Early;
use crate::h3::fields;
use crate::h3::message::{Message, Part, Wrong};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use quinn::VarInt;
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// Why a body did not come whole.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the client has ended the stream within a request")]
    Lost,
    #[error("the client broke HTTP/3 within a request")]
    Protocol,
    #[error("a request has more or fewer bytes than its Content-Length says")]
    Length,
    #[error("the trailers of a request are too large")]
    TooLarge,
    #[error("the trailers of a request are malformed")]
    Malformed,
}

/// What a connection keeps of the bodies of its requests.
#[derive(Default)]
pub(super) struct Bodies {
    count: Cell<usize>,
    /// The code of what a client has done wrong in one, which ends the connection.
    wrong: Cell<Option<VarInt>>,
    news: Notify,
}

impl Bodies {
    pub fn are_none(&self) -> bool {
        self.count.get() == 0
    }

    pub fn wrong(&self) -> Option<VarInt> {
        self.wrong.get()
    }

    /// Ends when any of it may have changed.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    pub fn break_off(&self, code: VarInt) {
        self.wrong.set(Some(code));
        self.news.notify_one();
    }
}

/// A body that is still coming. The client may send as much more as was taken: a consumer that takes nothing holds it back.
pub(super) struct Incoming {
    message: Message,
    /// Part of it that was read already.
    first: Option<Part>,
    /// Bytes that have not been taken, if the client has said how many there are.
    left: Option<u64>,
    /// Of a client that sends nothing before it is asked to.
    expecting: Option<Rc<Early>>,
    most_trailers: usize,
    has_ended: bool,
    bodies: Rc<Bodies>,
}

impl Incoming {
    /// The rest of a message after its head. `first`: what was read of it already. `most_trailers`: bytes that its trailers may
    /// have.
    pub fn new(
        message: Message,
        first: Option<Part>,
        head: &HeaderMap,
        early: &Rc<Early>,
        most_trailers: usize,
        bodies: Rc<Bodies>,
    ) -> Self {
        let expects = head
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        bodies.count.set(bodies.count.get() + 1);
        Self {
            message,
            first,
            left: fields::content_length(head),
            expecting: expects.then(|| Rc::clone(early)),
            most_trailers,
            has_ended: false,
            bodies,
        }
    }

    fn take(&mut self, data: &Bytes) -> Result<(), BodyError> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(data.len() as u64).ok_or(BodyError::Length)?;
        }
        Ok(())
    }

    fn frame(&mut self, part: Result<Part, Wrong>) -> Result<Option<Frame<Bytes>>, BodyError> {
        match part {
            Ok(Part::Data(data)) => {
                self.take(&data)?;
                Ok(Some(Frame::data(data)))
            }
            Ok(Part::Trailers(section)) => {
                let trailers = fields::trailers(&section, self.most_trailers);
                trailers.map(|fields| Some(Frame::trailers(fields))).map_err(|refused| match refused {
                    fields::Refused::TooLarge => BodyError::TooLarge,
                    fields::Refused::Malformed => BodyError::Malformed,
                    fields::Refused::Compression => {
                        self.bodies.break_off(code::QPACK_DECOMPRESSION_FAILED);
                        BodyError::Protocol
                    }
                })
            }
            Ok(Part::Head(_) | Part::End) => {
                self.has_ended = true;
                if self.left.is_some_and(|left| left > 0) { Err(BodyError::Length) } else { Ok(None) }
            }
            Err(Wrong::TooLarge) => Err(BodyError::TooLarge),
            Err(Wrong::Lost | Wrong::Incomplete) => Err(BodyError::Lost),
            Err(Wrong::Protocol(code)) => {
                self.bodies.break_off(code);
                Err(BodyError::Protocol)
            }
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let part = match self.first.take() {
            Some(first) => Poll::Ready(Ok(first)),
            None => self.message.poll_part(context),
        };
        let part = match (part, self.expecting.take()) {
            (Poll::Pending, early) => {
                early.into_iter().for_each(|early| early.ask_for_body());
                return Poll::Pending;
            }
            (Poll::Ready(part), _) => part,
        };
        let frame = self.frame(part);
        self.has_ended |= frame.is_err();
        Poll::Ready(frame.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.has_ended => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.bodies.count.set(self.bodies.count.get() - 1);
        self.bodies.news.notify_one();
    }
}
