//! The bytes of a connection on their way to hyper, which gets no more than one request at a time of them, and request
//! targets in which it refuses nothing that other servers take.
//!
//! Clients and scanners send `<`, `>`, `"`, and bytes that are not UTF-8 as they are. hyper refuses those in places, so there
//! they are percent-encoded before it sees them (RFC 3986 §2.1). That makes a target longer, and must happen to nothing
//! else: a longer body would end elsewhere than its length says, and its end would be the next request. So a target is
//! touched only where the place in the stream is known for sure. A head ends at its first empty line, where httparse ends it
//! too; how long the body behind it is hyper itself says, since what comes behind a head is held back until hyper has
//! understood it. Behind a chunked body the place is lost: bytes go on as they came until the connection ends, and hyper
//! refuses what it refuses.

use crate::h1::activity::Activity;
use bytes::{Buf, BytesMut};
use memchr::memchr_iter;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// What has come and was not handed on.
#[derive(Default)]
pub(crate) struct Inbound {
    place: Place,
    /// As it came.
    raw: BytesMut,
    /// As hyper may have it.
    ready: Vec<u8>,
}

/// Where in the stream the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// At a request line, or at the empty lines that may come before it (RFC 9112 §2.2).
    #[default]
    Start,
    Method,
    /// In the target, before its query.
    Path,
    Query,
    /// In the rest of a line of the head.
    Line,
    /// At the first byte of a field line, or of the empty line that ends the head.
    LineStart,
    /// Behind the CR of a line that has nothing else so far.
    EmptyLine,
    /// Behind a head that hyper has not answered for yet.
    HeadEnd,
    /// With so many bytes of it to come, at least one.
    Body(u64),
    Lost,
}

impl Inbound {
    /// Reads from the socket, or hands on what was held back.
    pub fn poll_read(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
        activity: &Activity,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ready.is_empty() {
            self.pass_head_end(activity);
            while !self.prepare() {
                let before = buffer.filled().len();
                ready!(Pin::new(&mut *socket).poll_read(context, buffer))?;
                let fresh = &buffer.filled()[before..];
                let passed = if self.raw.is_empty() { self.place.pass(fresh) } else { 0 };
                if passed == fresh.len() {
                    return Poll::Ready(Ok(()));
                }
                self.raw.extend_from_slice(&fresh[passed..]);
                buffer.set_filled(before + passed);
                if passed > 0 {
                    return Poll::Ready(Ok(()));
                }
            }
        }
        give(&mut self.ready, buffer);
        Poll::Ready(Ok(()))
    }

    /// Whether more of a request's body may come. Nobody knows it of a chunked one.
    pub fn is_in_body(&self, activity: &Activity) -> bool {
        match self.place {
            Place::Body(_) | Place::Lost => true,
            Place::HeadEnd => activity.body_length() != Some(0),
            _ => false,
        }
    }

    /// What came and was not handed on.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.ready);
        rest.extend_from_slice(&self.raw.split());
        rest
    }

    /// What was handed on, for whoever reads next.
    pub fn give_back(&mut self, mut read: Vec<u8>) {
        read.append(&mut self.ready);
        self.ready = read;
    }

    /// hyper asks for more: it has understood the head that it was given.
    fn pass_head_end(&mut self, activity: &Activity) {
        if self.place == Place::HeadEnd {
            self.place = match activity.take_body_length() {
                Some(0) => Place::Start,
                Some(length) => Place::Body(length),
                None => Place::Lost,
            };
        }
    }

    /// Makes the next of the raw bytes ready, and says whether there are any: not if the rest of a character is missing.
    fn prepare(&mut self) -> bool {
        if self.raw.is_empty() {
            return false;
        }
        let mut taken = self.place.pass(&self.raw);
        match taken {
            0 => taken = self.place.pass_encoded(&self.raw, &mut self.ready),
            _ => self.ready.extend_from_slice(&self.raw[..taken]),
        }
        match taken == self.raw.len() {
            // The memory is not kept for the next time, which there seldom is.
            true => self.raw = BytesMut::new(),
            // The rest stays where it is: many requests can have come at once.
            false => self.raw.advance(taken),
        }
        taken > 0
    }
}

impl Place {
    /// Goes past the bytes that hyper may have as they are, and says how many they are. It may be none at a head that is
    /// not usual: that is for [`Self::pass_encoded`].
    fn pass(&mut self, bytes: &[u8]) -> usize {
        match self {
            Self::Lost => bytes.len(),
            Self::Body(left) => {
                let passed = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= passed as u64;
                if *left == 0 {
                    *self = Self::Start;
                }
                passed
            }
            Self::Start => {
                let passed = usual_head(bytes).unwrap_or(0);
                if passed > 0 {
                    *self = Self::HeadEnd;
                }
                passed
            }
            _ => 0,
        }
    }

