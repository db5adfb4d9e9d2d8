//! A slow route must not starve fast ones: it gets a lane, that is, a part of the pool's threads, and what comes beyond
//! that waits in the lane, in the order of arrival, without a thread and without a place on the pool's queue.
//!
//! # Who is slow
//! A route whose requests take at least 50 ms *and* at least 4 × as long as the pool's *typical* request; see
//! `slowness.rs`. Requests that still run count with the time they have run so far, so a route that hangs
//! is slow 50 ms after its first hanging request started, not when that ends.
//!
//! # How much it gets
//! - All slow routes together: the pool's largest size less a reserve for the fast. That is what fast requests have held
//!   on average, n threads, and 2√n beyond, with which requests that come by chance hardly ever find all of them busy;
//!   but at least a quarter or four threads, whichever is less, and never more than half.
//! - Each slow route, when there are several: half of the pool's largest size, at least one thread.
//! - Nobody asked for a fast route for 10 s: the whole pool, since there is nobody to protect. Not more than that: what
//!   waits goes on waiting in the lane, not on the pool's queue, where a fast request that comes after all would stand
//!   behind it.
//!
//! Among several lanes with waiting requests, the one that has the fewest places is next, and then the one whose
//! request came first.
//!
//! # In which order
//! The requests of a lane reach the pool's queue in the order of arrival, also those of different I/O threads: the next
//! one gets its place when the one before it is [on the queue](Place::queued). Only those that had to wait pay for that.
//!
//! # By configuration
//! - `lane NAME`: a route by that name ([`Routes::lane`](crate::routes::Routes::lane)), judged as others are.
//! - `lane NAME { threads N | share P% }`: [pinned](Lanes::pin), that is, always limited, slow or not, to exactly that.
//!   Such a lane is often there to spare a database, so it gets no more when nobody else comes. It neither counts in
//!   what slow routes have together nor is it judged.
//! - `lane off`: [let past](Lanes::let_past), never limited.

mod lines;
mod place;
mod slowness;

pub use place::{Place, Turn};

use crate::estimate::nanoseconds;
use crate::routes::Route;
use lines::{Limits, Lines};
use slowness::{Change, Watch};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Routes are judged so often: 512 of them take some 10 µs.
const REVIEW_INTERVAL: Duration = Duration::from_millis(20);
/// Slow routes may have the whole pool when no fast request has come for so long.
const NO_FAST: Duration = Duration::from_secs(10);
/// How exactly the last fast request is known; I/O threads need not fight over a cache line for it.
const FAST_STEP: Duration = Duration::from_millis(100);

/// What the configuration gives to a pinned lane. At least one thread in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneLimit {
    Threads(u32),
    /// Percent of the pool's largest size.
    Share(u8),
}

/// What a request gets that asks for its place.
#[derive(Debug)]
pub enum Entry {
    /// It may go to the pool's queue now.
    Enter(Place),
    /// It has to await its turn.
    Wait(Turn),
}

/// A limited route, for metrics and lists.
#[derive(Debug, Clone)]
pub struct LaneFigures {
    pub route: Arc<Route>,
    /// Places that it may have.
    pub limit: u32,
    /// Requests on the pool's queue or running.
    pub inside: u32,
    /// Requests that wait in the lane.
    pub waiting: u32,
}

/// The lanes of one pool, shared by all I/O threads.
#[derive(Debug)]
pub struct Lanes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: Duration,
    most: AtomicU32,
    /// Nanoseconds after the epoch: when a fast request last came.
    last_fast: AtomicU64,
    /// Nanoseconds after the epoch.
    next_review: AtomicU64,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    watch: Watch,
    lines: Lines,
}

