//! May a request join its pool's queue? Decided by the wait that it would have, from the I/O thread, without PHP.
//!
//! # The estimate
//! Wait = requests waiting ÷ starts per second, measured while requests wait; see `rate.rs`. Nothing is
//! shed while a thread is idle, while nothing waits, before a pool has started its first request (it boots), or when
//! too little is known of its rate (the first moments of a queue after a pause).
//!
//! # The bounds
//! - `max_queue`: a number, exact.
//! - `max_wait_time`: the estimated wait must not be longer.
//! - `deadline`: the queue may take what the request's own service time and the time that has passed leave of it. A
//!   request whose service time does not fit into its deadline *by itself* is late whatever the queue does. To shed it
//!   would only mean that it never runs under load, so it is let in, unless the queue alone takes more than the whole
//!   deadline: then it would be late twice over.
//!
//! # Overload
//! A queue that stands just below a bound is the worst of both: each request that is let in waits as long as it may,
//! those for which the estimate was a little low are late, and when the load ends it takes the whole bound to drain.
//! So once a request had to be shed, requests are let in only while their wait is below a *low mark*, until a second
//! has passed in which nothing was shed. The low mark is a tenth of the bound, but not less than 10 ms (below that,
//! the scheduler's whims would decide) and not less than one round of the threads (or they would run dry before the
//! next request comes). So in overload threads are always busy and those that get in are answered soon.

mod rate;
mod reason;

pub use reason::Reason;

use rate::StartRate;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The low mark in relation to the bound.
const LOW_PART: u32 = 10;
const LOW_LEAST: Duration = Duration::from_millis(10);
/// To say that a request would wait for longer than it may takes so much watching: this part of that time, ...
const WATCHED_PART: u32 = 4;
/// ... or so long, whichever is less. A pool's first requests, or those after a pause, are slower than the others: caches
/// are cold, thousands of connections are accepted in the same moment.
const WATCHED: Duration = Duration::from_millis(750);
/// Overload has ended when nothing was shed for so long.
const CALM: Duration = Duration::from_secs(1);
/// `Retry-After` counts whole seconds; a wish of more than half a minute is a guess.
const RETRY: (u64, u64) = (1, 30);

/// What the configuration bounds; `None`: no bound.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// Most requests that wait.
    pub max_queue: Option<u32>,
    /// Longest time in the queue.
    pub max_wait: Option<Duration>,
}

/// A pool as seen at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Requests on its FIFO.
    pub waiting: u64,
    /// Requests that threads have taken from the FIFO since it was made. A smaller number than before means a new one.
    pub started: u64,
    /// Threads that serve requests: idle and busy ones, not those that boot.
    pub threads: u32,
    /// Threads that wait for a request.
    pub idle: u32,
}

/// What counts of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    /// Its promise: from the first byte of its head to the last byte of the answer.
    pub deadline: Option<Duration>,
    /// What has passed of that.
    pub elapsed: Duration,
    /// What its route takes in PHP, if that is known: [`Route::mean_service_time`](crate::routes::Route).
    pub service: Option<Duration>,
}

/// Whether a request may join the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Admit,
    /// To be answered with 503 at once.
    Shed {
        reason: Reason,
        /// Whole seconds, for `Retry-After`.
        retry_after: Duration,
    },
}

/// The door of one pool, shared by all I/O threads. Every request that goes to the pool's FIFO asks it, with a bound
/// or without: the estimate lives on what arrivals see.
#[derive(Debug)]
pub struct Admission {
    bounds: Bounds,
    /// Whether the last arrival saw a queue. Keeps the lock out of the way of those that see none.
    queued: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rate: StartRate,
    overload_until: Option<Duration>,
}

/// How long a request may wait, and by which bound.
#[derive(Clone, Copy)]
struct Room {
    wait: Duration,
    reason: Reason,
}

