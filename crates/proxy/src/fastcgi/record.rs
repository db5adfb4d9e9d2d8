//! Records (the FastCGI specification, §3.3).

use crate::fastcgi::fault::Fault;
use bytes::{Buf, Bytes, BytesMut};

const VERSION: u8 = 1;
const HEADER: usize = 8;
/// A connection has one request.
const REQUEST_ID: u16 = 1;
/// The largest content that needs no padding.
const MOST_CONTENT: usize = 0xfff8;
const END_CONTENT: usize = 8;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Begins a request to a responder, after which the server closes the connection.
pub(super) const BEGIN: [u8; 16] = [VERSION, BEGIN_REQUEST, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// The end of the body.
pub(super) const END_OF_STDIN: [u8; 8] = header(STDIN, 0);

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Stdout(Bytes),
    Stderr(Bytes),
    /// Nothing follows.
    End,
}

/// Takes apart what a server sends, however it comes.
#[derive(Default)]
pub(super) struct Decoder {
    buffer: BytesMut,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Header,
    /// In the middle of a record: its type, and the bytes of content and padding that are to come.
    Content(u8, usize, usize),
    Padding(usize),
}

const fn header(kind: u8, length: u16) -> [u8; HEADER] {
    let [high, low] = length.to_be_bytes();
    [VERSION, kind, 0, 1, high, low, 0, 0]
}

/// The stream of variables with its end.
pub(super) fn params(variables: &[u8], out: &mut Vec<u8>) {
    for part in variables.chunks(MOST_CONTENT) {
        out.extend_from_slice(&header(PARAMS, part.len() as u16));
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&header(PARAMS, 0));
}

/// A part of the body, in records: their headers, and what each holds.
pub(super) fn stdin(body: &[u8]) -> impl Iterator<Item = ([u8; HEADER], &[u8])> {
    body.chunks(MOST_CONTENT).map(|part| (header(STDIN, part.len() as u16), part))
}

impl Decoder {
    /// Where what comes goes.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next piece; `None`: more bytes have to come. A record may be given in several pieces.
    pub fn next(&mut self) -> Result<Option<Piece>, Fault> {
        loop {
            self.state = match self.state {
                State::Header if self.buffer.len() < HEADER => return Ok(None),
                State::Header => self.read_header()?,
                State::Content(END_REQUEST, length, padding) => {
                    if self.buffer.len() < END_CONTENT {
                        return Ok(None);
                    }
                    // After `appStatus`, which is the script's own.
                    if let status @ 1.. = self.buffer[4] {
                        return Err(Fault::Refused(status));
                    }
                    self.buffer.advance(END_CONTENT);
                    self.state = State::Padding(length - END_CONTENT + padding);
                    return Ok(Some(Piece::End));
                }
                State::Content(_, 0, padding) => State::Padding(padding),
                State::Content(..) if self.buffer.is_empty() => return Ok(None),
                State::Content(kind, length, padding) => {
                    let bytes = self.buffer.split_to(length.min(self.buffer.len())).freeze();
                    self.state = State::Content(kind, length - bytes.len(), padding);
                    return Ok(Some(if kind == STDOUT {
                        Piece::Stdout(bytes)
                    } else {
                        Piece::Stderr(bytes)
                    }));
                }
                State::Padding(0) => State::Header,
                State::Padding(_) if self.buffer.is_empty() => return Ok(None),
                State::Padding(length) => {
                    let skipped = length.min(self.buffer.len());
                    self.buffer.advance(skipped);
                    State::Padding(length - skipped)
                }
            }
        }
    }

