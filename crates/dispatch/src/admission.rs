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

use rate::StartRate;
use std::fmt;
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

/// Why a request was refused, or given up, without an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// `max_queue` requests waited already.
    QueueFull,
    /// It waited, or would have had to wait, longer than `max_wait_time`.
    WaitTime,
    /// It could not have been answered by its deadline.
    Deadline,
    /// `max_connections` requests were with the service already.
    Connections,
    /// The client left while it waited.
    ClientGone,
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

impl Reason {
    pub const ALL: [Self; 5] =
        [Self::QueueFull, Self::WaitTime, Self::Deadline, Self::Connections, Self::ClientGone];

    /// As in the log and as the label of metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::WaitTime => "wait_time",
            Self::Deadline => "deadline",
            Self::Connections => "max_connections",
            Self::ClientGone => "client_gone",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "as many requests wait as max_queue allows",
            Self::WaitTime => "it would have to wait longer than max_wait_time",
            Self::Deadline => "it could not be answered by its deadline",
            Self::Connections => "as many requests as it may have at once",
            Self::ClientGone => "its client has left",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn deadline(value: Duration) -> Arrival {
        Arrival { deadline: Some(value), ..Arrival::default() }
    }

    /// A pool of eight threads that starts 100 requests a second while 100 wait: a wait of one second.
    struct Pool {
        now: Duration,
        started: u64,
        admission: Admission,
    }

    impl Pool {
        fn new(bounds: Bounds) -> Self {
            let mut pool = Self { now: START, started: 100, admission: Admission::new(bounds) };
            for _ in 0..100 {
                pool.admit(100, Arrival::default());
                pool.pass(ms(10), 1);
            }
            pool
        }

        fn pass(&mut self, time: Duration, starts: u64) {
            self.now += time;
            self.started += starts;
        }

        fn queue(&self, waiting: u64) -> Queue {
            Queue { waiting, started: self.started, threads: 8, idle: 0 }
        }

        fn admit(&self, waiting: u64, arrival: Arrival) -> Verdict {
            self.admission.admit(self.now, self.queue(waiting), arrival)
        }

        /// The reason, if it was shed.
        fn shed(&self, waiting: u64, arrival: Arrival) -> Option<Reason> {
            match self.admit(waiting, arrival) {
                Verdict::Admit => None,
                Verdict::Shed { reason, .. } => Some(reason),
            }
        }
    }

    #[test]
    fn the_wait_is_the_queue_by_the_rate() {
        let pool = Pool::new(Bounds::default());
        let wait = pool.admission.estimated_wait(pool.now, pool.queue(50)).unwrap();
        assert!(wait.abs_diff(ms(500)) < ms(25), "{wait:?}");
        assert_eq!(pool.shed(90, deadline(ms(1000))), None);
        assert_eq!(pool.shed(110, deadline(ms(1000))), Some(Reason::Deadline));
    }

    #[test]
    fn the_queue_may_take_what_the_service_and_the_past_leave() {
        let arrival = Arrival { deadline: Some(ms(1000)), elapsed: ms(300), service: Some(ms(300)) };
        let pool = Pool::new(Bounds::default());
        assert_eq!(pool.shed(35, arrival), None);
        assert_eq!(pool.shed(45, arrival), Some(Reason::Deadline));
    }

    #[test]
    fn a_request_that_is_late_by_itself_runs_unless_the_queue_alone_breaks_its_deadline() {
        let late = Arrival { deadline: Some(ms(1000)), elapsed: ms(0), service: Some(ms(1500)) };
        let pool = Pool::new(Bounds::default());
        assert_eq!(pool.shed(90, late), None);
        assert_eq!(pool.shed(110, late), Some(Reason::Deadline));
    }

    #[test]
    fn the_tighter_bound_is_the_reason() {
        let pool = Pool::new(Bounds { max_queue: None, max_wait: Some(ms(500)) });
        assert_eq!(pool.shed(60, deadline(ms(1000))), Some(Reason::WaitTime));
        let pool = Pool::new(Bounds { max_queue: None, max_wait: Some(ms(500)) });
        assert_eq!(pool.shed(60, deadline(ms(100))), Some(Reason::Deadline));
    }

    #[test]
    fn max_queue_is_exact_and_no_sign_of_overload() {
        let pool = Pool::new(Bounds { max_queue: Some(100), max_wait: None });
        assert_eq!(pool.shed(99, Arrival::default()), None);
        assert_eq!(pool.shed(100, Arrival::default()), Some(Reason::QueueFull));
        assert!(!pool.admission.is_overloaded(pool.now));
    }

    #[test]
    fn a_queue_of_none_means_that_nothing_waits() {
        let pool = Pool::new(Bounds { max_queue: Some(0), max_wait: None });
        assert_eq!(pool.shed(0, Arrival::default()), Some(Reason::QueueFull));
        let idle = Queue { idle: 1, ..pool.queue(0) };
        assert_eq!(pool.admission.admit(pool.now, idle, Arrival::default()), Verdict::Admit);
    }

