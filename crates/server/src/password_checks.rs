//! Passwords are hashed outside of the I/O threads: it takes a core for up to seconds.

use regent_handlers::{Verification, Verified};
use std::cell::Cell;
use tokio::sync::Semaphore;

/// At the same time, of an I/O thread and a listening address: strangers can ask for any number.
const AT_ONCE: usize = 2;
/// Requests that may wait for their turn; more are answered with 503.
const MOST_WAITING: usize = 64;

pub(crate) struct PasswordChecks {
    turns: Semaphore,
    waiting: Cell<usize>,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        Self { turns: Semaphore::new(AT_ONCE), waiting: Cell::new(0) }
    }
}

impl PasswordChecks {
    /// `None`: too many wait.
    pub async fn check(&self, verification: Verification) -> Option<Verified> {
        if self.waiting.get() == MOST_WAITING {
            return None;
        }
        let waiting = Waiting::new(&self.waiting);
        let turn = self.turns.acquire().await.ok()?;
        drop(waiting);
        let verified = tokio::task::spawn_blocking(|| verification.run()).await.ok();
        drop(turn);
        verified
    }
}

/// A client may leave while it waits.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
