//! Waiting for events with a deadline.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen: far above what it takes on a busy machine with two cores,
/// since only failing tests ever wait this long.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Polls `event` until it gives a value; panics with `what` after [`DEADLINE`].
pub fn until<T>(what: &str, event: impl FnMut() -> Option<T>) -> T {
    try_until(DEADLINE, event).unwrap_or_else(|| panic!("still waiting after {DEADLINE:?}: {what}"))
}

/// The same with a limit of its own, for what takes longer by nature.
pub fn until_within<T>(limit: Duration, what: &str, event: impl FnMut() -> Option<T>) -> T {
    try_until(limit, event).unwrap_or_else(|| panic!("still waiting after {limit:?}: {what}"))
}

/// What another thread of the test says next; panics with `what` after [`DEADLINE`], and when nobody is there to say it.
pub fn heard<T>(events: &Receiver<T>, what: &str) -> T {
    events.recv_timeout(DEADLINE).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// A pause between two requests of a client that asks in a loop, or between two looks at something. It leaves the machine to
/// others; no test depends on its length.
#[expect(clippy::disallowed_methods, reason = "a pause in a loop that ends with an event")]
pub fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// Polls `event` until it gives a value or `limit` has passed.
pub(crate) fn try_until<T>(limit: Duration, mut event: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = event() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        pause(Duration::from_millis(5));
    }
}
