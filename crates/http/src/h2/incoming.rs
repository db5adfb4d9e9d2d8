//! The body of a request.

use crate::h2::early::Early;
use ::h2::RecvStream;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A body that is still coming. The client may send as much more as was taken: a consumer that takes nothing holds it back.
pub(super) struct Incoming {
    stream: RecvStream,
    /// Bytes that have not been taken, if the client has said how many there are. The h2 crate sees to it that they come.
    left: Option<u64>,
    /// Of a client that sends nothing before it is asked to.
    expecting: Option<Rc<Early>>,
    data_ended: bool,
    /// Counted by the connection.
    _alive: Rc<()>,
}

impl Incoming {
    pub fn new(stream: RecvStream, head: &HeaderMap, early: &Rc<Early>, alive: Rc<()>) -> Self {
        let length = head.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let expects = head
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Self {
            stream,
            left: length,
            expecting: expects.then(|| Rc::clone(early)),
            data_ended: false,
            _alive: alive,
        }
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, ::h2::Error>>> {
        let data = self.stream.poll_data(context);
        match (&data, self.expecting.take()) {
            (Poll::Pending, Some(early)) => early.ask_for_body(),
            (Poll::Ready(Some(Ok(bytes))), _) => {
                self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                // An error says that the stream has ended.
                let _ = self.stream.flow_control().release_capacity(bytes.len());
            }
            _ => {}
        }
        data
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = ::h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ::h2::Error>>> {
        if !self.data_ended {
            match ready!(self.poll_data(context)) {
                Some(data) => return Poll::Ready(Some(data.map(Frame::data))),
                None => self.data_ended = true,
            }
        }
        self.stream
            .poll_trailers(context)
            .map(|trailers| trailers.transpose().map(|trailers| trailers.map(Frame::trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.is_end_stream() => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}
