//! What the fuzz targets in `fuzz/` look at and no other crate may.

use crate::frame::{self, Frame};
use crate::{HeadKind, ResponseHead, Trailers};
use bytes::Bytes;

/// Takes frame after frame, as the server does with what it has fetched from a ring, up to the first that is none.
pub fn frames(mut bytes: Bytes) -> Vec<Frame> {
    let next = || if bytes.is_empty() { None } else { Frame::take(&mut bytes) };
    std::iter::from_fn(next).collect()
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
