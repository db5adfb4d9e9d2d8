//! What a native module's handler does with its answer, in any order, with any values: what goes out is one head of
//! valid fields, a body of the length that was announced, and trailers that were announced.
//!
//! The first byte says whether the request was HEAD and when the client leaves; each call is a byte and its values.

use crate::input::Input;
use http::{HeaderName, HeaderValue};
use regent_module_loader::fuzzing::{Answer, Body, Buffers, Outcome};
use regent_module_loader::{Completion, Exchange, Fields, Gone, Level};

const MOST_CALLS: usize = 200;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let first = input.byte();
    let body = if first & 1 == 0 { Body::Sent } else { Body::Withheld };
    let patience = if first < 128 { usize::MAX } else { usize::from(first - 128) };
    let mut client = Client { patience, body, ..Client::default() };
    let mut buffers = Buffers::default();
    let mut answer = Answer::new(&mut client, &mut buffers, body);
    let mut outcome = Outcome::Done;
    for _ in 0..MOST_CALLS {
        match (input.is_empty(), input.below(16)) {
            (true, _) => break,
            (_, 15) => outcome = Outcome::Failed(input.byte().into()),
            (_, 14) => outcome = Outcome::BadRequest(input.text_line().to_owned()),
            (_, 13) => outcome = Outcome::Gone,
            (_, call) => self::call(&mut answer, call, &mut input),
        }
    }
    let ended = answer.finish(outcome);
    client.assert_ended(ended.status);
}

fn call(answer: &mut Answer<'_>, call: usize, input: &mut Input<'_>) {
    // What is refused changes nothing.
    let _ = match call {
        0 => answer.set_status(input.short().into()),
        1 => answer.set_status([200, 204, 304, 404, 500, 599][input.below(6)]),
        2 => answer.set_header(input.until(0), input.until(0)),
        3 => answer.add_header(input.until(0), input.until(0)),
        4 => answer.set_header(b"Content-Length", input.short().to_string().as_bytes()),
        5 => answer.add_header(b"content-length", input.until(0)),
        6 | 7 => answer.write(input.until(0)),
        8 => answer.write(&vec![b'x'; usize::from(input.short())]),
        9 => answer.flush(),
        10 => answer.add_trailer(input.until(0), input.until(0)),
        11 => answer.add_header(b"Trailer", input.until(0)),
        _ => answer.refuse(input.short().into(), input.text_line()),
    };
}

/// Name and value.
type Field = (Vec<u8>, Vec<u8>);

/// What was sent, and checked as it came.
struct Client {
    /// Calls until the client leaves.
    patience: usize,
    body: Body,
    head: Option<(u16, Vec<Field>)>,
    received: usize,
    trailers: bool,
    end: Option<Completion>,
}

impl Default for Client {
    fn default() -> Self {
        Self { patience: 0, body: Body::Sent, head: None, received: 0, trailers: false, end: None }
    }
}

impl Client {
    fn takes(&mut self) -> Result<(), Gone> {
        self.patience = self.patience.saturating_sub(1);
        if self.patience == 0 { Err(Gone) } else { Ok(()) }
    }

    fn values<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.head.iter().flat_map(|(_, fields)| fields);
        let named = fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        named.map(|(_, value)| value.as_slice())
    }

    fn assert_ended(&self, counted: Option<u16>) {
        if counted.is_some() {
            assert_eq!(self.end, Some(Completion::Complete));
            assert_eq!(counted, self.head.as_ref().map(|(status, _)| *status));
        }
        if self.end != Some(Completion::Complete) {
            return;
        }
        let lengths: Vec<_> = self.values("content-length").collect();
        assert!(lengths.len() <= 1, "{lengths:?}");
        if let (Body::Sent, [length]) = (self.body, &lengths[..]) {
            assert_eq!(*length, self.received.to_string().as_bytes(), "the connection would be out of step");
        }
    }
}

impl Exchange for Client {
    fn read_body(&mut self, _: &mut [u8]) -> Result<usize, Gone> {
        Ok(0)
    }

    fn is_gone(&self) -> bool {
        self.patience == 0
    }

    fn head(&mut self, status: u16, fields: &Fields) -> Result<(), Gone> {
        assert!(self.head.is_none(), "two heads");
        assert!((200..600).contains(&status));
        fields.iter().for_each(assert_field);
        self.head = Some((status, fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()));
        self.takes()
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let (status, _) = self.head.as_ref().expect("the head comes first");
        assert!(self.end.is_none() && !self.trailers);
        assert!(self.body == Body::Sent && ![204, 304].contains(status), "an answer without a body has one");
        self.received += bytes.len();
        self.takes()
    }

    fn publish(&mut self) {}

    fn trailers(&mut self, fields: &Fields) -> Result<(), Gone> {
        assert!(self.head.is_some() && self.end.is_none() && !self.trailers);
        self.trailers = true;
        for (name, value) in fields.iter() {
            assert_field((name, value));
            let mut announced = self.values("trailer").flat_map(|list| list.split(|byte| *byte == b','));
            assert!(announced.any(|other| other.trim_ascii().eq_ignore_ascii_case(name)), "it was not announced");
        }
        self.takes()
    }

    fn end(&mut self, completion: Completion) -> Result<(), Gone> {
        assert!(self.head.is_some() && self.end.is_none());
        self.end = Some(completion);
        self.takes()
    }

    fn log(&mut self, _: Level, message: &str) {
        assert!(!message.is_empty());
    }
}

fn assert_field((name, value): (&[u8], &[u8])) {
    HeaderName::from_bytes(name).expect("a valid name");
    HeaderValue::from_bytes(value).expect("a valid value");
}
