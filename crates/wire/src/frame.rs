//! What lies in a response ring: frames, each published whole.
//!
//! ```text
//! u32 payload length │ u8 kind │ u8 flags │ u16 zero │ payload
//! ```
//! | kind | payload |
//! |---|---|
//! | 1 head, 2 informational head | u16 status, u16 reason length, u32 number of fields, reason, then for each field: u16 name length, u16 zero, u32 value length, name, value |
//! | 3 body | bytes |
//! | 4 end | flag 1: the response broke off, flag 2: the request ran for longer than it may, flag 4: its head was too large, and nothing of the response counts; nothing, or three u64 in ns: how long the request waited, how long it has been running, CPU time of that (all bits set: not measured); and then nothing, or a u64: the number of its thread |
//! | 5 log | u8 level (syslog's 0–7), 3 zero bytes, u32 message length, message, context (JSON, may be empty) |
//! | 6 trailers | u32 number of fields, fields as of a head; at most one such frame, between body and end |
//! | 7 part | bytes of a head, of trailers or of a log frame, header and all, that is larger than half the ring. The first part has at least that header; parts follow one another, with no other frame between them, until the frame is whole |

use crate::clock::nanoseconds;
use bytes::{Buf, Bytes};
use std::time::Duration;

/// Bytes of a frame's header.
pub(crate) const HEADER: usize = 8;
/// Bytes of a log frame beside message and context.
pub(crate) const LOG_OVERHEAD: usize = HEADER + 8;

pub(crate) const HEAD: u8 = 1;
pub(crate) const INFORMATIONAL: u8 = 2;
pub(crate) const BODY: u8 = 3;
pub(crate) const END: u8 = 4;
pub(crate) const LOG: u8 = 5;
pub(crate) const TRAILERS: u8 = 6;
pub(crate) const PART: u8 = 7;

pub(crate) const TRUNCATED: u8 = 1;
pub(crate) const OVERDUE: u8 = 2;
pub(crate) const REFUSED: u8 = 4;

/// Bytes before the first field of a trailers frame's payload.
const TRAILERS_PREFIX: usize = 4;
/// Bytes of an end frame's payload.
const TIMING: usize = 32;
const WITHOUT_THREAD: usize = 24;
/// Stands for what is not there.
const NOTHING: u64 = u64::MAX;

/// A part of a response, as the server reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Head(ResponseHead),
    /// 1xx: the real head follows.
    Informational(ResponseHead),
    Body(Bytes),
    /// Fields behind the body.
    Trailers(Trailers),
    /// Nothing follows.
    End(End),
    Log(LogLine),
}

/// The end of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub completion: Completion,
    /// `None`: the engine does not measure.
    pub timing: Option<Timing>,
}

/// Where the time of a request went, as its engine says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the submission to the start.
    pub waited: Duration,
    /// From the start to the end of the response.
    pub execution: Duration,
    /// CPU time of the execution; measured for some requests only.
    pub cpu: Option<Duration>,
    /// The engine's thread, by its number; `None`: it has none.
    pub thread: Option<u32>,
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Complete,
    /// The engine could not end what it had begun: the client must not take what it has for the whole.
    Truncated,
    /// The request ran for longer than it may, and the engine has ended it.
    Overdue,
    /// The head was larger than frames may be: there is no response.
    Refused,
}

/// Status line and fields of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// 100 to 999.
    pub status: u16,
    /// Offset of the first field in `payload`.
    fields_at: usize,
    fields: u32,
    payload: Bytes,
}

/// Fields behind the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailers {
    fields: u32,
    payload: Bytes,
}

/// A line for the log, of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// As in syslog: 0 emergency to 7 debug.
    pub level: u8,
    pub message: Vec<u8>,
    /// A JSON object, or empty.
    pub context: Vec<u8>,
}

impl ResponseHead {
    /// The reason phrase that the script gave; may be empty.
    pub fn reason(&self) -> &[u8] {
        &self.payload[8..self.fields_at]
    }

