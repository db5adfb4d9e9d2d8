//! The unidirectional streams of a client: how it speaks HTTP/3 (RFC 9114 §6.2, §7.2.4).

use crate::allowance::Allowance;
use crate::h3::code;
use crate::h3::frames::{self, Broken, Frames, Piece, Source};
use crate::h3::qpack::{DecoderInstructions, EncoderInstructions, Unexpected};
use crate::h3::varint;
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quinn::{Connection, RecvStream, VarInt};
use std::cell::Cell;
use std::future::{pending, poll_fn};

/// Types of streams.
const CONTROL: u64 = 0x00;
const PUSH: u64 = 0x01;
const ENCODER: u64 = 0x02;
const DECODER: u64 = 0x03;

/// Bytes of a frame that is read whole; `SETTINGS` of browsers have some 40.
const LONGEST_FRAME: u64 = 4096;

/// Settings of HTTP/2 that HTTP/3 does not have (RFC 9114 §7.2.4.1).
const SETTINGS_OF_HTTP2: [u64; 5] = [0x00, 0x02, 0x03, 0x04, 0x05];

/// What must be there once at most.
#[derive(Default)]
struct Seen {
    control: Cell<bool>,
    encoder: Cell<bool>,
    decoder: Cell<bool>,
}

/// Reads all that a client says of the connection. Ends with the code that the connection has to end with; never, if the connection
/// itself does. `allowance`: for frames and instructions that ask for nothing.
pub(super) async fn read(connection: &Connection, allowance: &Allowance) -> VarInt {
    let seen = Seen::default();
    let mut streams = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(result) = streams.next(), if !streams.is_empty() => {
                if let Err(code) = result {
                    return code;
                }
            }
            stream = connection.accept_uni() => match stream {
                Ok(stream) => streams.push(read_stream(stream, &seen, allowance)),
                Err(_) => return pending().await,
            }
        }
    }
}

async fn read_stream(mut stream: RecvStream, seen: &Seen, allowance: &Allowance) -> Result<(), VarInt> {
    let mut first = Vec::new();
    let (kind, rest) = loop {
        match poll_fn(|context| stream.poll_chunk(context)).await {
            Ok(Some(chunk)) => first.extend_from_slice(&chunk),
            // RFC 9114 §6.2: one that ends before its type says nothing.
            Ok(None) | Err(_) => return Ok(()),
        }
        if let Some((kind, length)) = varint::read(&first) {
            break (kind, Bytes::from(first).slice(length..));
        }
    };
    let once = |was_seen: &Cell<bool>| match was_seen.replace(true) {
        true => Err(code::STREAM_CREATION_ERROR),
        false => Ok(()),
    };
    match kind {
        CONTROL => {
            once(&seen.control)?;
            read_control(Frames::new(stream, rest), allowance).await
        }
        ENCODER => {
            once(&seen.encoder)?;
            let mut instructions = EncoderInstructions;
            let wrong = code::QPACK_ENCODER_STREAM_ERROR;
            read_instructions(stream, rest, |bytes| instructions.read(bytes), wrong, allowance).await
        }
        DECODER => {
            once(&seen.decoder)?;
            let mut instructions = DecoderInstructions::default();
            let wrong = code::QPACK_DECODER_STREAM_ERROR;
            read_instructions(stream, rest, |bytes| instructions.read(bytes), wrong, allowance).await
        }
        PUSH => Err(code::STREAM_CREATION_ERROR),
        _ => {
            stream.stop(code::STREAM_CREATION_ERROR).unwrap_or_default();
            charge(allowance, 1)
        }
    }
}

async fn read_instructions(
    mut stream: RecvStream,
    first: Bytes,
    mut read: impl FnMut(&[u8]) -> Result<usize, Unexpected>,
    wrong: VarInt,
    allowance: &Allowance,
) -> Result<(), VarInt> {
    let mut chunk = first;
    loop {
        let count = read(&chunk).map_err(|_| wrong)?;
        charge(allowance, count)?;
        chunk = match poll_fn(|context| stream.poll_chunk(context)).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Err(code::CLOSED_CRITICAL_STREAM),
            Err(error) => return lost(Broken::Lost(error)).await,
        };
    }
}

fn charge(allowance: &Allowance, count: usize) -> Result<(), VarInt> {
    if (0..count).all(|_| allowance.take()) { Ok(()) } else { Err(code::EXCESSIVE_LOAD) }
}

/// A client must not end its control stream; with the connection it ends anyhow.
async fn lost(broken: Broken) -> Result<(), VarInt> {
    match broken {
        Broken::Lost(quinn::ReadError::ConnectionLost(_)) => pending().await,
        Broken::Lost(_) => Err(code::CLOSED_CRITICAL_STREAM),
        Broken::Cut => Err(code::FRAME_ERROR),
    }
}

