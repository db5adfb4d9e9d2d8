//! What a connection is doing, and since when: the base of its time-outs.
//!
//! One lazy timer for each connection looks at it; nothing is armed or disarmed for each request.

use crate::timeouts::{Expired, Stall, Timeouts};
use regent_net::CoarseInstant;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What the connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first byte of a request.
    Idle,
    /// The rest of a request's head.
    Head,
    /// The service, or the end of the answer's body.
    Busy,
}

/// Shared by the connection's socket, its service and its timer, all on one thread.
#[derive(Debug)]
pub(crate) struct Activity {
    phase: Cell<Phase>,
    /// No request has come yet.
    is_new: Cell<bool>,
    since: Cell<CoarseInstant>,
    /// When the first bytes came of a head that did not come whole.
    head_begun: Cell<Option<Instant>>,
    /// Since when the client has taken nothing of what there is to send.
    blocked: Stall,
    /// The last answer closes the connection, whatever the client is still sending.
    cut_off: Cell<bool>,
    /// Of the request that has just begun.
    body_length: Cell<Option<u64>>,
    /// A request had an `Upgrade` field.
    upgrade_offered: Cell<bool>,
    /// The last answer has no end.
    broken_off: Cell<bool>,
}

impl Activity {
    pub fn new() -> Self {
        Self {
            phase: Cell::new(Phase::Idle),
            is_new: Cell::new(true),
            since: Cell::new(CoarseInstant::now()),
            head_begun: Cell::new(None),
            blocked: Stall::default(),
            cut_off: Cell::new(false),
            body_length: Cell::new(None),
            upgrade_offered: Cell::new(false),
            broken_off: Cell::new(false),
        }
    }

    /// More is wanted from the client.
    pub fn reading(&self) {
        // What came of the head is not all of it. Most heads come whole, and cost no look at the exact clock.
        if self.phase.get() == Phase::Head && self.head_begun.get().is_none() {
            self.head_begun.set(Some(Instant::now()));
        }
    }