    #[test]
    fn nothing_is_shed_while_a_thread_is_idle() {
        let pool = Pool::new(Bounds { max_queue: Some(1), max_wait: Some(ms(1)) });
        let queue = Queue { idle: 1, ..pool.queue(1000) };
        assert_eq!(pool.admission.admit(pool.now, queue, deadline(ms(1))), Verdict::Admit);
    }

    #[test]
    fn overload_lasts_until_a_second_without_shedding() {
        let mut pool = Pool::new(Bounds::default());
        let arrival = deadline(ms(1000));
        assert_eq!(pool.shed(110, arrival), Some(Reason::Deadline));
        assert_eq!(pool.shed(50, arrival), Some(Reason::Deadline), "above the low mark");
        assert_eq!(pool.shed(7, arrival), None, "below it");
        for _ in 0..99 {
            pool.pass(ms(10), 1);
            assert_eq!(pool.shed(7, arrival), None);
        }
        assert!(pool.admission.is_overloaded(pool.now));
        pool.pass(ms(10), 1);
        assert!(!pool.admission.is_overloaded(pool.now));
        assert_eq!(pool.shed(50, arrival), None);
    }

    #[test]
    fn overload_goes_on_while_requests_are_shed() {
        let mut pool = Pool::new(Bounds::default());
        pool.admit(110, deadline(ms(1000)));
        for _ in 0..300 {
            pool.pass(ms(10), 1);
            assert_eq!(pool.shed(50, deadline(ms(1000))), Some(Reason::Deadline));
        }
    }

    #[test]
    fn the_low_mark_is_not_below_a_round_of_the_threads() {
        // A round takes 80 ms, a tenth of the bound is 30 ms.
        let pool = Pool::new(Bounds::default());
        pool.admit(40, deadline(ms(300)));
        assert_eq!(pool.shed(8, deadline(ms(300))), None);
        assert_eq!(pool.shed(10, deadline(ms(300))), Some(Reason::Deadline));
        assert_eq!(pool.shed(8, deadline(ms(50))), Some(Reason::Deadline), "nor above the bound");
    }

    #[test]
    fn retry_after_is_when_the_queue_has_drained() {
        let pool = Pool::new(Bounds::default());
        let retry = |waiting| match pool.admit(waiting, deadline(ms(1000))) {
            Verdict::Shed { retry_after, .. } => retry_after.as_secs(),
            Verdict::Admit => 0,
        };
        assert_eq!(retry(450), 5);
        assert_eq!(retry(110), 1);
        assert_eq!(retry(1_000_000), 30);
    }

    #[test]
    fn a_pool_that_takes_nothing_any_more_is_noticed() {
        let mut pool = Pool::new(Bounds::default());
        assert_eq!(pool.shed(10, deadline(ms(1000))), None);
        pool.pass(ms(2000), 0);
        assert_eq!(pool.shed(10, deadline(ms(1000))), Some(Reason::Deadline));
    }

    #[test]
    fn a_cold_start_is_no_overload() {
        // Ten thousand come at once. The first requests take 20 ms each, the later ones half a millisecond.
        let max_wait = Some(Duration::from_secs(3));
        let admission = Admission::new(Bounds { max_queue: None, max_wait });
        let queue = |started| Queue { waiting: 10_000 - started, started, threads: 4, idle: 0 };
        let mut started = 4;
        for millisecond in 1..1_000 {
            started += match millisecond {
                ..=300 if millisecond % 20 == 0 => 4,
                ..=300 => 0,
                _ => 8,
            };
            let verdict = admission.admit(START + ms(millisecond), queue(started), Arrival::default());
            assert_eq!(verdict, Verdict::Admit, "after {millisecond} ms");
        }
    }

    #[test]
    fn a_new_queue_begins_anew() {
        let mut pool = Pool::new(Bounds::default());
        pool.started = 0;
        assert_eq!(pool.shed(1000, deadline(ms(1000))), None, "its engine boots");
        pool.pass(ms(1), 8);
        assert_eq!(pool.shed(1000, deadline(ms(1000))), None, "nothing is known");
    }

    #[test]
    fn after_a_pause_nothing_is_known() {
        let mut pool = Pool::new(Bounds::default());
        let idle = Queue { idle: 8, ..pool.queue(0) };
        pool.admission.admit(pool.now, idle, Arrival::default());
        pool.pass(ms(900), 0);
        assert_eq!(pool.shed(110, deadline(ms(1000))), Some(Reason::Deadline), "a breath is no pause");
        pool.admission.admit(pool.now, idle, Arrival::default());
        pool.pass(ms(1100), 0);
        assert_eq!(pool.shed(110, deadline(ms(1000))), None);
    }

    #[test]
    fn reasons_have_labels_of_their_own() {
        let labels: std::collections::BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.label()).collect();
        assert_eq!(labels.len(), Reason::ALL.len());
        assert!(Reason::ALL.iter().all(|reason| !reason.to_string().is_empty()));
    }
}