pub(super) async fn read_control<S: Source>(
    mut frames: Frames<S>,
    allowance: &Allowance,
) -> Result<(), VarInt> {
    let mut control = Control::default();
    loop {
        let (kind, length) = match poll_fn(|context| frames.poll_piece(context)).await {
            Ok(Piece::Begun { kind, length }) => (kind, length),
            Ok(Piece::Content(_)) => continue,
            Ok(Piece::End) => return Err(code::CLOSED_CRITICAL_STREAM),
            Err(broken) => return lost(broken).await,
        };
        charge(allowance, 1)?;
        if control.begin(kind)? == Read::Nothing {
            continue;
        }
        if length > LONGEST_FRAME {
            return Err(code::EXCESSIVE_LOAD);
        }
        let mut content = Vec::new();
        while frames.left() > 0 {
            match poll_fn(|context| frames.poll_piece(context)).await {
                Ok(Piece::Content(more)) => content.extend_from_slice(&more),
                Ok(_) => return Err(code::FRAME_ERROR),
                Err(broken) => return lost(broken).await,
            }
        }
        control.take(kind, &content)?;
    }
}

/// What a client has said on its control stream.
#[derive(Default)]
struct Control {
    has_settings: bool,
    max_push_id: u64,
}

/// What is read of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    All,
    /// It means nothing here.
    Nothing,
}

impl Control {
    fn begin(&mut self, kind: u64) -> Result<Read, VarInt> {
        match kind {
            frames::SETTINGS if self.has_settings => Err(code::FRAME_UNEXPECTED),
            frames::SETTINGS => {
                self.has_settings = true;
                Ok(Read::All)
            }
            _ if !self.has_settings => Err(code::MISSING_SETTINGS),
            frames::DATA | frames::HEADERS | frames::PUSH_PROMISE => Err(code::FRAME_UNEXPECTED),
            kind if frames::OF_HTTP2.contains(&kind) => Err(code::FRAME_UNEXPECTED),
            frames::GOAWAY | frames::MAX_PUSH_ID | frames::CANCEL_PUSH => Ok(Read::All),
            _ => Ok(Read::Nothing),
        }
    }

    fn take(&mut self, kind: u64, content: &[u8]) -> Result<(), VarInt> {
        if kind == frames::SETTINGS {
            return check_settings(content);
        }
        let id = match varint::read(content) {
            Some((id, length)) if length == content.len() => id,
            _ => return Err(code::FRAME_ERROR),
        };
        match kind {
            // RFC 9114 §7.2.3, §7.2.7: nothing was promised, and the number only grows.
            frames::CANCEL_PUSH => Err(code::ID_ERROR),
            frames::MAX_PUSH_ID if id < self.max_push_id => Err(code::ID_ERROR),
            frames::MAX_PUSH_ID => {
                self.max_push_id = id;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// None of them changes what is sent here: there is no dynamic table, and responses are as long as they are.
fn check_settings(mut content: &[u8]) -> Result<(), VarInt> {
    let mut seen = Vec::new();
    while content.has_remaining() {
        let mut number = || {
            let (number, length) = varint::read(content).ok_or(code::FRAME_ERROR)?;
            content.advance(length);
            Ok::<_, VarInt>(number)
        };
        let (setting, _) = (number()?, number()?);
        if SETTINGS_OF_HTTP2.contains(&setting) || seen.contains(&setting) {
            return Err(code::SETTINGS_ERROR);
        }
        seen.push(setting);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h3::frames::testing::frame;

    fn settings(pairs: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (setting, value) in pairs {
            varint::write(*setting, &mut bytes);
            varint::write(*value, &mut bytes);
        }
        bytes
    }

    #[test]
    fn settings_are_pairs_that_come_once() {
        assert_eq!(check_settings(&settings(&[(1, 0), (6, 1000), (7, 100), (0x21, 1)])), Ok(()));
        assert_eq!(check_settings(&[]), Ok(()));
        assert_eq!(check_settings(&settings(&[(6, 1), (6, 1)])), Err(code::SETTINGS_ERROR));
        assert_eq!(check_settings(&settings(&[(2, 1)])), Err(code::SETTINGS_ERROR));
        assert_eq!(check_settings(&[6]), Err(code::FRAME_ERROR));
        assert_eq!(check_settings(&[6, 0x40]), Err(code::FRAME_ERROR));
    }

    #[test]
    fn settings_come_first_and_once() {
        let mut control = Control::default();
        assert_eq!(control.begin(0x21), Err(code::MISSING_SETTINGS));
        assert_eq!(control.begin(frames::SETTINGS), Ok(Read::All));
        assert_eq!(control.begin(frames::SETTINGS), Err(code::FRAME_UNEXPECTED));
        assert_eq!(control.begin(0x21), Ok(Read::Nothing));
        for kind in [frames::DATA, frames::HEADERS, frames::PUSH_PROMISE, 0x02, 0x06, 0x08, 0x09] {
            assert_eq!(control.begin(kind), Err(code::FRAME_UNEXPECTED));
        }
    }

    #[test]
    fn ids_are_checked() {
        let mut control = Control { has_settings: true, max_push_id: 0 };
        assert_eq!(control.take(frames::GOAWAY, &[0]), Ok(()));
        assert_eq!(control.take(frames::GOAWAY, &[]), Err(code::FRAME_ERROR));
        assert_eq!(control.take(frames::GOAWAY, &[0, 0]), Err(code::FRAME_ERROR));
        assert_eq!(control.take(frames::MAX_PUSH_ID, &[5]), Ok(()));
        assert_eq!(control.take(frames::MAX_PUSH_ID, &[4]), Err(code::ID_ERROR));
        assert_eq!(control.take(frames::CANCEL_PUSH, &[0]), Err(code::ID_ERROR));
        assert_eq!(frame(frames::GOAWAY, &[0]), [7, 1, 0]);
    }
}
