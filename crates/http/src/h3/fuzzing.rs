//! What the fuzz targets in `fuzz/` look at and no other crate may: each function is one of this module, with types that can
//! be named outside.

use crate::allowance::Allowance;
use crate::h3::frames::{Frames, Source};
use crate::h3::message::{Message, Part, Wrong};
use crate::h3::qpack::{self, DecoderInstructions, EncoderInstructions, FieldSection, Line, Malformed};
use crate::h3::{control, fields};
use bytes::Bytes;
use http::HeaderMap;
use quinn::{ReadError, VarInt};
use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The stream of a request, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// Compressed.
    pub head: Option<Bytes>,
    pub body: Vec<u8>,
    /// Compressed.
    pub trailers: Option<Bytes>,
    pub end: Option<End>,
}

/// Why nothing more came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    /// The connection ends with this code.
    Protocol(u64),
    Incomplete,
    TooLarge,
}

/// Why a field section is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Wrong,
    TooLarge,
}

/// Bytes that are all there, in chunks of one size.
struct Chunks(VecDeque<Bytes>);

impl Chunks {
    fn of(bytes: &[u8], size: usize) -> Self {
        Self(bytes.chunks(size.max(1)).map(Bytes::copy_from_slice).collect())
    }
}

impl Source for Chunks {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
        Poll::Ready(Ok(self.0.pop_front()))
    }

    fn stop(&mut self, _: VarInt) {}
}

/// Reads the stream of a request that comes in chunks of this size. `most`: bytes that a head may have.
pub fn read_message(bytes: &[u8], size: usize, most: usize) -> Read {
    let mut message = Message::new(Chunks::of(bytes, size), most);
    let mut read = Read::default();
    while read.end.is_none() {
        match message.poll_part(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Part::Head(section))) => read.head = Some(section),
            Poll::Ready(Ok(Part::Data(data))) => read.body.extend_from_slice(&data),
            Poll::Ready(Ok(Part::Trailers(section))) => read.trailers = Some(section),
            Poll::Ready(Ok(Part::End)) => read.end = Some(End::Complete),
            Poll::Ready(Err(Wrong::Protocol(code))) => read.end = Some(End::Protocol(code.into_inner())),
            Poll::Ready(Err(Wrong::TooLarge)) => read.end = Some(End::TooLarge),
            Poll::Ready(Err(Wrong::Incomplete | Wrong::Lost)) => read.end = Some(End::Incomplete),
            Poll::Pending => unreachable!("all bytes are there"),
        }
    }
    read
}

/// The code that the control stream of a client ends with, in chunks of this size.
pub fn read_control(bytes: &[u8], size: usize) -> Option<u64> {
    let allowance = Allowance::new(u32::MAX, 0);
    let frames = Frames::new(Chunks::of(bytes, size), Bytes::new());
    let read = pin!(control::read_control(frames, &allowance));
    match read.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ended) => ended.err().map(VarInt::into_inner),
        Poll::Pending => unreachable!("all bytes are there"),
    }
}

/// How many instructions a client's encoder and its decoder may have sent, in chunks of this size; `None`: one that may not be.
pub fn count_instructions(bytes: &[u8], size: usize) -> [Option<usize>; 2] {
    let (mut of_encoder, mut of_decoder) = (EncoderInstructions, DecoderInstructions::default());
    let chunks = || bytes.chunks(size.max(1));
    [
        chunks().map(|chunk| of_encoder.read(chunk).ok()).sum(),
        chunks().map(|chunk| of_decoder.read(chunk).ok()).sum(),
    ]
}

/// The fields of a section, of so many bytes at most.
pub fn decode(section: &[u8], most: usize) -> Result<Vec<(Bytes, Bytes)>, Refusal> {
    let fields = qpack::decode(section, most).map_err(|malformed| match malformed {
        Malformed::Wrong => Refusal::Wrong,
        Malformed::TooLarge => Refusal::TooLarge,
    })?;
    Ok(fields.into_iter().map(|field| (field.name, field.value)).collect())
}

/// As responses are written.
pub fn encode(fields: &[(Bytes, Bytes)]) -> Vec<u8> {
    let mut section = FieldSection::default();
    fields.iter().for_each(|(name, value)| section.push(Line { name, value }));
    section.into_bytes()
}

/// The fields of a request that is taken, without those that begin with a colon.
pub fn request(section: &[u8], most: usize) -> Option<HeaderMap> {
    fields::request(section, most).ok().map(|asked| asked.head.headers)
}

pub fn trailers(section: &[u8], most: usize) -> Option<HeaderMap> {
    fields::trailers(section, most).ok()
}
