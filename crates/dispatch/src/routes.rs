//! What a route is: all requests of a pool whose paths have the same [name](RouteName). Service times, lanes and
//! metrics go by it.
//!
//! Paths come from clients, so everything here is bounded: [`Routes`] knows at most [`MAX_ROUTES`] names, and whatever
//! is new beyond that is `other`. So that a scanner that comes by does not fill the table for ever, a name that was not
//! seen for a minute, or was seen once and not again for some seconds, makes room when the table is full.
//!
//! A client can ask for a new path with each request, and a path that was never asked for has no history to judge it
//! by. What runs then is not the client's choice: so each script has an `other` of its own ([`Routes::shared`]), whose
//! history is that of all its new routes.

mod cache;
mod name;
mod running;
mod table;

pub use cache::RouteCache;
pub use name::RouteName;
pub use table::{MAX_ROUTES, Routes};

use crate::estimate::{Recorded, ServiceTime, nanoseconds};
use running::Running;
pub(crate) use running::Start;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// `last_seen` moves in steps of this, so that I/O threads do not fight over its cache line.
const SEEN_STEP: Duration = Duration::from_millis(100);
/// A route returns that was asked for at so many moments, which are [`SEEN_STEP`] apart at least, over so long a time.
const RETURNS: u32 = 3;
const RETURNS_OVER: Duration = Duration::from_secs(2);

/// One route of one pool, shared by all I/O threads: its figures, kept by atomics.
#[derive(Debug)]
pub struct Route {
    name: RouteName,
    pool: u16,
    origin: Origin,
    epoch: Duration,
    /// Nanoseconds after the epoch.
    seen: AtomicU64,
    /// The first time; as `seen`.
    first_seen: AtomicU64,
    /// How many times `seen` has moved.
    moments: AtomicU32,
    service: ServiceTime,
    running: Running,
    /// Let in by the lanes: on the pool's queue, or running.
    inside: AtomicU32,
    /// Held back by the lanes.
    held_back: AtomicU32,
    /// Of what it is [shared](Routes::shared) for: requests of new routes that the lanes have let in.
    newcomers: AtomicU32,
    /// Whether the lanes have judged it by a request that ended. Until then it is new.
    known: AtomicBool,
    /// Whether its requests have to ask the lanes for a place.
    limited: AtomicBool,
    /// Whether the pool's lanes know of it.
    listed: AtomicBool,
    /// No longer in the table: caches must ask again.
    retired: AtomicBool,
}

/// When the table is full, a name makes room for another that was not seen for so long ...
const UNSEEN: Duration = Duration::from_secs(60);
/// ... and one that has not [returned](Route::returns) yet, for so long: those that return come in even while a scanner
/// fills the table.
const UNSEEN_AGAIN: Duration = Duration::from_secs(5);

/// Where a route's name comes from; only what clients can make up has to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Path,
    Configuration,
    /// What new routes of a script have in common.
    Script,
    /// The same, of a pool, where there are too many scripts.
    Overflow,
}

impl Route {
    pub(crate) fn new(name: RouteName, pool: u16, origin: Origin, epoch: Duration) -> Self {
        Self {
            name,
            pool,
            origin,
            epoch,
            seen: AtomicU64::new(0),
            first_seen: AtomicU64::new(0),
            moments: AtomicU32::new(0),
            service: ServiceTime::default(),
            running: Running::default(),
            inside: AtomicU32::new(0),
            held_back: AtomicU32::new(0),
            newcomers: AtomicU32::new(0),
            known: AtomicBool::new(false),
            limited: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            retired: AtomicBool::new(false),
        }
    }