    /// Goes past the bytes of a head up to its end, if that has come, and appends them as hyper may have them. Says how
    /// many they were.
    fn pass_encoded(&mut self, head: &[u8], out: &mut Vec<u8>) -> usize {
        let mut passed = 0;
        while *self != Self::HeadEnd
            && let Some(&byte) = head.get(passed)
        {
            let length = match self.spelling(&head[passed..]) {
                Spelling::Encoded => {
                    push_encoded(byte, out);
                    1
                }
                Spelling::Same(length) => {
                    out.extend_from_slice(&head[passed..passed + length]);
                    length
                }
                Spelling::Unknown => break,
            };
            *self = self.behind(byte);
            passed += length;
        }
        passed
    }

    /// How hyper may have the first byte of these, or the character that it begins.
    fn spelling(self, bytes: &[u8]) -> Spelling {
        match (self, bytes[0]) {
            (Self::Path | Self::Query, b'<' | b'>') | (Self::Path, b'`') | (Self::Query, b'"') => {
                Spelling::Encoded
            }
            (Self::Path | Self::Query, 0x80..) => Spelling::of_character(bytes),
            _ => Spelling::Same(1),
        }
    }

    /// Within a head.
    fn behind(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Start, b'\r' | b'\n') => Self::Start,
            (Self::LineStart | Self::EmptyLine, b'\n') => Self::HeadEnd,
            (Self::LineStart, b'\r') => Self::EmptyLine,
            (_, b'\n') => Self::LineStart,
            (Self::Method, b' ') => Self::Path,
            (Self::Start | Self::Method, _) => Self::Method,
            (Self::Path | Self::Query, b' ') => Self::Line,
            (Self::Path, b'?') => Self::Query,
            (Self::Path | Self::Query, _) => self,
            _ => Self::Line,
        }
    }
}

/// The length of a head that has come whole and needs nothing done to it, as almost all do.
fn usual_head(bytes: &[u8]) -> Option<usize> {
    let mut line_ends = memchr_iter(b'\n', bytes);
    let first = line_ends.next()?;
    if !bytes[0].is_ascii_graphic() || bytes[..first].iter().fold(false, |odd, byte| odd | may_be_odd(*byte))
    {
        return None;
    }
    std::iter::once(first).chain(line_ends).find_map(|end| match &bytes[end + 1..] {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    })
}

/// How something of a target goes on.
enum Spelling {
    /// So many bytes as they are.
    Same(usize),
    /// One byte percent-encoded.
    Encoded,
    /// More has to come first.
    Unknown,
}

impl Spelling {
    /// Of what begins with a byte above 0x7F: http takes characters, and no other bytes.
    fn of_character(bytes: &[u8]) -> Self {
        const LONGEST: usize = 4;
        let start = &bytes[..bytes.len().min(LONGEST)];
        let valid = match std::str::from_utf8(start) {
            Ok(text) => text,
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return Self::Unknown,
            Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
        };
        valid.chars().next().map_or(Self::Encoded, |character| Self::Same(character.len_utf8()))
    }
}

fn push_encoded(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
    out.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
}

/// True for all bytes that are not always taken as they are, in a form in which the compiler looks at many at once.
fn may_be_odd(byte: u8) -> bool {
    byte >= 0x80 || byte == b'"' || byte == b'`' || byte | 2 == b'>'
}

