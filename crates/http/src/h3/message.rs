//! The message of a request's stream: a head, a body, and perhaps trailers (RFC 9114 §4.1).

use crate::h3::code;
use crate::h3::frames::{self, Broken, Frames, Piece, Source};
use bytes::Bytes;
use quinn::{RecvStream, VarInt};
use std::task::{Context, Poll, ready};

/// What comes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The head, compressed.
    Head(Bytes),
    /// Of the body; never empty.
    Data(Bytes),
    /// The trailers, compressed.
    Trailers(Bytes),
    End,
}

/// Why no more comes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The client breaks the protocol: the connection has to end with this code.
    Protocol(VarInt),
    /// There is no head.
    Incomplete,
    /// The head or the trailers are longer than they may be.
    TooLarge,
    /// The client has reset the stream, or the connection has ended.
    Lost,
}

/// Reads a message. Dropped, it takes no more of it.
pub(super) struct Message<S: Source = RecvStream> {
    frames: Frames<S>,
    /// Bytes that a head may have, as it comes.
    most: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    BeforeHead,
    BeforeData,
    AfterTrailers,
    /// In a head, or in trailers.
    Section(Vec<u8>, Section),
    Data,
    /// In a frame that means nothing, after which it goes on as before.
    Skipped(After),
}

#[derive(Debug, Clone, Copy)]
enum Section {
    Head,
    Trailers,
}

#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    Head,
    Trailers,
}

impl From<After> for State {
    fn from(after: After) -> Self {
        match after {
            After::Nothing => Self::BeforeHead,
            After::Head => Self::BeforeData,
            After::Trailers => Self::AfterTrailers,
        }
    }
}

impl<S: Source> Message<S> {
    /// `most`: bytes that a head may have, compressed.
    pub fn new(source: S, most: usize) -> Self {
        Self { frames: Frames::new(source, Bytes::new()), most, state: State::BeforeHead }
    }

    /// The next part. Not to be called again after the end, or an error.
    pub fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Result<Part, Wrong>> {
        loop {
            // A frame without content has ended as it began.
            if self.frames.left() == 0
                && let Some(part) = self.end_frame()
            {
                return Poll::Ready(Ok(part));
            }
            let piece = ready!(self.frames.poll_piece(context)).map_err(|broken| match broken {
                Broken::Cut => Wrong::Protocol(code::FRAME_ERROR),
                Broken::Lost(_) => Wrong::Lost,
            })?;
            match (piece, &mut self.state) {
                (Piece::Begun { kind, length }, _) => self.begin_frame(kind, length)?,
                (Piece::Content(data), State::Data) => return Poll::Ready(Ok(Part::Data(data))),
                (Piece::Content(content), State::Section(section, _)) => section.extend_from_slice(&content),
                (Piece::Content(_), _) => {}
                (Piece::End, State::BeforeHead) => return Poll::Ready(Err(Wrong::Incomplete)),
                (Piece::End, _) => return Poll::Ready(Ok(Part::End)),
            }
        }
    }

    fn begin_frame(&mut self, kind: u64, length: u64) -> Result<(), Wrong> {
        let unexpected = Err(Wrong::Protocol(code::FRAME_UNEXPECTED));
        let after = match self.state {
            State::BeforeHead => After::Nothing,
            State::AfterTrailers => After::Trailers,
            _ => After::Head,
        };
        self.state = match (kind, after) {
            (frames::DATA, After::Head) => State::Data,
            (frames::HEADERS, After::Nothing | After::Head) if length > self.most as u64 => {
                return Err(Wrong::TooLarge);
            }
            (frames::HEADERS, After::Nothing) => State::Section(Vec::new(), Section::Head),
            (frames::HEADERS, After::Head) => State::Section(Vec::new(), Section::Trailers),
            (frames::DATA | frames::HEADERS | frames::SETTINGS | frames::GOAWAY, _) => return unexpected,
            (frames::CANCEL_PUSH | frames::PUSH_PROMISE | frames::MAX_PUSH_ID, _) => return unexpected,
            (kind, _) if frames::OF_HTTP2.contains(&kind) => return unexpected,
            // RFC 9114 §9: frames of unknown types mean nothing.
            (_, after) => State::Skipped(after),
        };
        Ok(())
    }