    /// Number of fields that the engine announced: a hint, since it may have lied.
    pub fn field_count(&self) -> usize {
        self.fields as usize
    }

    /// Name and value of every field, in order. Unchecked: they are what the engine wrote.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        parse_fields(self.fields, &self.payload[self.fields_at..])
    }
}

impl Trailers {
    /// Name and value of every field, in order. Unchecked: they are what the engine wrote.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        parse_fields(self.fields, &self.payload[TRAILERS_PREFIX..])
    }
}

impl Frame {
    /// Takes the first frame from bytes that hold at least one, whole. `None` if it is not one of this protocol.
    pub(crate) fn take(bytes: &mut Bytes) -> Option<Self> {
        let &[a, b, c, d, kind, flags, _, _] = bytes.first_chunk::<HEADER>()?;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > bytes.len() - HEADER {
            return None;
        }
        bytes.advance(HEADER);
        let payload = bytes.split_to(length);
        Some(match kind {
            HEAD => Self::Head(parse_head(payload)?),
            INFORMATIONAL => Self::Informational(parse_head(payload)?),
            BODY => Self::Body(payload),
            TRAILERS => Self::Trailers(parse_trailers(payload)?),
            END => Self::End(End { completion: completion(flags), timing: Timing::parse(&payload) }),
            LOG => Self::Log(parse_log(&payload)?),
            _ => return None,
        })
    }
}

impl Timing {
    fn parse(payload: &[u8]) -> Option<Self> {
        // Its end may be left out.
        let bytes: [u8; TIMING] = match payload.len() {
            TIMING => payload.try_into().ok()?,
            WITHOUT_THREAD => [payload, &NOTHING.to_le_bytes()].concat().try_into().ok()?,
            _ => return None,
        };
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("invariant: 8 bytes"));
        Some(Self {
            waited: Duration::from_nanos(word(0)),
            execution: Duration::from_nanos(word(8)),
            cpu: (word(16) != NOTHING).then(|| Duration::from_nanos(word(16))),
            thread: u32::try_from(word(24)).ok(),
        })
    }

    fn encode(&self) -> [u8; TIMING] {
        let mut bytes = [0; TIMING];
        let words = [
            nanoseconds(self.waited),
            nanoseconds(self.execution),
            self.cpu.map_or(NOTHING, nanoseconds),
            self.thread.map_or(NOTHING, u64::from),
        ];
        for (word, target) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn completion(flags: u8) -> Completion {
    match (flags & REFUSED, flags & OVERDUE, flags & TRUNCATED) {
        (0, 0, 0) => Completion::Complete,
        (0, 0, _) => Completion::Truncated,
        (0, _, _) => Completion::Overdue,
        _ => Completion::Refused,
    }
}

fn parse_head(payload: Bytes) -> Option<ResponseHead> {
    let fixed = payload.get(..8)?;
    let status = u16::from_le_bytes([fixed[0], fixed[1]]);
    let fields_at = 8 + u16::from_le_bytes([fixed[2], fixed[3]]) as usize;
    let fields = u32::from_le_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    if !(100..=999).contains(&status) || fields_at > payload.len() {
        return None;
    }
    Some(ResponseHead { status, fields_at, fields, payload })
}

fn parse_trailers(payload: Bytes) -> Option<Trailers> {
    let fields = u32::from_le_bytes(*payload.first_chunk()?);
    Some(Trailers { fields, payload })
}

/// At most so many fields as were announced, and no more than there are whole.
fn parse_fields(announced: u32, mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    (0..announced).map_while(move |_| {
        let (fixed, tail) = rest.split_at_checked(8)?;
        let name_length = u16::from_le_bytes([fixed[0], fixed[1]]) as usize;
        let value_length = u32::from_le_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]) as usize;
        let (name, tail) = tail.split_at_checked(name_length)?;
        let (value, tail) = tail.split_at_checked(value_length)?;
        rest = tail;
        Some((name, value))
    })
}

