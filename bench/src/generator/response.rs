//! Answers of HTTP/1.1, read in whatever pieces they arrive and checked without being kept.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

use super::chunked::Chunked;
use super::plan::Expect;

/// Fields of a head beyond these are more than any server under test sends.
const MOST_FIELDS: usize = 64;
const LONGEST_HEAD: usize = 64 * 1024;

/// Not HTTP/1.1, or not unambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The answer to one request, as far as it has arrived.
#[derive(Clone, Debug, Default)]
pub struct Response {
    stage: Stage,
    /// The beginning of a head that came in pieces.
    head: Vec<u8>,
    status: u16,
    persistence: Persistence,
    body: Body,
}

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Verdict,
    pub persistence: Persistence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Expected,
    Unexpected,
}

/// What the server says that it does with the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    #[default]
    Kept,
    Closed,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Response {
    /// Prepares for the next answer.
    pub fn reset(&mut self) {
        self.stage = Stage::Head;
        self.head.clear();
        self.body = Body::default();
    }

    /// Takes the next bytes; the answer when they end it, with the number of bytes that belong to it.
    pub fn take(&mut self, bytes: &[u8], expect: &Expect) -> Result<Option<(Answer, usize)>, Malformed> {
        let mut at = 0;
        while matches!(self.stage, Stage::Head) {
            match self.take_head(&bytes[at..])? {
                Some(length) => at += length,
                None => return Ok(None),
            }
        }
        at += self.take_body(&bytes[at..], expect)?;
        Ok(self.is_whole().then(|| (self.answer(expect), at)))
    }

    /// The answer that the end of the connection ends, if it is one.
    pub fn end(&self, expect: &Expect) -> Option<Answer> {
        matches!(self.stage, Stage::UntilClose).then(|| self.answer(expect))
    }

    /// The number of bytes of the head that is complete now; an interim one leaves the stage as it is.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        if self.head.is_empty() {
            if let Some(length) = self.parse_head(bytes)? {
                return Ok(Some(length));
            }
            self.head.extend_from_slice(bytes);
            return Ok(None);
        }
        let before = self.head.len();
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(bytes);
        let length = self.parse_head(&head)?;
        if length.is_some() {
            head.clear();
        }
        self.head = head;
        Ok(length.map(|length| length - before))
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut head = httparse::Response::new(&mut []);
        let parsed =
            ParserConfig::default().parse_response_with_uninit_headers(&mut head, bytes, &mut fields);
        match parsed.map_err(|_| Malformed)? {
            Status::Partial if bytes.len() > LONGEST_HEAD => Err(Malformed),
            Status::Partial => Ok(None),
            Status::Complete(length) => {
                let status = head.code.ok_or(Malformed)?;
                let version = head.version.ok_or(Malformed)?;
                self.begin_body(status, version, &Framing::of(head.headers)?)?;
                Ok(Some(length))
            }
        }
    }

    /// RFC 9112 section 6.3, for answers to methods other than HEAD and CONNECT.
    fn begin_body(&mut self, status: u16, version: u8, framing: &Framing) -> Result<(), Malformed> {
        self.status = status;
        self.persistence = framing.persistence(version);
        self.stage = match (status, framing.coding, framing.length) {
            // Nobody asked for another protocol.
            (101, ..) | (0..100, ..) => return Err(Malformed),
            (100..200, ..) => Stage::Head,
            (204 | 304, ..) => Stage::Length(0),
            (_, Coding::Chunked, None) if version == 1 => Stage::Chunked(Chunked::default()),
            // Both framings at once is how answers are smuggled.
            (_, Coding::Chunked, _) => return Err(Malformed),
            (_, Coding::None, Some(length)) => Stage::Length(length),
            (_, Coding::None, None) => Stage::UntilClose,
        };
        Ok(())
    }

    fn take_body(&mut self, bytes: &[u8], expect: &Expect) -> Result<usize, Malformed> {
        match &mut self.stage {
            Stage::Head => Ok(0),
            Stage::Length(left) => {
                let length = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= length as u64;
                self.body.take(&bytes[..length], expect);
                Ok(length)
            }
            Stage::Chunked(chunked) => chunked.take(bytes, |data| self.body.take(data, expect)),
            Stage::UntilClose => {
                self.body.take(bytes, expect);
                Ok(bytes.len())
            }
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self.stage, Stage::Length(0) | Stage::Chunked(Chunked::Done))
    }

    fn answer(&self, expect: &Expect) -> Answer {
        let persistence = match self.stage {
            Stage::UntilClose => Persistence::Closed,
            _ => self.persistence,
        };
        Answer { status: self.status, body: self.body.verdict(expect), persistence }
    }
}

