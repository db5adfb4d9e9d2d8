//! The answer of a handler: what it may set when, and how it goes out.
//!
//! Nothing is sent before it must be, so that a small answer is one publication and a handler that fails halfway can
//! still be answered with an error.

use crate::abi;
use crate::exchange::{Completion, Exchange, Gone, Level};
use crate::fields::Fields;
use crate::problem;
use crate::statistics::Ended;

/// Bytes of the body that are collected before they are sent.
const PART: usize = 32 * 1024;

/// Memory that is used again for the next answer.
#[derive(Debug, Default)]
pub struct Buffers {
    fields: Fields,
    trailers: Fields,
    body: Vec<u8>,
}

/// Whether the client gets the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Sent,
    /// HEAD: only its length.
    Withheld,
}

/// Why a call was of no use: the negative `regent_status` for the module.
pub type Refusal = i32;

pub struct Answer<'a> {
    pub exchange: &'a mut dyn Exchange,
    buffers: &'a mut Buffers,
    body: Body,
    stage: Stage,
    status: u16,
    /// Content-Length, if the handler has set it.
    declared: Option<u64>,
    /// Bytes of the body.
    written: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has been sent.
    Collecting,
    /// `refuse` was called: the body is the problem document.
    Refused,
    /// The head was sent.
    Sending,
    Gone,
}

/// How a handler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// With what it has asked of the client, and the client has not sent; in words for the client.
    BadRequest(String),
    /// Since nobody waits for the answer any more.
    Gone,
    /// What it has returned.
    Failed(i32),
}

impl Buffers {
    fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.body.clear();
    }
}

impl<'a> Answer<'a> {
    pub fn new(exchange: &'a mut dyn Exchange, buffers: &'a mut Buffers, body: Body) -> Self {
        buffers.clear();
        Self { exchange, buffers, body, stage: Stage::Collecting, status: 200, declared: None, written: 0 }
    }

    pub fn set_status(&mut self, status: u32) -> Result<(), Refusal> {
        self.collecting()?;
        self.status = u16::try_from(status).ok().filter(|s| (200..600).contains(s)).ok_or(abi::INVALID)?;
        Ok(())
    }

    pub fn set_header(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.before_the_head()?;
        if name.eq_ignore_ascii_case(b"content-length") {
            return self.declare(value);
        }
        let Buffers { fields, trailers, .. } = &mut *self.buffers;
        // What has announced the trailers that were set stays beside it.
        let is_beside = !trailers.is_empty() && name.eq_ignore_ascii_case(b"trailer");
        let set = if is_beside { fields.add(name, value) } else { fields.set(name, value) };
        set.map_err(|_| abi::INVALID)
    }

    pub fn add_header(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.before_the_head()?;
        if name.eq_ignore_ascii_case(b"content-length") {
            return self.declare(value);
        }
        self.buffers.fields.add(name, value).map_err(|_| abi::INVALID)
    }