/// Moves as much as there is room for.
fn give(ready: &mut Vec<u8>, buffer: &mut ReadBuf<'_>) {
    let given = ready.len().min(buffer.remaining());
    buffer.put_slice(&ready[..given]);
    match given == ready.len() {
        true => *ready = Vec::new(),
        false => drop(ready.drain(..given)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::connection::{Settings, serve};
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full};
    use regent_exchange::RequestBody;
    use regent_net::Drain;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SETTINGS: Settings = Settings {
        read_header: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        last_request: Duration::from_secs(2),
        write: Duration::from_secs(60),
        max_header_size: 16 * 1024,
    };

    /// What the service has seen of each request, up to the one that is added at the end; sent in parts of this size.
    async fn seen(stream: &[u8], part: usize) -> Vec<String> {
        let (client, server) = tokio::io::duplex(part.max(1));
        let (mut reader, mut writer) = tokio::io::split(client);
        let seen = std::cell::RefCell::new(Vec::new());
        let service = |request: Request<RequestBody>, _| {
            let seen = &seen;
            Box::pin(async move {
                let (head, body) = request.into_parts();
                let note = head.headers.get("x").map(|value| format!("{value:?} ")).unwrap_or_default();
                let body = body.collect().await.unwrap().to_bytes();
                let body = String::from_utf8_lossy(&body).into_owned();
                seen.borrow_mut().push(format!("{} {} {note}{body}", head.method, head.uri));
                Response::new(Full::<Bytes>::from("ok"))
            })
        };
        let (drain, mut answers) = (Drain::default(), Vec::new());
        let (_, _, read) = tokio::join!(
            serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), service),
            async {
                for part in stream.chunks(part) {
                    // The server may have hung up.
                    if writer.write_all(part).await.is_err() {
                        break;
                    }
                }
            },
            reader.read_to_end(&mut answers),
        );
        read.unwrap();
        seen.into_inner()
    }

    /// The same in parts of any size.
    async fn always_seen(stream: &[u8], expected: &[&str]) {
        let stream = [stream, b"GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"].concat();
        for part in [1, 2, 3, 5, 7, 11, 23, 64, 200, 64 * 1024] {
            assert_eq!(seen(&stream, part).await, expected, "in parts of {part}: {}", stream.escape_ascii());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_uri_may_have_is_encoded_in_targets_and_nowhere_else() {
        always_seen(
            b"GET /<a>\"b`|\\?c=<\xe9\xc3\xa9\">`{|}\\^? HTTP/1.1\r\nHost: a\r\nX: <\xe9>\r\n\r\n\
              POST /~b HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\nGET /<x> HTTP/1.1\r\nX: <>\r\n\r\n\
              GET /c<?d HTTP/1.1\r\nHost: a\r\n\r\n",
            &[
                "GET /%3Ca%3E\"b%60|\\?c=%3C%E9é%22%3E`{|}\\^? \"<\\xe9>\" ",
                "POST /~b GET /<x> HTTP/1.1\r\nX: <>\r\n\r\n",
                "GET /c%3C?d ",
                "GET /end ",
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn empty_lines_before_a_request_are_no_part_of_it() {
        always_seen(
            b"\r\n\nGET /<a> HTTP/1.1\nHost: a\n\n\r\nGET /<b> HTTP/1.1\r\nHost: a\r\n\n",
            &["GET /%3Ca%3E ", "GET /%3Cb%3E ", "GET /end "],
        )
        .await;
    }

    /// Were it touched, its last bytes would be a request.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_looks_like_requests_is_a_body() {
        let inner = "GET /<<<<<<<< HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        let stream = format!(
            "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{inner}GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
            inner.len()
        );
        always_seen(stream.as_bytes(), &[&format!("PUT /a {inner}"), "GET /b ", "GET /end "]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_chunked_body_nothing_is_touched() {
        let chunked = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n14\r\nGET /<> HTTP/1.1\r\n\r\n\r\n0\r\n\r\n";
        let stream = format!("{chunked}GET /b HTTP/1.1\r\nHost: a\r\n\r\n{chunked}");
        let posted = "POST /a GET /<> HTTP/1.1\r\n\r\n";
        always_seen(stream.as_bytes(), &[posted, "GET /b ", posted, "GET /end "]).await;
        let odd = format!("{chunked}GET /<b> HTTP/1.1\r\nHost: a\r\n\r\n");
        always_seen(odd.as_bytes(), &[posted]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn control_bytes_spaces_and_odd_methods_stay_refused() {
        for line in
            ["GET /\0<", "GET /\x01", "GET /\x7f", "GET /a b", "GET /\t", "G<T /", "GET\u{e9} /", "GET  /<"]
        {
            let stream = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
            always_seen(stream.as_bytes(), &[]).await;
        }
        always_seen(b"GET http://a<b/ HTTP/1.1\r\nHost: a\r\n\r\n", &[]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_grows_beyond_a_buffer_comes_whole() {
        let path = "<".repeat(4000);
        let stream = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n");
        always_seen(stream.as_bytes(), &[&format!("GET /{} ", "%3C".repeat(4000)), "GET /end "]).await;
    }

    #[test]
    fn a_usual_head_is_found_without_a_look_at_each_byte() {
        let head = "GET /a~b?c=%3C HTTP/1.1\r\nHost: a\r\n\r\n";
        let length = |text: &str| usual_head(text.as_bytes());
        assert_eq!(length("GET /a?c=%3C HTTP/1.1\r\nHost: <a>\r\n\r\nrest"), Some(36));
        assert_eq!(length("GET / HTTP/1.1\nHost: a\n\nrest"), Some(24));
        assert_eq!(length(&head[..head.len() - 1]), None);
        assert_eq!(length("GET /<"), None);
        assert_eq!(length("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        assert_eq!(length("GET /< HTTP/1.1\r\nHost: a\r\n\r\n"), None);
    }

    #[test]
    fn all_that_is_not_always_taken_is_odd() {
        for place in [Place::Path, Place::Query] {
            let taken = |byte| matches!(place.spelling(&[byte]), Spelling::Same(1));
            assert!((0..=255).all(|byte| taken(byte) || may_be_odd(byte)));
        }
        let plain = b"GET /-._!$&'()*+,;=:@%?azAZ09[]{}|\\^ HTTP/1.1\r";
        assert!(!plain.iter().any(|byte| may_be_odd(*byte)));
    }

    #[tokio::test(start_paused = true)]
    async fn characters_stay_and_what_is_none_is_encoded_wherever_packets_end() {
        always_seen(
            b"GET /\xf0\x9f\x90\x98\xe2\x80\xc3\xa9\x80\xff\xc3 HTTP/1.1\r\nHost: a\r\n\r\n",
            &["GET /\u{1f418}%E2%80é%80%FF%C3 ", "GET /end "],
        )
        .await;
    }
}
