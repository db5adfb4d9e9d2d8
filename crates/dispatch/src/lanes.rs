//! A slow route must not starve fast ones: it gets a lane, that is, a part of the pool's threads, and what comes beyond
//! that waits in the lane, in the order of arrival, without a thread and without a place on the pool's queue.
//!
//! # Who is slow
//! A route whose requests take at least 50 ms *and* at least 4 × as long as the pool's *typical* request; see
//! `slowness.rs`. Requests that still run count with the time they have run so far, so a route that hangs
//! is slow 50 ms after its first hanging request started, not when that ends.
//!
//! # Who is new
//! A route of which no request has ended yet. Nothing is known of it, and a client that asks for another path each time
//! would always have a new one. So while a known route that is not slow is asked for, a new one is limited as a slow one
//! is, until its first request has ended: for a fast route that is a matter of milliseconds. What is known of new ones is
//! what [those of the same script](crate::routes::Routes::shared) were like. If they were not slow, the new one is
//! limited by itself only, in case it is a burst that is; otherwise all of them are limited together. Of a script of which
//! nothing is known at all one request may always show it, though slow ones keep their places for ever. On a server that
//! has just started nobody is known, nobody is protected, and nothing is limited.
//!
//! # How much it gets
//! Of the threads that the pool *has*. What waits in lanes is a reason to add threads, where the CPU is none against it;
//! see [`scaling`](crate::scaling). Threads that are added for the fast alone are not for lanes.
//! - All slow routes together: the pool less a reserve for the fast. That is what fast requests have held on average, n
//!   threads, and 2√n beyond, with which requests that come by chance hardly ever find all of them busy; but at least a
//!   quarter or four threads, whichever is less, and never more than half.
//! - Each slow route, when there are several: half of the pool, at least one thread.
//! - Nobody asked for a fast route for 10 s: the whole pool, since there is nobody to protect. Not more than that: what
//!   waits goes on waiting in the lane, not on the pool's queue, where a fast request that comes after all would stand
//!   behind it.
//!
//! Among several lanes with waiting requests, the one that has the fewest places (new routes of one script count as one)
//! is next, and then the one whose request came first.
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
//! - `lane off`: [let past](Lanes::exempt), never limited.

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
    /// Threads of the pool.
    threads: AtomicU32,
    /// When a request last came that is not limited, and one of them whose route is known.
    last_fast: Moment,
    last_known: Moment,
    /// Nanoseconds: what the shortest request on the pool's queue takes. As it was when one last waited.
    shortest_queued: AtomicU64,
    /// Nanoseconds after the epoch.
    next_review: AtomicU64,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

/// When something last happened, to [`FAST_STEP`].
#[derive(Debug, Default)]
struct Moment {
    /// Nanoseconds after an epoch, and one; 0 for never.
    at: AtomicU64,
}

/// What those who are held back want of the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// Requests that wait in lanes that are not pinned.
    pub waiting: u32,
    /// When the first of them came.
    pub since: Option<Duration>,
    /// Threads that the pool would need to have places for all of them at once; zero if none waits.
    pub threads: u32,
}

#[derive(Debug)]
struct State {
    watch: Watch,
    lines: Lines,
}

impl Lanes {
    /// `most`: threads of the pool at its largest size. `threads`: what it has.
    pub fn new(most: u32, threads: u32, now: Duration) -> Self {
        let lines = Lines::new(most, Limits::protecting(threads, 0.0));
        let shared = Shared {
            epoch: now,
            threads: AtomicU32::new(threads),
            last_fast: Moment::default(),
            last_known: Moment::default(),
            shortest_queued: AtomicU64::new(0),
            next_review: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(State { watch: Watch::new(now), lines }),
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

    /// The pool has so many threads now. Costs a load when that is nothing new.
    pub fn set_threads(&self, threads: u32, now: Duration) {
        if self.shared.threads.load(Relaxed) != threads {
            self.shared.threads.store(threads, Relaxed);
            self.shared.review(now);
        }
    }

    /// Asks for a place for a request. The route must be one of this pool. `common`: what new routes of the same script
    /// [have in common](crate::routes::Routes::shared).
    ///
    /// For a route that is known and not limited this is a few atomic operations.
    pub fn enter(&self, route: &Arc<Route>, common: impl FnOnce() -> Arc<Route>, now: Duration) -> Entry {
        let shared = &self.shared;
        if route.list() {
            shared.state().watch.add(route);
        }
        self.tick(now);
        if route.is_limited() {
            shared.join(route, now)
        } else if route.is_known() {
            shared.last_known.note(shared.since_epoch(now));
            Entry::Enter(shared.let_in(route, now))
        } else if shared.is_lately(&shared.last_known, now) {
            shared.join_as_newcomer(route, &common(), now)
        } else {
            Entry::Enter(shared.let_in(route, now))
        }
    }

    /// A request that has no lane. It gets a place whatever the others have.
    pub fn exempt(&self, route: &Arc<Route>, now: Duration) -> Place {
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

    /// What those who are held back want of the pool.
    pub fn demand(&self) -> Demand {
        if self.waiting() == 0 {
            return Demand::default();
        }
        self.shared.state().lines.demand()
    }

    /// Requests of slow routes that run, as far as that was told.
    pub fn slow_running(&self) -> u32 {
        self.shared.state().lines.slow_running()
    }

    /// What the shortest of the requests on the pool's queue will take, as far as that is known, when one last waited
    /// there.
    pub fn shortest_queued(&self) -> Duration {
        Duration::from_nanos(self.shared.shortest_queued.load(Relaxed))
    }

    /// All limited routes; the new ones of them as one.
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
    fn join(self: &Arc<Self>, route: &Arc<Route>, now: Duration) -> Entry {
        self.state().lines.join(route, now, self)
    }

    fn join_as_newcomer(self: &Arc<Self>, route: &Arc<Route>, common: &Arc<Route>, now: Duration) -> Entry {
        let State { watch, lines } = &mut *self.state();
        if common.list() {
            watch.add(common);
        }
        // It may be known by now.
        if !route.is_known() {
            lines.open_to_newcomer(route, common);
        }
        lines.join(route, now, self)
    }

    fn let_in(self: &Arc<Self>, route: &Arc<Route>, now: Duration) -> Place {
        self.last_fast.note(self.since_epoch(now));
        Place::new(Arc::clone(route), None, Arc::clone(self))
    }

    /// Whether it happened so lately that there may be somebody to protect.
    fn is_lately(&self, moment: &Moment, now: Duration) -> bool {
        moment.is_within(NO_FAST, self.since_epoch(now))
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
        let threads = self.threads.load(Relaxed);
        if self.is_lately(&self.last_fast, now) {
            Limits::protecting(threads, fast_load)
        } else {
            Limits::whole(threads)
        }
    }

    /// A thread that panics with the lock leaves at worst a place that was not given; the next change gives it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moment {
    fn note(&self, now: u64) {
        let at = self.at.load(Relaxed);
        if at == 0 || now.saturating_sub(at) >= nanoseconds(FAST_STEP) {
            self.at.store(now + 1, Relaxed);
        }
    }

    fn is_within(&self, time: Duration, now: u64) -> bool {
        let at = self.at.load(Relaxed);
        at > 0 && now.saturating_sub(at) <= nanoseconds(time)
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
            Change::Fast | Change::Known => lines.close(route),
        });
        if let Some(shortest) = watch.shortest_queued(now) {
            self.shortest_queued.store(nanoseconds(shortest), Relaxed);
        }
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
