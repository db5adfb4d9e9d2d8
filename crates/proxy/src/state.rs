//! What is known of an upstream by all I/O threads.

use regent_config::PassiveHealth;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Figures that I/O threads share without waiting for each other.
pub(crate) struct UpstreamState {
    /// What it is called.
    pub name: String,
    started: Instant,
    /// It was asked how it is, and said nothing good.
    is_down: AtomicBool,
    requests: AtomicU32,
    requests_ever: AtomicU64,
    failures_ever: AtomicU64,
    most_requests: u32,
    /// When each of the last failures is forgotten, in milliseconds since the start; as many as are too many.
    failures: Box<[AtomicU64]>,
    /// Which of them the next one replaces.
    next: AtomicUsize,
    remembered: Duration,
}

/// A request with an upstream, as long as it lives.
pub(crate) struct InFlight(Arc<UpstreamState>);

impl UpstreamState {
    pub fn new(name: String, health: &PassiveHealth) -> Arc<Self> {
        let most = if health.fail_duration.is_zero() { 0 } else { health.max_fails };
        Arc::new(Self {
            name,
            started: Instant::now(),
            is_down: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            requests_ever: AtomicU64::new(0),
            failures_ever: AtomicU64::new(0),
            most_requests: health.unhealthy_request_count.unwrap_or(u32::MAX),
            failures: (0..most).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicUsize::new(0),
            remembered: health.fail_duration,
        })
    }

    /// Whether it may be given a request.
    pub fn is_available(&self) -> bool {
        self.is_healthy() && self.requests() < self.most_requests
    }

    pub fn is_healthy(&self) -> bool {
        !self.is_down.load(Ordering::Relaxed)
            && (self.failures.is_empty() || self.fails() < self.failures.len())
    }

    /// It has said that it is not well.
    pub fn goes_down(&self) {
        self.is_down.store(true, Ordering::Relaxed);
    }

    pub fn comes_up(&self) {
        self.is_down.store(false, Ordering::Relaxed);
    }

    /// Requests that it has now.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Failures that are remembered; no more than are too many.
    pub fn fails(&self) -> usize {
        let now = self.milliseconds();
        self.failures.iter().filter(|until| until.load(Ordering::Relaxed) > now).count()
    }

    pub fn fail(&self) {
        self.failures_ever.fetch_add(1, Ordering::Relaxed);
        if self.failures.is_empty() {
            return;
        }
        let until = self.milliseconds() + u64::try_from(self.remembered.as_millis()).unwrap_or(u64::MAX / 2);
        let slot = self.next.fetch_add(1, Ordering::Relaxed) % self.failures.len();
        self.failures[slot].store(until, Ordering::Relaxed);
    }

    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.requests_ever.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Requests that it was given, and those that failed, since the directive stands as it does.
    pub fn totals(&self) -> (u64, u64) {
        (self.requests_ever.load(Ordering::Relaxed), self.failures_ever.load(Ordering::Relaxed))
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(fail_duration: Duration, max_fails: u32, most: Option<u32>) -> Arc<UpstreamState> {
        let health = PassiveHealth {
            fail_duration,
            max_fails,
            unhealthy_request_count: most,
            ..PassiveHealth::default()
        };
        UpstreamState::new("a:80".into(), &health)
    }

    #[test]
    fn enough_failures_make_it_unhealthy_until_they_are_forgotten() {
        let state = state(Duration::from_secs(3600), 2, None);
        state.fail();
        assert!(state.is_available() && state.fails() == 1);
        state.fail();
        assert!(!state.is_available() && state.fails() == 2);
        state.failures[0].store(0, Ordering::Relaxed);
        assert!(state.is_available());
    }

    #[test]
    fn failures_are_not_counted_unless_they_are_to_be_remembered() {
        let state = state(Duration::ZERO, 1, None);
        state.fail();
        assert!(state.is_available() && state.fails() == 0);
    }

    #[test]
    fn a_full_upstream_gets_no_more() {
        let state = state(Duration::ZERO, 1, Some(2));
        let (first, second) = (state.begin(), state.begin());
        assert!(!state.is_available() && state.is_healthy());
        drop(first);
        assert!(state.is_available());
        drop(second);
        assert_eq!(state.requests(), 0);
    }
}
