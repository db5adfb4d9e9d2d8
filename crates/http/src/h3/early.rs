//! What a service sends before the final response of a stream.

use crate::h3::fields;
use crate::response_head::drop_connection_fields;
use http::{HeaderMap, HeaderName, StatusCode, Version, header};
use regent_exchange::{Informational, Tunnel};
use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

/// Bytes that one request's informational responses may have. A client that takes none would have them all kept.
const MOST: usize = 64 * 1024;

/// What an informational response must not say: it has no body (RFC 9110 §8.6).
const OF_THE_FINAL: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRAILER];

/// Informational responses that wait to be sent by their stream, which takes them when it looks.
pub(super) struct Early {
    waiting: RefCell<Vec<u8>>,
    bytes_left: Cell<usize>,
    state: Cell<State>,
    stream: RefCell<Option<Waker>>,
    /// Takes the stream over behind the final response.
    tunnel: RefCell<Option<Tunnel>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The final response is there.
    Over,
    /// There is to be none.
    Aborted,
}

/// What a service wants of its stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To send these frames.
    Send(Vec<u8>),
    /// To end it without a response.
    Abort,
}

impl Default for Early {
    fn default() -> Self {
        Self {
            waiting: RefCell::default(),
            bytes_left: Cell::new(MOST),
            state: Cell::new(State::Open),
            stream: RefCell::default(),
            tunnel: RefCell::default(),
        }
    }
}

impl Early {
    /// Ready when there is a wish.
    pub fn poll_wish(&self, context: &mut Context<'_>) -> Poll<Wish> {
        if self.state.get() == State::Aborted {
            return Poll::Ready(Wish::Abort);
        }
        let waiting = self.waiting.take();
        if waiting.is_empty() {
            self.stream.replace(Some(context.waker().clone()));
            return Poll::Pending;
        }
        Poll::Ready(Wish::Send(waiting))
    }

    /// The final response is there: what comes now is too late, since those who hold this, such as a request's body, may outlive
    /// the response. Returns what still waits.
    pub fn end(&self) -> Vec<u8> {
        self.state.set(State::Over);
        self.waiting.take()
    }

    pub fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.take()
    }

    /// Asks for the body of a request that waits for it (RFC 9110 §10.1.1).
    pub fn ask_for_body(&self) {
        self.write(StatusCode::CONTINUE, &HeaderMap::new());
    }

    fn write(&self, status: StatusCode, fields: &HeaderMap) {
        let frame = fields::response(status, fields);
        let Some(left) = self.bytes_left.get().checked_sub(frame.len()) else { return };
        if self.state.get() == State::Open {
            self.bytes_left.set(left);
            self.waiting.borrow_mut().extend(frame);
            self.wake();
        }
    }

    fn wake(&self) {
        self.stream.take().into_iter().for_each(Waker::wake);
    }
}

impl Informational for Early {
    fn send(&self, _: Version, status: StatusCode, fields: &HeaderMap) {
        if !(102..200).contains(&status.as_u16()) {
            return;
        }
        let mut fields = fields.clone();
        drop_connection_fields(&mut fields);
        OF_THE_FINAL.iter().for_each(|name| drop(fields.remove(name)));
        self.write(status, &fields);
    }

    fn close_connection(&self) {}

    fn hand_over(&self, tunnel: Tunnel) {
        self.tunnel.replace(Some(tunnel));
    }

    fn abort(&self) {
        if self.state.get() == State::Open {
            self.state.set(State::Aborted);
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn wish(early: &Early) -> Poll<Wish> {
        early.poll_wish(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn hints_are_sent_without_what_is_the_final_responses() {
        let early = Early::default();
        assert_eq!(wish(&early), Poll::Pending);
        let mut fields = HeaderMap::new();
        for name in ["connection", "content-length", "link"] {
            fields.insert(name, HeaderValue::from_static("1"));
        }
        early.send(Version::HTTP_3, StatusCode::EARLY_HINTS, &fields);
        fields.remove("connection");
        fields.remove("content-length");
        let expected = fields::response(StatusCode::EARLY_HINTS, &fields);
        assert_eq!(wish(&early), Poll::Ready(Wish::Send(expected)));
        early.send(Version::HTTP_3, StatusCode::SWITCHING_PROTOCOLS, &fields);
        early.send(Version::HTTP_3, StatusCode::OK, &fields);
        assert_eq!(wish(&early), Poll::Pending);
    }

    #[test]
    fn hints_have_a_bound() {
        let early = Early::default();
        let mut fields = HeaderMap::new();
        fields.insert("link", HeaderValue::from_str(&"a".repeat(1000)).unwrap());
        for _ in 0..1000 {
            early.send(Version::HTTP_3, StatusCode::EARLY_HINTS, &fields);
        }
        assert!(early.waiting.borrow().len() <= MOST);
    }

    #[test]
    fn nothing_follows_the_final_response() {
        let early = Early::default();
        early.ask_for_body();
        assert!(!early.end().is_empty());
        early.ask_for_body();
        early.abort();
        assert_eq!(wish(&early), Poll::Pending);
    }

    #[test]
    fn a_stream_can_be_ended_without_a_response() {
        let early = Early::default();
        early.abort();
        assert_eq!(wish(&early), Poll::Ready(Wish::Abort));
    }
}
