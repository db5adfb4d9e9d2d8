//! The body of a subscriber's response: an event stream.

use crate::dispatcher::{Command, Commands};
use crate::mailbox::{End, Mailbox};
use crate::registry::{Interest, Number};
use crate::update::Update;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A comment, which no client takes for an event.
const COMMENT: Bytes = Bytes::from_static(b":\n");
/// Updates of the past that are looked at in one go.
const LOOKS: usize = 256;
/// The same times the variables of the subscriber's templates.
const LOOKS_AT_VARIABLES: usize = 4096;
/// When clients come again whose hub has closed, in milliseconds: not all at once.
const COME_AGAIN: std::ops::Range<u64> = 500..3000;

/// What a subscriber gets: the past, and then what comes.
pub(crate) struct EventStream {
    interest: Arc<Interest>,
    mailbox: Arc<Mailbox>,
    past: std::vec::IntoIter<Arc<Update>>,
    /// How many updates of it are looked at in one go.
    looks: usize,
    state: State,
    /// 0: never.
    heartbeat: Duration,
    /// When the connection ends, in any case.
    end: Option<Instant>,
    last_sent: Instant,
    /// Wakes for a heartbeat or the end. `None`: there is neither.
    timer: Option<Pin<Box<Sleep>>>,
    _membership: Membership,
}

/// Takes a subscriber out of the hub when its connection has gone.
pub(crate) struct Membership {
    pub number: Number,
    pub commands: Commands,
}

#[derive(PartialEq, Eq)]
enum State {
    /// Nothing was sent yet: a comment sends the head on its way.
    Begun,
    Open,
    Ended,
}

/// What a stream is made of.
pub(crate) struct Start {
    pub membership: Membership,
    pub interest: Arc<Interest>,
    pub mailbox: Arc<Mailbox>,
    pub past: Vec<Arc<Update>>,
    pub heartbeat: Duration,
    /// `None`: the connection may last.
    pub lifetime: Option<Duration>,
}

impl EventStream {
    pub fn new(start: Start) -> Self {
        let Start { membership, interest, mailbox, past, heartbeat, lifetime } = start;
        let now = Instant::now();
        let end = lifetime.and_then(|lifetime| now.checked_add(lifetime));
        let looks = (LOOKS_AT_VARIABLES / interest.variables().max(1)).clamp(1, LOOKS);
        let mut stream = Self {
            looks,
            interest,
            mailbox,
            past: past.into_iter(),
            state: State::Begun,
            heartbeat,
            end,
            last_sent: now,
            timer: None,
            _membership: membership,
        };
        stream.timer = stream.due().map(|due| Box::pin(sleep_until(due)));
        stream
    }

    /// When something is to be done though no update comes.
    fn due(&self) -> Option<Instant> {
        let heartbeat =
            (!self.heartbeat.is_zero()).then(|| self.last_sent.checked_add(self.heartbeat)).flatten();
        heartbeat.into_iter().chain(self.end).min()
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.state == State::Ended || self.end.is_some_and(|end| end <= Instant::now()) {
            self.state = State::Ended;
            return Poll::Ready(None);
        }
        if self.state == State::Begun {
            self.state = State::Open;
            return Poll::Ready(Some(COMMENT));
        }
        if self.past.len() > 0 {
            return self.next_of_past(cx);
        }
        match self.mailbox.poll(cx) {
            Poll::Ready(Ok(event)) => Poll::Ready(Some(event)),
            Poll::Ready(Err(end)) => {
                self.state = State::Ended;
                Poll::Ready((end == End::Closed).then(come_again))
            }
            Poll::Pending => self.wait(cx),
        }
    }

    fn next_of_past(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.mailbox.touch();
        let wanted = self.past.by_ref().take(self.looks).find(|update| self.interest.wants(update));
        if let Some(update) = wanted {
            return Poll::Ready(Some(update.event()));
        }
        // The other connections of the thread come first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while let Some(timer) = &mut self.timer {
            std::task::ready!(timer.as_mut().poll(cx));
            let now = Instant::now();
            if self.end.is_some_and(|end| end <= now) {
                self.state = State::Ended;
                return Poll::Ready(None);
            }
            let is_silent = !self.heartbeat.is_zero() && now - self.last_sent >= self.heartbeat;
            if is_silent {
                self.last_sent = now;
            }
            // The timer was set for the last silence that began when it fired or was set.
            let due = self.due();
            match (&mut self.timer, due) {
                (Some(timer), Some(due)) => timer.as_mut().reset(due),
                (timer, _) => *timer = None,
            }
            if is_silent {
                return Poll::Ready(Some(COMMENT));
            }
        }
        Poll::Pending
    }
}

/// Sets the reconnection time of the client.
fn come_again() -> Bytes {
    let spread = COME_AGAIN.end - COME_AGAIN.start;
    let milliseconds = COME_AGAIN.start + RandomState::new().hash_one(0) % spread;
    format!("retry: {milliseconds}\n\n").into()
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let next = this.next(cx);
        if let Poll::Ready(Some(_)) = &next {
            this.last_sent = Instant::now();
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.commands.send(Command::Leave(self.number));
    }
}
