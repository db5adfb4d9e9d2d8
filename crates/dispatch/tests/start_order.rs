//! Requests of a lane reach the pool's queue, and so start, in the order in which they came, whichever I/O threads
//! they are on and whenever those look at them.

use fastrand::Rng;
use regent_dispatch::lanes::{Entry, LaneLimit, Lanes, Place, Turn};
use regent_dispatch::routes::{Route, Routes};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const IO_THREADS: u64 = 4;
/// Of each I/O thread, in each run.
const REQUESTS: u64 = 500;
/// Of each I/O thread, at most.
const WAITING: usize = 8;
const RUNS: u64 = 10;
/// The route is slow for so long, then fast, and so on; seconds.
const PERIOD: u64 = 100;
/// At the end of each period nobody comes for so long, so that lines can become empty.
const PAUSE: u64 = 20;

/// What the I/O threads share.
struct Server {
    lanes: Lanes,
    /// The one under test, and one that is fast beside it.
    route: Arc<Route>,
    usual: Arc<Route>,
    common: Arc<Route>,
    /// Milliseconds.
    clock: AtomicU64,
    /// Held until a request is in its lane or on the queue, since those that come at the same moment have no order.
    arrivals: Mutex<Arrivals>,
    /// The pool's queue: the numbers of requests.
    queue: Mutex<Vec<u64>>,
}

/// Requests that have come.
#[derive(Default)]
struct Arrivals {
    count: u64,
    /// How the last of them found the route, and how often that was another way than the one before.
    is_limited: bool,
    changes: u64,
}

impl Server {
    fn new(limit: Option<LaneLimit>) -> Self {
        let start = Duration::from_secs(1_000);
        let routes = Routes::new(start);
        let server = Self {
            lanes: Lanes::new(6, 6, start),
            route: routes.lane(0, "ordered"),
            usual: routes.lane(0, "usual"),
            common: routes.shared(0, b"index.php", start),
            clock: AtomicU64::new(start.as_millis() as u64),
            arrivals: Mutex::default(),
            queue: Mutex::new(Vec::new()),
        };
        limit.into_iter().for_each(|limit| server.lanes.pin(&server.route, limit));
        server
    }

    fn after(&self, milliseconds: u64) -> Duration {
        Duration::from_millis(self.clock.fetch_add(milliseconds, Ordering::Relaxed) + milliseconds)
    }

    fn enter(&self, route: &Arc<Route>, milliseconds: u64) -> Entry {
        self.lanes.enter(route, || Arc::clone(&self.common), self.after(milliseconds))
    }

    fn is_slow(&self) -> bool {
        (self.after(0).as_secs() / PERIOD).is_multiple_of(2)
    }

    fn is_pausing(&self) -> bool {
        self.after(0).as_secs() % PERIOD >= PERIOD - PAUSE
    }

    fn queue(&self, number: u64, place: &Place) {
        hold(&self.queue).push(number);
        place.queued();
    }
}

impl Arrivals {
    fn next(&mut self, is_limited: bool) -> u64 {
        self.changes += u64::from(std::mem::replace(&mut self.is_limited, is_limited) != is_limited);
        self.count += 1;
        self.count
    }
}

/// One I/O thread with its requests.
struct Io<'a> {
    server: &'a Server,
    random: Rng,
    waiting: Vec<(u64, Turn)>,
    /// Of clients that are about to leave.
    leaving: Vec<Turn>,
    running: Vec<Place>,
    left: u64,
}

impl Io<'_> {
    fn run(server: &Server, seed: u64) -> u64 {
        let random = Rng::with_seed(seed);
        let mut io =
            Io { server, random, waiting: Vec::new(), leaving: Vec::new(), running: Vec::new(), left: 0 };
        let mut to_come = REQUESTS;
        while to_come > 0 || !io.waiting.is_empty() || !io.leaving.is_empty() || !io.running.is_empty() {
            match io.random.u8(..10) {
                0..4 if to_come > 0 && io.waiting.len() < WAITING && !server.is_pausing() => {
                    io.arrive();
                    to_come -= 1;
                }
                4 => io.leaving.clear(),
                5..7 => io.look(),
                7 => io.usual(),
                _ => io.end(),
            }
        }
        io.left
    }

    fn arrive(&mut self) {
        let mut arrivals = hold(&self.server.arrivals);
        let number = arrivals.next(self.server.route.is_limited());
        match self.server.enter(&self.server.route, 0) {
            Entry::Enter(place) => {
                self.server.queue(number, &place);
                self.running.push(place);
            }
            Entry::Wait(turn) if self.random.u8(..10) == 0 => {
                self.leaving.push(turn);
                self.left += 1;
            }
            Entry::Wait(turn) => self.waiting.push((number, turn)),
        }
    }

    /// Waiting requests see whether they have their places, in any order.
    fn look(&mut self) {
        self.random.shuffle(&mut self.waiting);
        for (number, mut turn) in std::mem::take(&mut self.waiting) {
            match Pin::new(&mut turn).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(place) if self.random.u8(..30) == 0 => {
                    // It is refused, or its client leaves, on the way to the queue.
                    drop(place);
                    self.left += 1;
                }
                Poll::Ready(place) => {
                    // Other threads come first, if they can.
                    std::thread::yield_now();
                    self.server.queue(number, &place);
                    self.running.push(place);
                }
                Poll::Pending => self.waiting.push((number, turn)),
            }
        }
        std::thread::yield_now();
    }

    fn end(&mut self) {
        if !self.running.is_empty() {
            let index = self.random.usize(..self.running.len());
            let time = Duration::from_millis(if self.server.is_slow() { 1_000 } else { 5 });
            self.running.swap_remove(index).finished(time);
        }
    }

    /// Most requests are fast, so that a second is slow.
    fn usual(&self) {
        for _ in 0..10 {
            self.fast();
        }
    }

    fn fast(&self) {
        if let Entry::Enter(place) = self.server.enter(&self.server.usual, 10) {
            place.finished(Duration::from_millis(5));
        }
    }
}

/// Returns how many requests started, and how often the route was found limited after it was not, or the other way.
fn check(limit: Option<LaneLimit>, seed: u64) -> (u64, u64) {
    // Shown when it fails.
    println!("{limit:?}, seed {seed}");
    let server = &Server::new(limit);
    let left: u64 = std::thread::scope(|scope| {
        let run = |io| scope.spawn(move || Io::run(server, seed * IO_THREADS + io));
        let threads: Vec<_> = (0..IO_THREADS).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    let started = hold(&server.queue);
    assert_eq!(started.len() as u64 + left, IO_THREADS * REQUESTS, "each starts once or leaves");
    if let Some(pair) = started.windows(2).find(|pair| pair[0] > pair[1]) {
        panic!("{} came first, and {} started first", pair[1], pair[0]);
    }
    assert_eq!((server.lanes.waiting(), server.route.waiting()), (0, 0));
    (started.len() as u64, hold(&server.arrivals).changes)
}

#[test]
fn who_came_first_to_a_lane_starts_first() {
    for seed in 0..RUNS {
        let limit = LaneLimit::Threads(1 + seed as u32 % 5);
        let (started, _) = check(Some(limit), seed);
        assert!(started > IO_THREADS * REQUESTS / 2);
    }
}

#[test]
fn who_came_first_starts_first_while_the_lane_opens_and_closes() {
    let changes: u64 = (0..RUNS).map(|seed| check(None, 1_000 + seed).1).sum();
    assert!(changes > 2 * RUNS, "the test is about this: {changes}");
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with it")
}
