//! Frames that are larger than half a ring, which come in parts.

use crate::frame::{Frame, HEAD, HEADER, INFORMATIONAL, LOG, PART, TRAILERS};
use bytes::{Buf, Bytes};

/// What has come of such a frame.
#[derive(Debug, Default)]
pub(crate) struct Assembly(Vec<u8>);

/// What was put together is no frame that may come in parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoFrame;

impl Assembly {
    /// Takes the next part; with the last one the frame, whose payload has `most` bytes at most.
    pub fn add(&mut self, part: &[u8], most: usize) -> Result<Option<Frame>, NoFrame> {
        let is_first = self.0.is_empty();
        let header = if is_first { part } else { &self.0 };
        let &[a, b, c, d, kind, ..] = header.first_chunk::<HEADER>().ok_or(NoFrame)?;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let whole = HEADER + length;
        let come = self.0.len() + part.len();
        if length > most || come > whole || part.is_empty() || !comes_in_parts(kind) {
            return Err(NoFrame);
        }
        self.0.extend_from_slice(part);
        if come < whole {
            return Ok(None);
        }
        Frame::take(&mut Bytes::from(std::mem::take(&mut self.0))).map(Some).ok_or(NoFrame)
    }

    /// Whether the first part was of a line for the log.
    pub fn is_log(&self) -> bool {
        self.0.get(4) == Some(&LOG)
    }
}

/// What lies in a ring.
pub(crate) enum Piece {
    Frame(Frame),
    /// A part of a frame.
    Part(Bytes),
}

impl Piece {
    /// Takes the first piece from bytes that hold at least one, whole. `None` if it is not one of this protocol.
    pub fn take(bytes: &mut Bytes) -> Option<Self> {
        if bytes.get(4) != Some(&PART) {
            return Frame::take(bytes).map(Self::Frame);
        }
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        if bytes.len() < HEADER || length > bytes.len() - HEADER {
            return None;
        }
        bytes.advance(HEADER);
        Some(Self::Part(bytes.split_to(length)))
    }
}

/// Whether frames of this kind may come in parts.
fn comes_in_parts(kind: u8) -> bool {
    matches!(kind, HEAD | INFORMATIONAL | LOG | TRAILERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{self, HeadKind};

    const MOST: usize = 10_000;

    fn head(bytes: usize) -> Vec<u8> {
        let (mut out, value) = (Vec::new(), vec![b'v'; bytes]);
        frame::encode_head(&mut out, HeadKind::Final, 200, b"", std::iter::once((&b"X"[..], &value[..])));
        out
    }

    #[test]
    fn a_frame_is_whole_with_its_last_part() {
        let encoded = head(9000);
        for size in [HEADER, 100, 8999, encoded.len()] {
            let mut assembly = Assembly::default();
            let mut parts = encoded.chunks(size).peekable();
            let mut whole = None;
            while let Some(part) = parts.next() {
                whole = assembly.add(part, MOST).unwrap();
                assert_eq!(whole.is_some(), parts.peek().is_none());
            }
            let Some(Frame::Head(head)) = whole else { panic!("no head") };
            assert_eq!(head.fields().next().unwrap().1.len(), 9000);
            assert_eq!(assembly.add(&encoded[..HEADER], MOST), Ok(None), "the next one");
        }
    }

    #[test]
    fn what_an_engine_makes_up_is_no_frame() {
        let add = |part: &[u8]| Assembly::default().add(part, MOST);
        assert_eq!(add(&head(MOST + 1)[..100]), Err(NoFrame), "too large");
        assert_eq!(add(&[1, 0, 0]), Err(NoFrame), "less than a header");
        assert_eq!(add(&[&head(5)[..], b"x"].concat()), Err(NoFrame), "more than it says");
        assert_eq!(add(&[frame::body_header(100).as_slice(), b"x"].concat()), Err(NoFrame));
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(&head(100)[..50], MOST), Ok(None));
        assert_eq!(assembly.add(&[], MOST), Err(NoFrame), "it would never end");
    }
}