    /// The client is told the names before the body, so that what has not been announced by then cannot follow.
    pub fn add_trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        let Buffers { fields, trailers, .. } = &mut *self.buffers;
        match self.stage {
            Stage::Gone => return Err(abi::GONE),
            Stage::Refused => return Err(abi::TOO_LATE),
            Stage::Sending if !fields.announces(name) => return Err(abi::TOO_LATE),
            Stage::Collecting | Stage::Sending => {}
        }
        trailers.add_trailer(name, value).map_err(|_| abi::INVALID)?;
        if fields.announces(name) {
            return Ok(());
        }
        fields.add(b"Trailer", name).map_err(|_| abi::INVALID)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        match self.stage {
            Stage::Gone => return Err(abi::GONE),
            Stage::Refused => return Err(abi::TOO_LATE),
            Stage::Collecting | Stage::Sending => {}
        }
        let written = self.written.saturating_add(bytes.len() as u64);
        if self.declared.is_some_and(|declared| written > declared) {
            return Err(abi::INVALID);
        }
        self.written = written;
        if self.body == Body::Withheld {
            return self.attempt(|answer| if answer.exchange.is_gone() { Err(Gone) } else { Ok(()) });
        }
        if self.buffers.body.len() + bytes.len() < PART {
            self.buffers.body.extend_from_slice(bytes);
            return Ok(());
        }
        self.attempt(|answer| answer.send(bytes))
    }

    pub fn flush(&mut self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Gone => Err(abi::GONE),
            // It is sent when the handler returns.
            Stage::Refused => Ok(()),
            Stage::Collecting | Stage::Sending => self.attempt(|answer| answer.send(&[])),
        }
    }

    /// Answers with a problem document instead of what was set. Fields can be set behind it.
    pub fn refuse(&mut self, status: u32, reason: &str) -> Result<(), Refusal> {
        self.collecting()?;
        let status = u16::try_from(status).ok().filter(|s| (400..600).contains(s)).ok_or(abi::INVALID)?;
        self.replace_by_problem(status, reason);
        Ok(())
    }

    /// Sends what is left. The handler has returned.
    pub fn finish(mut self, outcome: Outcome) -> Ended {
        let completion = self.conclude(outcome);
        let sent = match completion {
            Some(completion) => self.send_end(completion).map(|()| completion),
            None => Err(Gone),
        };
        Ended {
            status: (sent == Ok(Completion::Complete)).then_some(self.status),
            bytes: if self.has_body() { self.written } else { 0 },
        }
    }

    /// How the answer is to end; `None`: nobody waits for it.
    fn conclude(&mut self, outcome: Outcome) -> Option<Completion> {
        let trouble = match &outcome {
            Outcome::Done => self.length_error(),
            Outcome::BadRequest(_) | Outcome::Gone => None,
            Outcome::Failed(status) => Some(format!("the handler has failed: it returned {status}")),
        };
        let failed = trouble.is_some() || outcome != Outcome::Done;
        if self.stage != Stage::Gone {
            trouble.inspect(|trouble| self.exchange.log(Level::Error, trouble));
        }
        match (self.stage, outcome) {
            (Stage::Gone, _) => return None,
            (Stage::Sending, _) if failed => return Some(Completion::BrokenOff),
            (Stage::Collecting, Outcome::Gone) => {
                self.discard();
                self.status = 500;
                return Some(Completion::BrokenOff);
            }
            (Stage::Collecting, Outcome::BadRequest(reason)) => self.replace_by_problem(400, &reason),
            (Stage::Collecting, _) if failed => self.replace_by_problem(500, ""),
            _ => {}
        }
        Some(Completion::Complete)
    }

    /// Less was written than was announced.
    fn length_error(&self) -> Option<String> {
        let declared = self.declared.filter(|declared| *declared != self.written && self.has_body())?;
        Some(format!("the handler has announced {declared} bytes and written {}", self.written))
    }

    fn send_end(&mut self, completion: Completion) -> Result<(), Gone> {
        if self.stage != Stage::Sending {
            let length = match self.body {
                Body::Sent => self.declared,
                // What GET would have answered (RFC 9110 §9.3.2).
                Body::Withheld => Some(self.declared.unwrap_or(self.written)),
            };
            self.send_head(length)?;
        }
        self.send_buffer()?;
        if completion == Completion::Complete && !self.buffers.trailers.is_empty() {
            self.exchange.trailers(&self.buffers.trailers)?;
        }
        self.exchange.end(completion)?;
        self.exchange.publish();
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if self.stage == Stage::Collecting {
            self.send_head(self.declared)?;
            self.stage = Stage::Sending;
        }
        self.send_buffer()?;
        if self.has_body() && !bytes.is_empty() {
            self.exchange.body(bytes)?;
        }
        self.exchange.publish();
        if self.exchange.is_gone() { Err(Gone) } else { Ok(()) }
    }

    fn send_head(&mut self, length: Option<u64>) -> Result<(), Gone> {
        if let (Some(length), false) = (length, is_bodiless(self.status)) {
            let mut digits = [0; 20];
            let added = self.buffers.fields.add(b"Content-Length", decimal(length, &mut digits));
            debug_assert!(added.is_ok(), "a number is a valid value");
        }
        self.exchange.head(self.status, &self.buffers.fields)
    }

    fn send_buffer(&mut self) -> Result<(), Gone> {
        if !self.buffers.body.is_empty() && self.has_body() {
            self.exchange.body(&self.buffers.body)?;
        }
        self.buffers.body.clear();
        Ok(())
    }

    /// 204 and 304 have none, and neither has HEAD.
    fn has_body(&self) -> bool {
        self.body == Body::Sent && !is_bodiless(self.status)
    }

    fn declare(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let digits = value.trim_ascii();
        let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let declared =
            std::str::from_utf8(digits).ok().filter(|_| valid).and_then(|digits| digits.parse().ok());
        match declared {
            Some(length) if length >= self.written && self.stage == Stage::Collecting => {
                self.declared = Some(length);
                Ok(())
            }
            _ => Err(abi::INVALID),
        }
    }

    fn discard(&mut self) {
        self.declared = None;
        self.written = 0;
        self.buffers.clear();
    }

    fn replace_by_problem(&mut self, status: u16, reason: &str) {
        self.discard();
        self.status = status;
        let set = self.buffers.fields.set(b"Content-Type", problem::CONTENT_TYPE);
        debug_assert!(set.is_ok(), "a constant that is valid");
        let document = problem::document(status, reason);
        self.written = document.len() as u64;
        self.buffers.body = if self.body == Body::Sent { document } else { Vec::new() };
        self.stage = Stage::Refused;
    }

    fn attempt(&mut self, send: impl FnOnce(&mut Self) -> Result<(), Gone>) -> Result<(), Refusal> {
        send(self).map_err(|Gone| {
            self.stage = Stage::Gone;
            abi::GONE
        })
    }

    fn collecting(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Collecting => Ok(()),
            Stage::Gone => Err(abi::GONE),
            Stage::Refused | Stage::Sending => Err(abi::TOO_LATE),
        }
    }

    fn before_the_head(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Collecting | Stage::Refused => Ok(()),
            Stage::Gone => Err(abi::GONE),
            Stage::Sending => Err(abi::TOO_LATE),
        }
    }
}

/// Statuses whose answers end with the head (RFC 9110 §6.4.1).
fn is_bodiless(status: u16) -> bool {
    matches!(status, 204 | 304)
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}
