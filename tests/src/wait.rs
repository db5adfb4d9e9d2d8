//! Waiting for events with a deadline.

use std::time::{Duration, Instant};

/// How long a test waits for something that must happen: far above what it takes on a busy machine with two cores,
/// since only failing tests ever wait this long.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Polls `event` until it gives a value; panics with `what` after [`DEADLINE`].
pub fn until<T>(what: &str, event: impl FnMut() -> Option<T>) -> T {
    try_until(DEADLINE, event).unwrap_or_else(|| panic!("still waiting after {DEADLINE:?}: {what}"))
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
        std::thread::sleep(Duration::from_millis(5));
    }
}