    /// Of a bounded length and without control characters; fit for logs and metrics.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    pub fn pool(&self) -> u16 {
        self.pool
    }

    /// A request of this route has run for so long: from its start in PHP to its end, without any wait.
    pub fn record(&self, execution: Duration) {
        self.service.record(execution);
    }

    /// Mean time in PHP of the last requests (exponentially weighted); `None` before the first has ended.
    pub fn mean_service_time(&self) -> Option<Duration> {
        self.service.mean()
    }

    /// About the 99th percentile of the time in PHP; `None` before the first request has ended.
    pub fn high_service_time(&self) -> Option<Duration> {
        self.service.high()
    }

    /// Requests that PHP runs now, as far as their places were told.
    pub fn running(&self) -> u32 {
        self.running.count()
    }

    /// Requests that wait, be it for their lane or on the pool's queue.
    pub fn waiting(&self) -> u32 {
        self.held_back() + self.queued()
    }

    /// Requests on the pool's queue.
    pub(crate) fn queued(&self) -> u32 {
        self.inside.load(Ordering::Relaxed).saturating_sub(self.running())
    }

    /// Requests that wait for their lane.
    pub fn held_back(&self) -> u32 {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Whether a lane limits it now, because it is slow or because the configuration says so.
    pub fn is_limited(&self) -> bool {
        // See `inside`.
        self.limited.load(Ordering::SeqCst)
    }

    /// Whether it has a history. A route without one may turn out to be anything.
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// The table has no room for the path's own name: its requests count as what is [shared](Routes::shared).
    pub fn is_overflow(&self) -> bool {
        self.origin == Origin::Overflow
    }

    /// Whether its name is that of its paths, or of the configuration: not what many others have in common.
    pub fn has_own_name(&self) -> bool {
        matches!(self.origin, Origin::Path | Origin::Configuration)
    }

    /// When a request last asked for it, to a tenth of a second.
    pub fn last_seen(&self) -> Duration {
        self.epoch + Duration::from_nanos(self.seen.load(Ordering::Relaxed))
    }

    pub(crate) fn see(&self, now: Duration) {
        let now = nanoseconds(now.saturating_sub(self.epoch));
        let seen = self.seen.load(Ordering::Relaxed);
        if now.saturating_sub(seen) >= nanoseconds(SEEN_STEP) {
            self.see_anew(seen, now);
        }
    }

    #[cold]
    fn see_anew(&self, seen: u64, now: u64) {
        // Of several threads at one moment, one counts it.
        if self.seen.compare_exchange(seen, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && self.moments.fetch_add(1, Ordering::Relaxed) == 0
        {
            self.first_seen.store(now, Ordering::Relaxed);
        }
    }

    /// Whether it is asked for again and again, or was named by the configuration. What a scanner makes up is asked for
    /// once.
    pub fn returns(&self) -> bool {
        let since_first = || {
            let first = self.first_seen.load(Ordering::Relaxed);
            self.seen.load(Ordering::Relaxed).saturating_sub(first)
        };
        match self.origin {
            Origin::Configuration => true,
            Origin::Script | Origin::Overflow => false,
            Origin::Path => {
                self.moments.load(Ordering::Relaxed) >= RETURNS && since_first() >= nanoseconds(RETURNS_OVER)
            }
        }
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.service.recorded()
    }

    /// Requests that run now, and the sum of their ages.
    pub(crate) fn in_progress(&self, now: Duration) -> (u32, Duration) {
        self.running.ages(self.start_at(now))
    }

    pub(crate) fn begin(&self, now: Duration) -> Start {
        let start = self.start_at(now);
        self.running.begin(start);
        start
    }

    /// As of a request of another route; all have the same epoch.
    pub(crate) fn begin_at(&self, start: Start) {
        self.running.begin(start);
    }

    pub(crate) fn end(&self, start: Start) {
        self.running.end(start);
    }

    /// Requests that the lanes have let in and that have not ended.
    ///
    /// Sequentially consistent, as `limited` is: who gives a place back decrements this and then looks whether the
    /// route is limited; who makes it limited sets that and then looks here. One of the two sees the other, so nobody
    /// is left waiting for a place that was given back in between.
    pub(crate) fn inside(&self) -> u32 {
        self.inside.load(Ordering::SeqCst)
    }

    pub(crate) fn let_in(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn let_out(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn hold_back(&self) {
        self.held_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn release(&self) {
        self.held_back.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn set_limited(&self) {
        self.limited.store(true, Ordering::SeqCst);
    }

    pub(crate) fn set_unlimited(&self) {
        self.limited.store(false, Ordering::SeqCst);
    }

    /// `true` for the first caller only.
    pub(crate) fn list(&self) -> bool {
        !self.listed.load(Ordering::Relaxed) && !self.listed.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Returns whether it was new until now.
    pub(crate) fn set_known(&self) -> bool {
        !self.is_known() && !self.known.swap(true, Ordering::Relaxed)
    }

    /// As [`Route::inside`], and read by the same rule.
    pub(crate) fn newcomers(&self) -> u32 {
        self.newcomers.load(Ordering::SeqCst)
    }

    pub(crate) fn let_newcomer_in(&self) {
        self.newcomers.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn let_newcomer_out(&self) {
        self.newcomers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Not of the configuration, and not in use.
    pub(crate) fn may_make_room(&self, now: Duration) -> bool {
        let unseen = if self.origin == Origin::Path && !self.returns() { UNSEEN_AGAIN } else { UNSEEN };
        matches!(self.origin, Origin::Path | Origin::Script)
            && self.newcomers() == 0
            && self.inside.load(Ordering::Relaxed) == 0
            && self.held_back() == 0
            && now.saturating_sub(self.last_seen()) >= unseen
    }

    fn start_at(&self, now: Duration) -> Start {
        Start::after(now.saturating_sub(self.epoch))
    }
}
