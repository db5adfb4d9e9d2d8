//! What the fuzz targets in `fuzz/` look at and no other crate may.

use crate::assembly::{Assembly, Piece};
use crate::frame::{self, Frame};
use crate::{HeadKind, ResponseHead, Trailers};
use bytes::Bytes;

/// Bytes of the payload of a frame that comes in parts, at most.
const MOST: usize = 4096;

/// Takes frame after frame, as the server does with what it has fetched from a ring, up to the first that is none.
pub fn frames(mut bytes: Bytes) -> Vec<Frame> {
    let (mut frames, mut assembly) = (Vec::new(), Assembly::default());
    while !bytes.is_empty() {
        let frame = match Piece::take(&mut bytes) {
            Some(Piece::Frame(frame)) => Some(frame),
            Some(Piece::Part(part)) => match assembly.add(&part, MOST) {
                Ok(frame) => frame,
                Err(_) => break,
            },
            None => break,
        };
        frames.extend(frame);
    }
    frames
}

/// The frame of this head, as an engine encodes it.
pub fn encode_head(head: &ResponseHead) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_head(&mut out, HeadKind::Final, head.status, head.reason(), head.fields());
    out
}

/// The frame of these trailers, as an engine encodes it.
pub fn encode_trailers(trailers: &Trailers) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_trailers(&mut out, trailers.fields());
    out
}
