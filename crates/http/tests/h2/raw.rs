//! A client that sends whatever frames a test wants.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Error codes (RFC 9113 §7).
pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub struct Raw {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

/// A frame from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn is(&self, kind: u8, stream: u32) -> bool {
        self.kind == kind && self.stream == stream
    }

    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Of `RST_STREAM` and `GOAWAY`.
    pub fn error_code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// Of `GOAWAY`.
    pub fn last_stream(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A setting (RFC 9113 §6.5.1).
pub fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;

/// A field in a header block, spelled out (RFC 7541 §6.2.2). Shorter than 127 bytes, each part.
pub fn field(name: &str, value: &[u8]) -> Vec<u8> {
    assert!(name.len() < 127 && value.len() < 127);
    [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value].concat()
}

/// The same, and it enters the dynamic table (RFC 7541 §6.2.1).
pub fn kept_field(name: &str, value: &[u8]) -> Vec<u8> {
    let mut field = field(name, value);
    field[0] = 0x40;
    field
}

/// `GET https://a.example/` (RFC 7541 §6.1: fields of the static table).
pub fn get_block() -> Vec<u8> {
    [&[0x82, 0x87, 0x84][..], &field(":authority", b"a.example")].concat()
}

/// A request that is only a head.
pub fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &get_block())
}

/// The head of a request whose body follows.
pub fn post(stream: u32) -> Vec<u8> {
    let block = [&[0x83, 0x87, 0x84][..], &field(":authority", b"a.example")].concat();
    frame(HEADERS, END_HEADERS, stream, &block)
}

impl Raw {
    pub fn silent(stream: DuplexStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { reader, writer }
    }

    /// Says how it begins, with these settings.
    pub async fn greet(stream: DuplexStream, settings: &[u8]) -> Self {
        let mut raw = Self::silent(stream);
        raw.send(PREFACE).await;
        raw.send(&frame(SETTINGS, 0, 0, settings)).await;
        raw
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    pub async fn send_preface(&mut self) {
        self.send(PREFACE).await;
    }

    /// The next frame that is no setting of the server's, nor a larger window; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        read_frame(&mut self.reader).await
    }

    /// The next frame of this type.
    pub async fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await.expect("the connection has ended");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// All frames until the server says no more.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// Sends all of these, or as many as the server takes, and gets all frames until it says no more.
    pub async fn flood(self, parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<Frame> {
        let Self { mut reader, mut writer } = self;
        let write = async {
            for part in parts {
                if writer.write_all(&part).await.is_err() {
                    break;
                }
            }
        };
        let read = async {
            let mut frames = Vec::new();
            while let Some(frame) = read_frame(&mut reader).await {
                frames.push(frame);
            }
            frames
        };
        tokio::join!(write, read).1
    }
}

async fn read_frame(reader: &mut ReadHalf<DuplexStream>) -> Option<Frame> {
    loop {
        let mut head = [0; 9];
        reader.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        reader.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        if !matches!(head[3], SETTINGS | WINDOW_UPDATE) {
            return Some(Frame { kind: head[3], flags: head[4], stream, payload });
        }
    }
}

/// The error code of the `GOAWAY` among these.
pub fn goaway(frames: &[Frame]) -> Option<u32> {
    frames.iter().rfind(|frame| frame.kind == GOAWAY).map(Frame::error_code)
}