fn parse_log(payload: &[u8]) -> Option<LogLine> {
    let (fixed, rest) = payload.split_at_checked(8)?;
    let length = u32::from_le_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]) as usize;
    let (message, context) = rest.split_at_checked(length)?;
    Some(LogLine { level: fixed[0].min(7), message: message.to_vec(), context: context.to_vec() })
}

/// Which head a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    Final,
    /// 1xx: the real head follows.
    Informational,
}

/// Engine: encodes one frame behind what `out` holds.
pub(crate) fn encode_head<'a>(
    out: &mut Vec<u8>,
    kind: HeadKind,
    status: u16,
    reason: &[u8],
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    let start = begin(out, if kind == HeadKind::Final { HEAD } else { INFORMATIONAL }, 0);
    let reason = &reason[..reason.len().min(512)];
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&(reason.len() as u16).to_le_bytes());
    let count_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(reason);
    let count = encode_fields(out, fields);
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    finish(out, start);
}

/// Engine: encodes the fields behind the body.
pub(crate) fn encode_trailers<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    let start = begin(out, TRAILERS, 0);
    let count_at = out.len();
    out.extend_from_slice(&[0; TRAILERS_PREFIX]);
    let count = encode_fields(out, fields);
    out[count_at..count_at + TRAILERS_PREFIX].copy_from_slice(&count.to_le_bytes());
    finish(out, start);
}

/// How many they were; one whose name is longer than 64 KiB is left out.
fn encode_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> u32 {
    let mut count: u32 = 0;
    for (name, value) in fields {
        let Ok(name_length) = u16::try_from(name.len()) else { continue };
        let lengths = u64::from(name_length) | (value.len() as u64) << 32;
        out.extend_from_slice(&lengths.to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(value);
        count += 1;
    }
    count
}

/// Engine: encodes a log line; what is too long is cut by the caller.
pub(crate) fn encode_log(out: &mut Vec<u8>, level: u8, message: &[u8], context: &[u8]) {
    let start = begin(out, LOG, 0);
    out.extend_from_slice(&[level, 0, 0, 0]);
    out.extend_from_slice(&(message.len() as u32).to_le_bytes());
    out.extend_from_slice(message);
    out.extend_from_slice(context);
    finish(out, start);
}

/// Engine: the header of a part.
pub(crate) fn part_header(length: usize) -> [u8; HEADER] {
    header(length as u32, PART, 0)
}

/// Engine: the header of a body frame.
pub(crate) fn body_header(length: usize) -> [u8; HEADER] {
    header(length as u32, BODY, 0)
}

/// Engine: the whole end frame.
pub(crate) fn end_frame(completion: Completion, timing: &Timing) -> [u8; HEADER + TIMING] {
    let flags = match completion {
        Completion::Complete => 0,
        Completion::Truncated => TRUNCATED,
        Completion::Overdue => TRUNCATED | OVERDUE,
        Completion::Refused => TRUNCATED | REFUSED,
    };
    let mut frame = [0; HEADER + TIMING];
    frame[..HEADER].copy_from_slice(&header(TIMING as u32, END, flags));
    frame[HEADER..].copy_from_slice(&timing.encode());
    frame
}

fn header(length: u32, kind: u8, flags: u8) -> [u8; HEADER] {
    let [a, b, c, d] = length.to_le_bytes();
    [a, b, c, d, kind, flags, 0, 0]
}

fn begin(out: &mut Vec<u8>, kind: u8, flags: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&header(0, kind, flags));
    start
}

