//! How long a client may stall, and since when it does.

use regent_net::CoarseInstant;
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Since when something has not gone on; nothing if it goes on.
#[derive(Debug, Default)]
pub(crate) struct Stall(Cell<Option<CoarseInstant>>);

/// Longest times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub idle: Duration,
    pub head: Duration,
    pub write: Duration,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing was begun: it can be closed in good order.
    Idle,
    /// The client stopped in the middle of something.
    Stalled,
}

impl Stall {
    /// It does not go on. What has begun before stays as it is.
    pub fn begin(&self) {
        if self.0.get().is_none() {
            self.0.set(Some(CoarseInstant::now()));
        }
    }

    /// It has gone on.
    pub fn end(&self) {
        self.0.set(None);
    }

    pub fn has_begun(&self) -> bool {
        self.0.get().is_some()
    }

    /// What is left of this limit; all time if it goes on.
    pub fn left(&self, limit: Duration, now: CoarseInstant) -> Duration {
        self.0.get().map_or(Duration::MAX, |since| now.left(since, limit))
    }
}

/// How long a client has given a stream no room.
pub(crate) struct StallTimer {
    limit: Duration,
    stall: Stall,
    /// Looks at `stall` now and then: it is not armed and disarmed for each piece.
    timer: Option<Pin<Box<Sleep>>>,
}

impl StallTimer {
    pub fn new(limit: Duration) -> Self {
        Self { limit, stall: Stall::default(), timer: None }
    }

    /// It has given room.
    pub fn end(&self) {
        self.stall.end();
    }

    /// It gives none. Ready when that has been so for too long.
    pub fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stall.begin();
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        loop {
            ready!(timer.as_mut().poll(context));
            let left = self.stall.left(self.limit, CoarseInstant::now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            timer.set(sleep(left));
        }
    }
}