    fn read_header(&mut self) -> Result<State, Fault> {
        let version = self.buffer.get_u8();
        let kind = self.buffer.get_u8();
        let (id, length) = (self.buffer.get_u16(), usize::from(self.buffer.get_u16()));
        let padding = usize::from(self.buffer.get_u8());
        self.buffer.advance(1);
        match (version, kind, id) {
            (VERSION, STDOUT | STDERR, REQUEST_ID) => Ok(State::Content(kind, length, padding)),
            (VERSION, END_REQUEST, REQUEST_ID) if length >= END_CONTENT => {
                Ok(State::Content(kind, length, padding))
            }
            (VERSION, END_REQUEST, REQUEST_ID) => Err(Fault::Record("an end that is too short")),
            (VERSION, STDOUT | STDERR | END_REQUEST, _) => Err(Fault::Record("a request that nobody made")),
            (VERSION, ..) => Err(Fault::Record("a type of records that nobody asked for")),
            _ => Err(Fault::Record("another version")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let mut record = header(kind, content.len() as u16).to_vec();
        record[6] = padding;
        record.extend_from_slice(content);
        record.extend(vec![0xff; usize::from(padding)]);
        record
    }

    /// What comes of bytes that come in pieces of these sizes: output, error stream, and whether the end was there.
    fn decode(bytes: &[u8], sizes: &[usize]) -> Result<(Vec<u8>, Vec<u8>, bool), Fault> {
        let (mut decoder, mut sizes) = (Decoder::default(), sizes.iter().cycle());
        let (mut out, mut err, mut rest) = (Vec::new(), Vec::new(), bytes);
        loop {
            while let Some(piece) = decoder.next()? {
                match piece {
                    Piece::Stdout(bytes) => out.extend_from_slice(&bytes),
                    Piece::Stderr(bytes) => err.extend_from_slice(&bytes),
                    Piece::End => return Ok((out, err, true)),
                }
            }
            if rest.is_empty() {
                return Ok((out, err, false));
            }
            let (some, left) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            decoder.buffer().extend_from_slice(some);
            rest = left;
        }
    }

    proptest! {
        #[test]
        fn output_arrives_however_it_is_cut(
            records in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300), any::<u8>()), 0..20),
            sizes in prop::collection::vec(1_usize..400, 1..8),
        ) {
            let (mut bytes, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
            for (is_error, content, padding) in &records {
                bytes.extend(record(if *is_error { STDERR } else { STDOUT }, content, *padding));
                if *is_error { &mut err } else { &mut out }.extend_from_slice(content);
            }
            bytes.extend(record(END_REQUEST, &[0; 8], 0));
            prop_assert_eq!(decode(&bytes, &sizes).unwrap(), (out, err, true));
        }

        #[test]
        fn garbage_is_an_error_or_waits_for_more(
            bytes in prop::collection::vec(prop_oneof![0_u8..9, any::<u8>()], 0..400),
            size in 1_usize..50,
        ) {
            let _ = decode(&bytes, &[size]);
        }

        #[test]
        fn what_is_sent_is_in_records_that_fit(body in prop::collection::vec(any::<u8>(), 0..200_000)) {
            let mut sent = Vec::new();
            for (header, part) in stdin(&body) {
                prop_assert_eq!(usize::from(u16::from_be_bytes([header[4], header[5]])), part.len());
                prop_assert!(!part.is_empty(), "which would end the stream");
                sent.extend_from_slice(part);
            }
            prop_assert_eq!(sent, body);
        }
    }

    #[test]
    fn what_is_no_fastcgi_is_told_apart() {
        let fault = |bytes: &[u8]| decode(bytes, &[100]).unwrap_err().to_string();
        assert!(fault(b"HTTP/1.1 200 OK\r\n").contains("another version"));
        assert!(fault(&record(11, &[0; 8], 0)).contains("nobody asked"));
        assert!(fault(&record(END_REQUEST, &[0; 7], 0)).contains("too short"));
        assert!(fault(&[1, STDOUT, 0, 2, 0, 0, 0, 0]).contains("nobody made"));
        assert!(fault(&record(END_REQUEST, &[0, 0, 0, 0, 2, 0, 0, 0], 0)).contains("status 2"));
    }
}
