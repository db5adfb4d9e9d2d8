//! A clock that is cheap to read.

use nix::time::ClockId;
use std::time::Duration;

/// A time since boot. By the coarse clock, which is right to a few milliseconds: it is read several times for each
/// request, at a third of the cost of the exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoarseInstant(Duration);

impl CoarseInstant {
    pub fn after(self, time: Duration) -> Self {
        Self(self.0 + time)
    }

    pub fn now() -> Self {
        let now = ClockId::CLOCK_MONOTONIC_COARSE.now().expect("invariant: Linux has this clock");
        Self(now.into())
    }

    /// The time from `earlier` to this moment.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// What is left at this moment of a time that began at `since`.
    pub fn left(self, since: Self, limit: Duration) -> Duration {
        limit.saturating_sub(self.since(since))
    }
}
