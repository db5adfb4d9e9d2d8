//! One request while its handler runs: what `regent_request` points to.

use crate::abi::{self, RawJson};
use crate::answer::{Answer, Outcome, Refusal};
use crate::exchange::{Gone, Head};
use crate::json::{self, Document};
use crate::router::{Captures, Route};
use bumpalo::Bump;
use std::borrow::Cow;

/// Bytes of a field's name that is asked for.
const MOST_NAME: usize = 256;
/// Bytes that are made room for, of a body whose length is not known.
const PART: usize = 16 * 1024;
const FIELD_PREFIX: &[u8] = b"HTTP_";

pub struct Request<'a> {
    pub head: &'a dyn Head,
    pub answer: Answer<'a>,
    /// Decoded, as routes see it.
    pub path: &'a [u8],
    route: &'a Route,
    captures: Captures<'a>,
    body: Body,
    /// Texts that are made for the handler, until it returns.
    arena: &'a Bump,
}

/// What the handler has seen of the body.
enum Body {
    Unread,
    /// Bytes.
    Begun,
    Parsed(Document),
}

impl<'a> Request<'a> {
    pub fn new(
        head: &'a dyn Head,
        answer: Answer<'a>,
        path: &'a [u8],
        (route, captures): (&'a Route, Captures<'a>),
        arena: &'a Bump,
    ) -> Self {
        Self { head, answer, path, route, captures, body: Body::Unread, arena }
    }

    pub fn variable(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.head.variable(name)
    }

    pub fn parameter(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.route.parameter(name, &self.captures)
    }

    /// The value of the `index`th field of that name in the query.
    pub fn query_value(&self, name: &[u8], index: usize) -> Option<&'a [u8]> {
        let query = self.variable(b"QUERY_STRING")?;
        let mut values = form_urlencoded::parse(query).filter(|(other, _)| other.as_bytes() == name);
        Some(match values.nth(index)?.1 {
            Cow::Borrowed(value) => value.as_bytes(),
            Cow::Owned(value) => self.arena.alloc_slice_copy(value.as_bytes()),
        })
    }

    /// A header field, by its name in any case.
    pub fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        let upper = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
        let mut variable = [0; FIELD_PREFIX.len() + MOST_NAME];
        let (prefix, rest) = variable.split_at_mut(FIELD_PREFIX.len());
        prefix.copy_from_slice(FIELD_PREFIX);
        for (to, from) in rest.get_mut(..name.len())?.iter_mut().zip(name) {
            *to = upper(from);
        }
        match &rest[..name.len()] {
            // CGI has these two without the prefix (RFC 3875 §4.1.18).
            bare @ (b"CONTENT_TYPE" | b"CONTENT_LENGTH") => {
                self.variable(bare).filter(|value| !value.is_empty())
            }
            _ => self.variable(&variable[..FIELD_PREFIX.len() + name.len()]),
        }
    }

    /// The next header field, its name in lower case.
    pub fn next_header(&self, cursor: &mut usize) -> Option<(&'a [u8], &'a [u8])> {
        let head = self.head;
        loop {
            let (name, value) = head.next_variable(cursor)?;
            let bare = match name {
                b"CONTENT_TYPE" | b"CONTENT_LENGTH" if !value.is_empty() => name,
                _ => match name.strip_prefix(FIELD_PREFIX) {
                    Some(bare) => bare,
                    None => continue,
                },
            };
            let lower = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
            return Some((self.arena.alloc_slice_fill_iter(bare.iter().map(lower)), value));
        }
    }

    /// Bytes that were read, 0 at the end.
    pub fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, Refusal> {
        if let Body::Parsed(_) = self.body {
            return Ok(0);
        }
        self.body = Body::Begun;
        self.answer.exchange.read_body(buffer).map_err(|Gone| abi::GONE)
    }

    /// A value of the body.
    pub fn json(&mut self, pointer: &[u8]) -> Result<RawJson, Refusal> {
        let pointer = std::str::from_utf8(pointer).ok().filter(|pointer| json::is_pointer(pointer));
        let pointer = pointer.ok_or(abi::INVALID)?;
        match self.body {
            Body::Unread => self.body = Body::Parsed(self.parse()?),
            Body::Begun => return Err(abi::TOO_LATE),
            Body::Parsed(_) => {}
        }
        match &self.body {
            Body::Parsed(Document::Value(value)) => {
                let value = value.pointer(pointer).ok_or(abi::MISSING)?;
                Ok(json::describe(value, self.arena))
            }
            _ => Err(abi::BAD_REQUEST),
        }
    }

    /// Why the body is no JSON.
    pub fn reason(&self) -> Option<&str> {
        match &self.body {
            Body::Parsed(Document::Invalid(reason)) => Some(reason),
            _ => None,
        }
    }

    /// What it means that the handler has returned `status`.
    pub fn outcome(&self, status: i32) -> Outcome {
        match status {
            abi::OK => Outcome::Done,
            abi::BAD_REQUEST => Outcome::BadRequest(self.reason().unwrap_or_default().to_owned()),
            abi::GONE => Outcome::Gone,
            _ => Outcome::Failed(status),
        }
    }

    fn parse(&mut self) -> Result<Document, Refusal> {
        // One more byte than announced, so that the end is seen without more memory.
        let announced =
            self.head.body_length().map_or(PART, |length| length.min(json::MOST as u64) as usize + 1);
        let mut body = vec![0; announced];
        let mut read = 0;
        loop {
            let count = self.answer.exchange.read_body(&mut body[read..]).map_err(|Gone| abi::GONE)?;
            read += count;
            if count == 0 {
                return Ok(Document::parse(&body[..read]));
            }
            if read > json::MOST {
                return Ok(Document::too_large());
            }
            if read == body.len() {
                body.resize((2 * read).max(PART), 0);
            }
        }
    }
}
