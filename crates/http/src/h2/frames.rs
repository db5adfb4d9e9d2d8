//! Where in the stream of frames a client is. The h2 crate does not say when a header block has begun, nor which frames it
//! has read, and limits of time and number need both.

/// `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n` (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header (RFC 9113 §4.1).
const HEADER: usize = 9;

/// Flags of frames (RFC 9113 §6).
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// A frame's header, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub length: u32,
    pub kind: Kind,
    flags: u8,
    /// The stream that it is of, or 0.
    pub stream: u32,
}

/// Types of frames (RFC 9113 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Headers,
    Priority,
    Reset,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// To be ignored (RFC 9113 §5.5).
    Unknown,
}

/// What the next bytes bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame's header is complete.
    Begun(FrameHead),
    /// A frame is complete.
    Ended(FrameHead),
}

/// Goes past a client's bytes without looking into frames. Whether they are right is for the h2 crate to say.
#[derive(Debug)]
pub(super) struct FrameScanner(Place);

/// Where the next byte is.
#[derive(Debug)]
enum Place {
    /// So many bytes before the end of the preface.
    Preface(usize),
    Header {
        bytes: [u8; HEADER],
        filled: usize,
    },
    Payload {
        head: FrameHead,
        left: usize,
    },
}

const NEXT: Place = Place::Header { bytes: [0; HEADER], filled: 0 };

impl FrameScanner {
    /// At the preface.
    pub fn new() -> Self {
        Self(Place::Preface(PREFACE.len()))
    }

    /// Tells what these bytes bring.
    pub fn scan(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Event)) {
        while !bytes.is_empty() {
            bytes = &bytes[self.step(bytes, &mut tell)..];
        }
    }

    /// Goes past some bytes, and says how many.
    fn step(&mut self, fresh: &[u8], tell: &mut impl FnMut(Event)) -> usize {
        match &mut self.0 {
            Place::Preface(left) | Place::Payload { left, .. } if *left > fresh.len() => {
                *left -= fresh.len();
                fresh.len()
            }
            Place::Preface(left) => {
                let passed = *left;
                self.0 = NEXT;
                passed
            }
            Place::Payload { left, head } => {
                let passed = *left;
                tell(Event::Ended(*head));
                self.0 = NEXT;
                passed
            }
            Place::Header { bytes, filled } => {
                let passed = fresh.len().min(HEADER - *filled);
                bytes[*filled..*filled + passed].copy_from_slice(&fresh[..passed]);
                *filled += passed;
                if *filled == HEADER {
                    let head = FrameHead::parse(*bytes);
                    tell(Event::Begun(head));
                    self.enter(head, tell);
                }
                passed
            }
        }
    }

    fn enter(&mut self, head: FrameHead, tell: &mut impl FnMut(Event)) {
        self.0 = match head.length {
            0 => {
                tell(Event::Ended(head));
                NEXT
            }
            length => Place::Payload { head, left: length as usize },
        };
    }
}

impl FrameHead {
    fn parse([high, middle, low, kind, flags, stream @ ..]: [u8; HEADER]) -> Self {
        Self {
            length: u32::from_be_bytes([0, high, middle, low]),
            kind: Kind::of(kind),
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
        }
    }

    /// Of `SETTINGS` and `PING`.
    pub fn is_acknowledgement(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Of `HEADERS` and `CONTINUATION`: the header block ends with it.
    pub fn ends_headers(&self) -> bool {
        self.flags & END_HEADERS != 0
    }
}

impl Kind {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Data,
            1 => Self::Headers,
            2 => Self::Priority,
            3 => Self::Reset,
            4 => Self::Settings,
            5 => Self::PushPromise,
            6 => Self::Ping,
            7 => Self::GoAway,
            8 => Self::WindowUpdate,
            9 => Self::Continuation,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8], part: usize) -> Vec<Event> {
        let (mut scanner, mut events) = (FrameScanner::new(), Vec::new());
        bytes.chunks(part).for_each(|part| scanner.scan(part, |event| events.push(event)));
        events
    }

    #[test]
    fn frames_are_told_apart_however_their_bytes_come() {
        let mut bytes = PREFACE.to_vec();
        bytes.extend([0, 0, 0, 4, 1, 0, 0, 0, 0]);
        bytes.extend([0, 1, 2, 1, 4, 0x80, 0, 0, 3]);
        bytes.extend([9; 0x102]);
        bytes.extend([0, 0, 1, 0x77, 0, 0, 0, 0, 5, 1]);
        let settings = FrameHead { length: 0, kind: Kind::Settings, flags: 1, stream: 0 };
        let headers = FrameHead { length: 0x102, kind: Kind::Headers, flags: 4, stream: 3 };
        let unknown = FrameHead { length: 1, kind: Kind::Unknown, flags: 0, stream: 5 };
        assert!(settings.is_acknowledgement() && headers.ends_headers());
        let expected: Vec<Event> = [settings, headers, unknown]
            .into_iter()
            .flat_map(|head| [Event::Begun(head), Event::Ended(head)])
            .collect();
        for part in [1, 2, 3, 5, 8, 24, 25, 33, 100, 1000] {
            assert_eq!(events(&bytes, part), expected, "in parts of {part}");
        }
    }

    #[test]
    fn a_frame_that_has_begun_has_not_ended() {
        let bytes = [PREFACE, &[0, 0, 2, 1, 0, 0, 0, 0, 1, 7]].concat();
        let [Event::Begun(head)] = events(&bytes, 1000)[..] else { panic!("one event") };
        assert!(head.kind == Kind::Headers && !head.ends_headers());
    }
}