    fn end_frame(&mut self) -> Option<Part> {
        let (next, part) = match &mut self.state {
            State::Section(section, of) => {
                let section = Bytes::from(std::mem::take(section));
                match of {
                    Section::Head => (State::BeforeData, Some(Part::Head(section))),
                    Section::Trailers => (State::AfterTrailers, Some(Part::Trailers(section))),
                }
            }
            State::Data => (State::BeforeData, None),
            State::Skipped(after) => ((*after).into(), None),
            State::BeforeHead | State::BeforeData | State::AfterTrailers => return None,
        };
        self.state = next;
        part
    }
}

/// What comes of it then is no error of the client's, which may have a complete response (RFC 9114 §4.1).
impl<S: Source> Drop for Message<S> {
    fn drop(&mut self) {
        self.frames.source().stop(code::NO_ERROR);
    }
}

#[cfg(test)]
mod tests {
    use super::frames::testing::{Chunks, frame};
    use super::*;
    use crate::h3::frames::{DATA, HEADERS};
    use proptest::prelude::*;
    use std::task::Waker;

    fn parts(bytes: &[u8], size: usize) -> (Vec<Part>, Result<(), Wrong>) {
        let mut message = Message::new(Chunks::of(bytes, size), 100);
        let mut parts = Vec::new();
        loop {
            match message.poll_part(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Part::End)) => return (parts, Ok(())),
                Poll::Ready(Ok(part)) => parts.push(part),
                Poll::Ready(Err(wrong)) => return (parts, Err(wrong)),
                Poll::Pending => unreachable!(),
            }
        }
    }

    fn bytes(frames: &[(u64, &[u8])]) -> Vec<u8> {
        frames.iter().flat_map(|(kind, content)| frame(*kind, content)).collect()
    }

    fn wrong(frames: &[(u64, &[u8])]) -> Wrong {
        parts(&bytes(frames), 1000).1.unwrap_err()
    }

    #[test]
    fn a_message_is_a_head_a_body_and_trailers() {
        const GREASE: u64 = 0x21;
        let all = bytes(&[
            (GREASE, b"x"),
            (HEADERS, b"head"),
            (GREASE, b""),
            (DATA, b"abc"),
            (DATA, b""),
            (GREASE, b"y"),
            (DATA, b"d"),
            (HEADERS, b"trailers"),
            (GREASE, b"z"),
        ]);
        let part = Bytes::from_static;
        let expected = vec![
            Part::Head(part(b"head")),
            Part::Data(part(b"abc")),
            Part::Data(part(b"d")),
            Part::Trailers(part(b"trailers")),
        ];
        assert_eq!(parts(&all, 1000), (expected, Ok(())));
        let (parts, result) = parts(&all, 1);
        assert_eq!((parts.len(), result), (6, Ok(())), "the head, four bytes, and the trailers");
    }

    #[test]
    fn frames_come_in_order() {
        let unexpected = Wrong::Protocol(code::FRAME_UNEXPECTED);
        assert_eq!(wrong(&[(DATA, b"a")]), unexpected);
        assert_eq!(wrong(&[(HEADERS, b""), (HEADERS, b""), (DATA, b"a")]), unexpected);
        assert_eq!(wrong(&[(HEADERS, b""), (HEADERS, b""), (HEADERS, b"")]), unexpected);
        for kind in [0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0d] {
            assert_eq!(wrong(&[(kind, b"")]), unexpected, "{kind:x}");
            assert_eq!(wrong(&[(HEADERS, b""), (kind, b"")]), unexpected, "{kind:x}");
        }
    }

    #[test]
    fn a_message_has_a_head() {
        assert_eq!(wrong(&[]), Wrong::Incomplete);
        assert_eq!(wrong(&[(0x21, b"a")]), Wrong::Incomplete);
    }

    #[test]
    fn nothing_is_kept_of_a_head_that_is_too_long() {
        assert_eq!(wrong(&[(HEADERS, &[0; 101])]), Wrong::TooLarge);
        assert_eq!(wrong(&[(HEADERS, b""), (HEADERS, &[0; 101])]), Wrong::TooLarge);
        let mut endless = Vec::new();
        frames::write_head(HEADERS, usize::MAX >> 2, &mut endless);
        assert_eq!(parts(&endless, 1000).1, Err(Wrong::TooLarge));
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let whole = bytes(&[(HEADERS, b"head"), (DATA, b"abc")]);
        assert_eq!(parts(&whole[..whole.len() - 1], 1000).1, Err(Wrong::Protocol(code::FRAME_ERROR)));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>, size in 1_usize..20) {
            let _ = parts(&bytes, size);
        }
    }
}