impl Lanes {
    /// `most`: threads of the pool at its largest size.
    pub fn new(most: u32, now: Duration) -> Self {
        let state = State { watch: Watch::new(now), lines: Lines::new(Limits::protecting(most, 0.0)) };
        let shared = Shared {
            epoch: now,
            most: AtomicU32::new(most),
            last_fast: AtomicU64::new(0),
            next_review: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes the route a lane of this size for good.
    pub fn pin(&self, route: &Arc<Route>, limit: LaneLimit) {
        route.list();
        self.shared.change(|State { watch, lines }| {
            watch.forget(route);
            lines.pin(route, limit);
        });
    }

    /// The pool's largest size is another now.
    pub fn set_most(&self, most: u32, now: Duration) {
        self.shared.most.store(most, Relaxed);
        self.shared.review(now);
    }

    /// Asks for a place for a request. The route must be one of this pool.
    ///
    /// For a route that is not limited this is a few atomic operations.
    pub fn enter(&self, route: &Arc<Route>, now: Duration) -> Entry {
        if route.list() {
            self.shared.state().watch.add(route);
        }
        self.tick(now);
        if route.is_limited() {
            self.shared.join(route)
        } else {
            Entry::Enter(self.shared.let_in(route, now))
        }
    }

    /// A request that has no lane. It gets a place whatever the others have.
    pub fn let_past(&self, route: &Arc<Route>, now: Duration) -> Place {
        route.list();
        self.tick(now);
        self.shared.let_in(route, now)
    }

    /// Judges the routes anew if that is due. Requests do it when they come; call it every now and then (as often as
    /// autoscaling looks) so that lanes also open when none come.
    pub fn tick(&self, now: Duration) {
        if self.shared.is_review_due(now) {
            self.shared.review(now);
        }
    }

    /// Requests that wait for their lane. They are not on the pool's queue.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Relaxed)
    }

    /// All limited routes.
    pub fn figures(&self) -> Vec<LaneFigures> {
        self.shared.state().lines.figures()
    }
}

impl LaneLimit {
    fn places(self, most: u32) -> u32 {
        match self {
            Self::Threads(threads) => threads.max(1),
            Self::Share(percent) => {
                let places = u64::from(most) * u64::from(percent) / 100;
                u32::try_from(places).unwrap_or(u32::MAX).max(1)
            }
        }
    }
}

impl Shared {
    fn join(self: &Arc<Self>, route: &Arc<Route>) -> Entry {
        self.state().lines.join(route, self)
    }

    fn let_in(self: &Arc<Self>, route: &Arc<Route>, now: Duration) -> Place {
        self.see_fast(now);
        route.let_in();
        Place::new(Arc::clone(route), Arc::clone(self))
    }

    fn see_fast(&self, now: Duration) {
        let now = self.since_epoch(now);
        if now.saturating_sub(self.last_fast.load(Relaxed)) >= nanoseconds(FAST_STEP) {
            self.last_fast.store(now, Relaxed);
        }
    }

    /// `true` for one caller in each interval.
    fn is_review_due(&self, now: Duration) -> bool {
        let now = self.since_epoch(now);
        let due = self.next_review.load(Relaxed);
        let next = now + nanoseconds(REVIEW_INTERVAL);
        now >= due && self.next_review.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    fn since_epoch(&self, now: Duration) -> u64 {
        nanoseconds(now.saturating_sub(self.epoch))
    }

    fn limits(&self, now: Duration, fast_load: f64) -> Limits {
        let most = self.most.load(Relaxed);
        let fast_seen = self.since_epoch(now).saturating_sub(self.last_fast.load(Relaxed));
        if fast_seen <= nanoseconds(NO_FAST) {
            Limits::protecting(most, fast_load)
        } else {
            Limits::whole(most)
        }
    }

    /// A thread that panics with the lock leaves at worst a place that was not given; the next change gives it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What moves the lines. Each step gives places to those who are next; places that come back at once because their
/// requests have just gone are dropped after the lock, since dropping takes it.
impl Shared {
    fn review(self: &Arc<Self>, now: Duration) {
        let mut state = self.state();
        let State { watch, lines } = &mut *state;
        watch.judge(now, |route, change| match change {
            Change::Slow => lines.open(route),
            Change::Fast => lines.close(route),
        });
        lines.set_limits(self.limits(now, watch.fast_load()));
        let returned = lines.advance(self);
        drop(state);
        drop(returned);
    }

    /// A place of a limited route was given back.
    fn advance(self: &Arc<Self>) {
        self.change(|_| ());
    }

    /// The first of a line is on the pool's queue, or has gone.
    fn moved(self: &Arc<Self>, route: &Arc<Route>) {
        self.change(|State { lines, .. }| lines.moved(route));
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let returned = state.lines.advance(self);
        drop(state);
        drop(returned);
    }
}

#[cfg(test)]
mod tests;