fn finish(out: &mut [u8], start: usize) {
    let length = (out.len() - start - HEADER) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reparse(bytes: &[u8]) -> Option<Frame> {
        Frame::take(&mut Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn a_head_is_read_back() {
        let mut out = Vec::new();
        let fields = [(&b"Content-Type"[..], &b"text/html"[..]), (b"X-Empty", b"")];
        encode_head(&mut out, HeadKind::Final, 404, b"Nowhere", fields.into_iter());
        let Some(Frame::Head(head)) = reparse(&out) else { panic!("no head") };
        assert_eq!((head.status, head.reason()), (404, &b"Nowhere"[..]));
        assert_eq!(head.fields().collect::<Vec<_>>(), fields);
    }

    #[test]
    fn trailers_are_read_back() {
        let mut out = Vec::new();
        let fields = [(&b"X-Sum"[..], &b"abc"[..]), (b"X-Empty", b"")];
        encode_trailers(&mut out, fields.into_iter());
        let Some(Frame::Trailers(trailers)) = reparse(&out) else { panic!("no trailers") };
        assert_eq!(trailers.fields().collect::<Vec<_>>(), fields);
        assert_eq!(reparse(&header(0, TRAILERS, 0)), None, "without a number of fields");
    }

    #[test]
    fn a_status_that_http_does_not_have_is_refused() {
        let mut out = Vec::new();
        encode_head(&mut out, HeadKind::Final, 99, b"", std::iter::empty());
        assert_eq!(reparse(&out), None);
    }

    #[test]
    fn frames_are_taken_one_by_one() {
        let mut out = body_header(2).to_vec();
        out.extend_from_slice(b"hi");
        let timing = Timing {
            waited: Duration::from_micros(7),
            execution: Duration::from_millis(20),
            cpu: Some(Duration::from_nanos(1)),
            thread: Some(3),
        };
        out.extend_from_slice(&end_frame(Completion::Complete, &timing));
        let mut bytes = Bytes::from(out);
        let end = End { completion: Completion::Complete, timing: Some(timing) };
        assert_eq!(Frame::take(&mut bytes), Some(Frame::Body(Bytes::from_static(b"hi"))));
        assert_eq!(Frame::take(&mut bytes), Some(Frame::End(end)));
        assert!(bytes.is_empty());
    }

    #[test]
    fn the_way_in_which_a_response_ended_is_read_back() {
        let timing = Timing { waited: Duration::ZERO, execution: Duration::ZERO, cpu: None, thread: None };
        for completion in
            [Completion::Complete, Completion::Truncated, Completion::Overdue, Completion::Refused]
        {
            let end = End { completion, timing: Some(timing) };
            assert_eq!(reparse(&end_frame(completion, &timing)), Some(Frame::End(end)));
        }
    }

    #[test]
    fn a_log_line_is_read_back() {
        let mut out = Vec::new();
        encode_log(&mut out, 4, b"careful", b"{}");
        let line = LogLine { level: 4, message: b"careful".to_vec(), context: b"{}".to_vec() };
        assert_eq!(reparse(&out), Some(Frame::Log(line)));
    }

    #[test]
    fn an_end_needs_no_timing_no_cpu_time_and_no_thread() {
        let broken = End { completion: Completion::Truncated, timing: None };
        assert_eq!(reparse(&header(0, END, TRUNCATED)), Some(Frame::End(broken)));
        let execution = Duration::from_secs(1);
        let timing = Timing { waited: Duration::ZERO, execution, cpu: None, thread: None };
        let whole = End { completion: Completion::Complete, timing: Some(timing) };
        let frame = end_frame(Completion::Complete, &timing);
        assert_eq!(reparse(&frame), Some(Frame::End(whole)));
        let mut short = header(WITHOUT_THREAD as u32, END, 0).to_vec();
        short.extend_from_slice(&frame[HEADER..HEADER + WITHOUT_THREAD]);
        assert_eq!(reparse(&short), Some(Frame::End(whole)));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            reparse(&bytes);
        }

        #[test]
        fn arbitrary_payloads_never_panic(kind: u8, flags: u8, payload: Vec<u8>) {
            let mut bytes = header(payload.len() as u32, kind, flags).to_vec();
            bytes.extend_from_slice(&payload);
            match reparse(&bytes) {
                Some(Frame::Head(head) | Frame::Informational(head)) => {
                    head.reason();
                    head.fields().for_each(drop);
                }
                Some(Frame::Trailers(trailers)) => trailers.fields().for_each(drop),
                _ => {}
            }
        }
    }
}
