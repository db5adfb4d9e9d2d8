//! Frames of a stream (RFC 9114 §7), as they come. No frame is kept here: what is in it is handed on piece by piece.

use crate::h3::varint;
use bytes::{Buf, Bytes};
use quinn::{ReadError, RecvStream, VarInt};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// Types of frames.
pub(super) const DATA: u64 = 0x00;
pub(super) const HEADERS: u64 = 0x01;
pub(super) const CANCEL_PUSH: u64 = 0x03;
pub(super) const SETTINGS: u64 = 0x04;
pub(super) const PUSH_PROMISE: u64 = 0x05;
pub(super) const GOAWAY: u64 = 0x07;
pub(super) const MAX_PUSH_ID: u64 = 0x0d;

/// Those that HTTP/2 has and HTTP/3 does not (RFC 9114 §7.2.8).
pub(super) const OF_HTTP2: [u64; 4] = [0x02, 0x06, 0x08, 0x09];

/// Bytes that are taken from a stream at once.
const CHUNK: usize = 64 * 1024;

/// Where the bytes of a stream come from.
pub(super) trait Source {
    /// The next ones; `None` at the end of the stream.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>>;

    /// No more is taken of it. Nothing happens if it has ended.
    fn stop(&mut self, code: VarInt);
}

impl Source for RecvStream {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
        let chunk = pin!(self.read_chunk(CHUNK, true)).poll(context);
        chunk.map(|chunk| Ok(chunk?.map(|chunk| chunk.bytes)))
    }

    fn stop(&mut self, code: VarInt) {
        // An error says that it has ended.
        let _ = self.stop(code);
    }
}

/// What comes of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A frame of this type, with so many bytes.
    Begun { kind: u64, length: u64 },
    /// Of the frame that was begun last; never empty.
    Content(Bytes),
    /// The end of the stream, between two frames.
    End,
}

/// Why no more comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// The stream ended within a frame.
    Cut,
    /// The client has reset the stream, or the connection has ended.
    Lost(ReadError),
}

/// The frames of a stream.
pub(super) struct Frames<S> {
    source: S,
    /// What has come and was not handed on.
    chunk: Bytes,
    /// The beginning of a frame's type and length.
    head: Vec<u8>,
    /// What is left of a frame.
    left: u64,
}

impl<S: Source> Frames<S> {
    /// `first`: what was read of the stream before, and belongs to frames.
    pub fn new(source: S, first: Bytes) -> Self {
        Self { source, chunk: first, head: Vec::new(), left: 0 }
    }

    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// What is left of the frame that was begun last.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece. Not to be called again after the end, or an error.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Piece, Broken>> {
        loop {
            if self.chunk.is_empty() {
                match ready!(self.source.poll_chunk(context)).map_err(Broken::Lost)? {
                    Some(chunk) => self.chunk = chunk,
                    None if self.left == 0 && self.head.is_empty() => return Poll::Ready(Ok(Piece::End)),
                    None => return Poll::Ready(Err(Broken::Cut)),
                }
            } else if self.left > 0 {
                return Poll::Ready(Ok(Piece::Content(self.take_content())));
            } else if let Some((kind, length)) = self.take_head() {
                self.left = length;
                return Poll::Ready(Ok(Piece::Begun { kind, length }));
            }
        }
    }

    fn take_content(&mut self) -> Bytes {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.chunk.len());
        self.left -= length as u64;
        self.chunk.split_to(length)
    }

    /// Type and length of a frame, once they are there.
    fn take_head(&mut self) -> Option<(u64, u64)> {
        while self.chunk.has_remaining() && self.head.len() < 2 * varint::LONGEST {
            self.head.push(self.chunk.get_u8());
            if let Some((kind, first)) = varint::read(&self.head)
                && let Some((length, _)) = varint::read(&self.head[first..])
            {
                self.head.clear();
                return Some((kind, length));
            }
        }
        None
    }
}

/// Writes the type and the length of a frame.
pub(super) fn write_head(kind: u64, length: usize, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(length as u64, out);
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use std::collections::VecDeque;

    /// Chunks that are all there, then the end.
    pub struct Chunks(pub VecDeque<Bytes>);

    impl Source for Chunks {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
            Poll::Ready(Ok(self.0.pop_front()))
        }

        fn stop(&mut self, _: VarInt) {}
    }

    impl Chunks {
        /// The bytes in chunks of this size.
        pub fn of(bytes: &[u8], size: usize) -> Self {
            Self(bytes.chunks(size).map(Bytes::copy_from_slice).collect())
        }
    }

    pub fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_head(kind, content.len(), &mut bytes);
        bytes.extend(content);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Chunks, frame};
    use super::*;
    use proptest::prelude::*;
    use std::task::Waker;

    type Frame = (u64, Vec<u8>);

    /// All frames, or those before what is wrong.
    fn frames(bytes: &[u8], size: usize) -> (Vec<Frame>, Result<(), Broken>) {
        let mut frames = Frames::new(Chunks::of(bytes, size), Bytes::new());
        let mut found: Vec<Frame> = Vec::new();
        loop {
            match frames.poll_piece(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Piece::Begun { kind, .. })) => found.push((kind, Vec::new())),
                Poll::Ready(Ok(Piece::Content(content))) => found.last_mut().unwrap().1.extend(content),
                Poll::Ready(Ok(Piece::End)) => return (found, Ok(())),
                Poll::Ready(Err(error)) => return (found, Err(error)),
                Poll::Pending => unreachable!(),
            }
        }
    }

    #[test]
    fn a_stream_must_not_end_within_a_frame() {
        let whole = frame(DATA, b"abc");
        for length in 1..whole.len() {
            assert_eq!(frames(&whole[..length], 9).1, Err(Broken::Cut), "{length}");
        }
        assert_eq!(frames(&whole, 9), (vec![(DATA, b"abc".to_vec())], Ok(())));
    }

    #[test]
    fn a_frame_of_any_length_is_handed_on_as_it_comes() {
        let mut bytes = Vec::new();
        varint::write(DATA, &mut bytes);
        varint::write(varint::GREATEST, &mut bytes);
        bytes.extend([7; 100]);
        assert_eq!(frames(&bytes, 10), (vec![(DATA, vec![7; 100])], Err(Broken::Cut)));
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_come(
            all in prop::collection::vec((0..varint::GREATEST, prop::collection::vec(any::<u8>(), 0..200)), 0..5),
            size in 1_usize..50,
        ) {
            let bytes: Vec<u8> = all.iter().flat_map(|(kind, content)| frame(*kind, content)).collect();
            prop_assert_eq!(frames(&bytes, size), (all, Ok(())));
        }

        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>, size in 1_usize..50) {
            let _ = frames(&bytes, size);
        }
    }
}