/// What the fields say of the body's end and of the connection's.
#[derive(Debug, Default)]
struct Framing {
    length: Option<u64>,
    coding: Coding,
    closes: bool,
    keeps: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Coding {
    #[default]
    None,
    Chunked,
}

impl Framing {
    fn of(fields: &[Header<'_>]) -> Result<Self, Malformed> {
        fields.iter().try_fold(Self::default(), Self::with)
    }

    fn with(mut self, field: &Header<'_>) -> Result<Self, Malformed> {
        if field.name.eq_ignore_ascii_case("content-length") {
            let length = number(field.value)?;
            if self.length.replace(length).is_some_and(|other| other != length) {
                return Err(Malformed);
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            // No other coding was offered by a TE field, and chunked may not be applied twice.
            let first = matches!(self.coding, Coding::None);
            if !first || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Malformed);
            }
            self.coding = Coding::Chunked;
        } else if field.name.eq_ignore_ascii_case("connection") {
            self.closes |= has_option(field.value, b"close");
            self.keeps |= has_option(field.value, b"keep-alive");
        }
        Ok(self)
    }

    /// RFC 9112 section 9.3.
    fn persistence(&self, version: u8) -> Persistence {
        let kept = !self.closes && (version == 1 || self.keeps);
        if kept { Persistence::Kept } else { Persistence::Closed }
    }
}

fn number(text: &[u8]) -> Result<u64, Malformed> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed)
}

fn has_option(value: &[u8], option: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(option))
}

/// The body so far, against what is expected.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    received: u64,
    differs: bool,
}

impl Body {
    fn take(&mut self, bytes: &[u8], expect: &Expect) {
        if let Expect::Body(text) = expect {
            let rest = usize::try_from(self.received).ok().and_then(|from| text.as_bytes().get(from..));
            self.differs |= !rest.is_some_and(|rest| rest.starts_with(bytes));
        }
        self.received += bytes.len() as u64;
    }

    fn verdict(&self, expect: &Expect) -> Verdict {
        let expected = match expect {
            Expect::Any => true,
            Expect::Body(text) => !self.differs && self.received == text.len() as u64,
            Expect::Bytes(length) => self.received == *length,
        };
        if expected { Verdict::Expected } else { Verdict::Unexpected }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds pieces of the given sizes (the last one repeats) and returns the answer and what was left over.
    fn read(bytes: &[u8], pieces: &[usize], expect: &Expect) -> Result<Option<(Answer, usize)>, Malformed> {
        let mut response = Response::default();
        let (mut at, mut sizes) = (0, pieces.iter().chain(std::iter::repeat(pieces.last().unwrap_or(&1))));
        while at < bytes.len() {
            let end = bytes.len().min(at + sizes.next().expect("endless"));
            if let Some((answer, used)) = response.take(&bytes[at..end], expect)? {
                return Ok(Some((answer, bytes.len() - at - used)));
            }
            at = end;
        }
        Ok(response.end(expect).map(|answer| (answer, 0)))
    }

    fn whole(text: &str, expect: &Expect) -> Result<Option<(Answer, usize)>, Malformed> {
        read(text.as_bytes(), &[text.len()], expect)
    }

    fn kept(status: u16, body: Verdict) -> Answer {
        Answer { status, body, persistence: Persistence::Kept }
    }

    #[test]
    fn a_length_ends_the_body() {
        let expect = Expect::Body("hello".to_owned());
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(whole(text, &expect), Ok(Some((kept(200, Verdict::Expected), 0))));
        assert_eq!(whole(&format!("{text}more"), &expect), Ok(Some((kept(200, Verdict::Expected), 4))));
    }

    #[test]
    fn another_body_is_unexpected() {
        for body in ["hellO", "hell", "hello!"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            assert_eq!(
                whole(&text, &Expect::Body("hello".to_owned())),
                Ok(Some((kept(200, Verdict::Unexpected), 0))),
                "{body}"
            );
        }
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(whole(text, &Expect::Bytes(6)), Ok(Some((kept(200, Verdict::Unexpected), 0))));
        assert_eq!(whole(text, &Expect::Any), Ok(Some((kept(200, Verdict::Expected), 0))));
    }

    #[test]
    fn without_framing_the_connection_ends_the_body() {
        let closed = Answer { status: 200, body: Verdict::Expected, persistence: Persistence::Closed };
        assert_eq!(whole("HTTP/1.1 200 OK\r\n\r\nabc", &Expect::Bytes(3)), Ok(Some((closed, 0))));
        assert_eq!(whole("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", &Expect::Any), Ok(None));
    }

    #[test]
    fn interim_answers_are_passed_over() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(whole(text, &Expect::Bytes(0)), Ok(Some((kept(204, Verdict::Expected), 0))));
    }

