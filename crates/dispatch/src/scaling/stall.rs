//! Whether the queue stalls, and whether new threads would come in time to be of use.

use super::Observation;
use super::decay::kept;
use std::time::Duration;

/// A head that has waited for less was only unlucky.
const STALLED: Duration = Duration::from_millis(1);
/// Short requests let no head wait for long, but a thread is missing when, in the mean, so many of them wait.
const MISSING: f64 = 0.5;
/// The length of the queue and the rate at which requests start are means over about this time.
const WINDOW: Duration = Duration::from_millis(50);
/// A stall that lasts is met after this time at the latest, even if the backlog seems to drain by itself.
const PATIENCE: Duration = Duration::from_millis(50);
/// A queue that was empty at the last look has been so long for this time at most.
const FORMED: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Default)]
pub struct Stall {
    since: Option<Duration>,
    last: Option<Duration>,
    counted: Option<(Duration, u64)>,
    /// Requests that start in a second.
    rate: f64,
    /// Requests in the queue and in lanes.
    length: f64,
    /// Whether any waited at the last look.
    waited: bool,
}

impl Stall {
    pub fn observe(&mut self, seen: &Observation) {
        self.count(seen);
        let stalled = seen.anybody_waits() && (seen.oldest_wait >= STALLED || self.length >= MISSING);
        self.since = stalled.then(|| self.since.unwrap_or(seen.now));
        self.last = if stalled { Some(seen.now) } else { self.last };
    }

    /// When the queue was last seen stalled.
    pub fn last(&self) -> Option<Duration> {
        self.last
    }

    /// A backlog that will be gone before a new thread has booted calls for none, unless requests keep coming: then the
    /// stall outlasts a part of a boot.
    pub fn calls_for_threads(&self, seen: &Observation) -> bool {
        self.since.is_some_and(|since| {
            let patience = (seen.boot_time / 4).min(PATIENCE);
            self.drains_in(seen.all_waiting()) > seen.boot_time.as_secs_f64()
                || seen.now.saturating_sub(since) >= patience
        })
    }

    /// In seconds; infinite when nothing starts.
    fn drains_in(&self, waiting: u32) -> f64 {
        f64::from(waiting) / self.rate
    }

    fn count(&mut self, seen: &Observation) {
        let (at, before) = *self.counted.get_or_insert((seen.now, seen.started));
        let elapsed = seen.now.saturating_sub(at);
        if elapsed > Duration::ZERO {
            let old = kept(elapsed, WINDOW);
            let rate = seen.started.saturating_sub(before) as f64 / elapsed.as_secs_f64();
            self.rate = self.rate * old + rate * (1.0 - old);
            let lasted = if self.waited { elapsed } else { elapsed.min(FORMED) };
            self.length = self.length * old + f64::from(seen.all_waiting()) * (1.0 - kept(lasted, WINDOW));
            self.waited = seen.anybody_waits();
            self.counted = Some((seen.now, seen.started));
        }
    }
}