    /// Bytes came from the client.
    pub fn received(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// A request's head is complete. Returns how long it took to come, from its first byte: nothing if it came whole.
    /// (Of a head that began in the same packet as the request before ended, the later bytes count.)
    ///
    /// `body_length`: in bytes, if the head says it.
    pub fn request_started(&self, body_length: Option<u64>) -> Duration {
        self.phase.set(Phase::Busy);
        self.is_new.set(false);
        self.broken_off.set(false);
        self.body_length.set(body_length);
        self.head_begun.take().map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// How long a request is waited for though the connection is to end; `None`: not at all. One that has begun to come is, and
    /// that of a client that has just come.
    pub fn awaits_request(&self, patience: Duration) -> Option<Duration> {
        match self.phase.get() {
            Phase::Head => Some(patience),
            Phase::Idle if self.is_new.get() => Some(CoarseInstant::now().left(self.since.get(), patience)),
            Phase::Idle | Phase::Busy => None,
        }
    }

    /// Whether it has a request.
    pub fn is_busy(&self) -> bool {
        self.phase.get() == Phase::Busy
    }

    /// How many bytes follow the head of the last request; `None` if nobody knows, or this was asked before.
    pub fn take_body_length(&self) -> Option<u64> {
        self.body_length.take()
    }

    /// The same, without an end to the question.
    pub fn body_length(&self) -> Option<u64> {
        self.body_length.get()
    }

    /// The answer's last byte was handed to the connection.
    pub fn request_ended(&self) {
        self.enter(Phase::Idle);
    }

    /// A request had an `Upgrade` field, which a service may follow.
    pub fn upgrade_offered(&self) {
        self.upgrade_offered.set(true);
    }

    /// Whether that was so; not if this was asked before.
    pub fn take_upgrade_offered(&self) -> bool {
        self.upgrade_offered.take()
    }

    /// The service has asked to close the connection with this answer.
    pub fn answered_with_close(&self) {
        self.cut_off.set(true);
    }

    /// Whether the connection ends with an answer that said so, or in the middle of something.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.get() || self.phase.get() != Phase::Idle
    }

    /// The answer was not handed over whole, unless it needs no body.
    pub fn broke_off(&self) {
        self.broken_off.set(true);
    }

    /// Whether a request has come, and its answer has not been handed over whole, nor will it be.
    pub fn is_answering(&self) -> bool {
        self.phase.get() == Phase::Busy || self.broken_off.get()
    }

    /// The socket took bytes.
    pub fn written(&self) {
        self.blocked.end();
    }

    /// Nothing that it has taken waits for its client. The client has its time for the next request from then on.
    pub fn flushed(&self) {
        if self.blocked.has_begun() && self.phase.get() == Phase::Idle {
            self.since.set(CoarseInstant::now());
        }
        self.blocked.end();
    }

    /// Whether there is something to send that the client does not take.
    pub fn is_write_blocked(&self) -> bool {
        self.blocked.has_begun()
    }

    /// The socket took none.
    pub fn write_blocked(&self) {
        self.blocked.begin();
    }

    /// Whether the connection must end now, or else how long to wait before looking again.
    pub fn check(&self, timeouts: &Timeouts, now: CoarseInstant) -> Result<Duration, Expired> {
        let (left, expired) = match self.phase.get() {
            // The last bytes of an answer are on their way.
            Phase::Idle if self.blocked.has_begun() => (Duration::MAX, Expired::Stalled),
            Phase::Idle => (now.left(self.since.get(), timeouts.idle), Expired::Idle),
            Phase::Head => (now.left(self.since.get(), timeouts.head), Expired::Stalled),
            Phase::Busy => (Duration::MAX, Expired::Stalled),
        };
        if left.is_zero() {
            return Err(expired);
        }
        let blocked = self.blocked.left(timeouts.write, now);
        if blocked.is_zero() {
            return Err(Expired::Stalled);
        }
        // Whatever begins from now on ends no sooner than the shortest of the limits.
        Ok(left.min(blocked).min(timeouts.idle).min(timeouts.head).min(timeouts.write))
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(CoarseInstant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Timeouts = Timeouts {
        idle: Duration::from_secs(100),
        head: Duration::from_secs(10),
        write: Duration::from_secs(60),
    };

    fn after(seconds: u64) -> CoarseInstant {
        CoarseInstant::now().after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_silent_connection_ends_after_the_idle_time() {
        let activity = Activity::new();
        assert!(activity.check(&PATIENCE, after(99)).is_ok());
        assert_eq!(activity.check(&PATIENCE, after(101)), Err(Expired::Idle));
    }

    #[test]
    fn bytes_do_not_prolong_the_time_for_a_head() {
        let activity = Activity::new();
        activity.received();
        let since = activity.since.get();
        activity.received();
        assert_eq!(activity.since.get(), since);
        assert_eq!(activity.check(&PATIENCE, after(11)), Err(Expired::Stalled));
    }

    #[test]
    fn a_head_that_comes_whole_takes_no_time() {
        let activity = Activity::new();
        activity.reading();
        activity.received();
        assert_eq!(activity.request_started(Some(0)), Duration::ZERO);
        activity.reading();
        activity.received();
        activity.request_ended();
        activity.reading();
        activity.received();
        assert_eq!(activity.request_started(Some(0)), Duration::ZERO);
    }

    #[test]
    fn a_head_in_parts_takes_from_the_first_to_the_last() {
        let activity = Activity::new();
        activity.received();
        activity.reading();
        let begun = activity.head_begun.get().expect("it is not whole");
        activity.received();
        activity.reading();
        assert_eq!(activity.head_begun.get(), Some(begun));
        // clock: the least that the head has taken.
        let least = begun.elapsed();
        assert!(activity.request_started(Some(0)) >= least && activity.head_begun.get().is_none());
    }

    #[test]
    fn a_running_request_has_no_limit_but_the_clients_reading() {
        let activity = Activity::new();
        activity.request_started(Some(0));
        assert!(activity.check(&PATIENCE, after(1000)).is_ok());
        activity.write_blocked();
        assert_eq!(activity.check(&PATIENCE, after(61)), Err(Expired::Stalled));
        activity.written();
        assert!(activity.check(&PATIENCE, after(1000)).is_ok());
    }

    /// With TLS the last bytes of an answer may leave long after it was handed over.
    #[test]
    fn the_rest_of_an_answer_is_not_idleness() {
        const BRIEF: Timeouts = Timeouts { idle: Duration::from_secs(5), ..PATIENCE };
        let activity = Activity::new();
        activity.request_started(Some(0));
        activity.request_ended();
        activity.write_blocked();
        assert!(activity.check(&BRIEF, after(59)).is_ok());
        assert_eq!(activity.check(&BRIEF, after(61)), Err(Expired::Stalled));
        activity.flushed();
        assert!(activity.check(&BRIEF, after(4)).is_ok());
        assert_eq!(activity.check(&BRIEF, after(6)), Err(Expired::Idle));
    }
}