impl Admission {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, queued: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Asks for a request that would join the queue now. Costs two loads while threads are idle, and a lock that is
    /// hardly ever contended (I/O threads are few) while requests wait.
    pub fn admit(&self, now: Duration, queue: Queue, arrival: Arrival) -> Verdict {
        if queue.idle > 0 || queue.waiting == 0 {
            self.pause();
        }
        if queue.idle > 0 {
            return Verdict::Admit;
        }
        let full = self.bounds.max_queue.is_some_and(|most| queue.waiting >= u64::from(most));
        if queue.waiting == 0 {
            return if full { shed(Reason::QueueFull, Duration::ZERO) } else { Verdict::Admit };
        }
        self.queued.store(true, Relaxed);
        let mut state = self.state();
        let wait = state.rate.look(now, queue);
        match (wait, self.room(arrival)) {
            _ if full => shed(Reason::QueueFull, wait.unwrap_or_default()),
            (Some(wait), Some(room)) => state.decide(now, wait, room, queue),
            _ => Verdict::Admit,
        }
    }

    /// How long a request that came now would wait; `None` if nothing is known. For metrics.
    pub fn estimated_wait(&self, now: Duration, queue: Queue) -> Option<Duration> {
        if queue.waiting == 0 || queue.idle > 0 {
            return Some(Duration::ZERO);
        }
        self.state().rate.wait(now, queue)
    }

    /// Whether requests are let in up to the low mark only. For metrics.
    pub fn is_overloaded(&self, now: Duration) -> bool {
        self.state().is_overloaded(now)
    }

    /// Tells that an arrival saw an empty queue. As [`Admission::admit`] does, which then need not be asked unless
    /// nothing may wait.
    pub fn pause(&self) {
        if self.queued.load(Relaxed) && self.queued.swap(false, Relaxed) {
            self.state().rate.pause();
        }
    }

    /// Forgets what is known of the pool's speed, and whether it was overloaded: its engine stands still, and will be
    /// replaced if it goes on to. How long that takes is no measure of the next one's speed, and neither of this one's if it
    /// comes back.
    pub fn forget(&self) {
        *self.state() = State::default();
    }

    fn room(&self, arrival: Arrival) -> Option<Room> {
        let wait = self.bounds.max_wait.map(|wait| Room { wait, reason: Reason::WaitTime });
        let deadline = arrival.room().map(|wait| Room { wait, reason: Reason::Deadline });
        wait.into_iter().chain(deadline).min_by_key(|room| room.wait)
    }

    /// A thread that panics cannot leave it in between: it is figures, each of which may be off.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrival {
    /// What the queue may take of the deadline. See the rule above.
    fn room(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        let left = deadline.saturating_sub(self.elapsed).saturating_sub(self.service.unwrap_or_default());
        Some(if left.is_zero() { deadline } else { left })
    }
}

impl State {
    fn decide(&mut self, now: Duration, wait: Duration, room: Room, queue: Queue) -> Verdict {
        let low = low_mark(room, wait, queue);
        let mark = if self.is_overloaded(now) { low } else { room.wait };
        if wait <= mark || !self.is_sure(now, room) {
            return Verdict::Admit;
        }
        self.overload_until = Some(now + CALM);
        shed(room.reason, wait - low.min(wait))
    }

    /// Whether the estimate rests on enough to turn somebody away.
    fn is_sure(&self, now: Duration, room: Room) -> bool {
        self.rate.watched(now) >= (room.wait / WATCHED_PART).min(WATCHED)
    }

    fn is_overloaded(&self, now: Duration) -> bool {
        self.overload_until.is_some_and(|until| now < until)
    }
}

fn low_mark(room: Room, wait: Duration, queue: Queue) -> Duration {
    let round = wait.mul_f64(f64::from(queue.threads) / queue.waiting as f64);
    (room.wait / LOW_PART).max(LOW_LEAST).max(round).min(room.wait)
}

/// `excess`: how long it takes until requests are let in again.
fn shed(reason: Reason, excess: Duration) -> Verdict {
    let seconds = excess.as_secs() + u64::from(excess.subsec_nanos() > 0);
    Verdict::Shed { reason, retry_after: Duration::from_secs(seconds.clamp(RETRY.0, RETRY.1)) }
}

#[cfg(test)]
mod tests;