    #[test]
    fn the_connection_field_and_the_version_tell_whether_it_stays() {
        for (head, persistence) in [
            ("HTTP/1.1 200 OK\r\n", Persistence::Kept),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", Persistence::Closed),
            ("HTTP/1.0 200 OK\r\n", Persistence::Closed),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", Persistence::Kept),
        ] {
            let answer = whole(&format!("{head}Content-Length: 0\r\n\r\n"), &Expect::Any);
            let expected = Answer { persistence, ..kept(200, Verdict::Expected) };
            assert_eq!(answer, Ok(Some((expected, 0))), "{head}");
        }
    }

    #[test]
    fn ambiguous_framing_is_malformed() {
        for fields in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1, 1",
            "Content-Length: +1",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        ] {
            assert_eq!(
                whole(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"), &Expect::Any),
                Err(Malformed),
                "{fields}"
            );
        }
        assert_eq!(whole("SSH-2.0-OpenSSH_9\r\n", &Expect::Any), Err(Malformed));
        assert_eq!(whole("HTTP/1.1 101 Switching Protocols\r\n\r\n", &Expect::Any), Err(Malformed));
    }

    #[test]
    fn an_endless_head_is_malformed() {
        let head = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(LONGEST_HEAD));
        assert_eq!(read(head.as_bytes(), &[1000], &Expect::Any), Err(Malformed));
    }

    fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
        let mut coding = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let (mut rest, mut sizes) = (body, sizes.iter().cycle());
        while !rest.is_empty() {
            let (data, after) = rest.split_at(rest.len().min(*sizes.next().expect("not empty")));
            coding.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
            coding.extend_from_slice(data);
            coding.extend_from_slice(b"\r\n");
            rest = after;
        }
        coding.extend_from_slice(b"0\r\n\r\n");
        coding
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_with_a_length(body in "[a-z]{0,200}", pieces in prop::collection::vec(1..50_usize, 1..20)) {
            let text = format!("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let answer = read(text.as_bytes(), &pieces, &Expect::Body(body));
            prop_assert_eq!(answer, Ok(Some((kept(200, Verdict::Expected), 0))));
        }

        #[test]
        fn pieces_do_not_matter_in_chunks(body in "[a-z]{0,200}", sizes in prop::collection::vec(1..40_usize, 1..5),
                                          pieces in prop::collection::vec(1..50_usize, 1..20)) {
            let answer = read(&chunked(body.as_bytes(), &sizes), &pieces, &Expect::Body(body));
            prop_assert_eq!(answer, Ok(Some((kept(200, Verdict::Expected), 0))));
        }

        #[test]
        fn one_changed_byte_is_noticed(body in "[a-z]{1,100}", at in any::<prop::sample::Index>(),
                                       pieces in prop::collection::vec(1..50_usize, 1..20)) {
            let mut changed = body.clone().into_bytes();
            changed[at.index(body.len())] ^= 0x20;
            let answer = read(&chunked(&changed, &[7]), &pieces, &Expect::Body(body));
            prop_assert_eq!(answer, Ok(Some((kept(200, Verdict::Unexpected), 0))));
        }

        #[test]
        fn any_bytes_in_any_pieces_give_one_result(bytes in prop::collection::vec(any::<u8>(), 0..200),
                                                   pieces in prop::collection::vec(1..50_usize, 1..20)) {
            let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            text.extend_from_slice(&bytes);
            prop_assert_eq!(read(&text, &pieces, &Expect::Any), read(&text, &[text.len()], &Expect::Any));
        }
    }
}
