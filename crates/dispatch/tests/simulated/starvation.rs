//! Lanes: fast requests beside slow ones, in a pool of eight threads.

use crate::pool::{Chance, Event, Job, Pool, p99};
use regent_dispatch::lanes::{Entry, Lanes, Place, Turn};
use regent_dispatch::routes::{Route, Routes};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const THREADS: u32 = 8;
/// The pool looks at its lanes as often as autoscaling looks.
const TICK: Duration = Duration::from_millis(5);
const TICK_CLIENT: u64 = u64::MAX;

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// A route of the load: its share of the requests, and how long each runs.
#[derive(Clone, Copy)]
struct Kind {
    path: &'static str,
    share: f64,
    service: Duration,
}

fn kind(path: &'static str, share: f64, milliseconds: u64) -> Kind {
    Kind { path, share, service: Duration::from_millis(milliseconds) }
}

#[derive(Clone, Copy)]
enum Protection {
    Automatic,
    Off,
}

struct Load<'a> {
    protection: Protection,
    per_second: f64,
    kinds: &'a [Kind],
    seconds: u64,
}

struct Request {
    kind: usize,
    arrived: Duration,
    service: Duration,
    place: Place,
}

impl Job for Request {
    fn start(&mut self, now: Duration) -> Duration {
        self.place.started(now);
        self.service
    }
}

struct Run<'a> {
    load: &'a Load<'a>,
    pool: Pool<Request>,
    lanes: Lanes,
    routes: Vec<Arc<Route>>,
    /// What new routes have in common.
    common: Arc<Route>,
    chance: Chance,
    /// Requests that wait for their lane: kind, arrival, turn.
    held_back: Vec<(usize, Duration, Turn)>,
    /// By kind.
    latencies: Vec<Vec<Duration>>,
}

impl Load<'_> {
    /// Latencies by kind.
    fn run(&self) -> Vec<Vec<Duration>> {
        Run::new(self).run()
    }
}

impl<'a> Run<'a> {
    fn new(load: &'a Load<'a>) -> Self {
        let pool = Pool::new(THREADS);
        let routes = Routes::new(pool.now());
        Self {
            load,
            lanes: Lanes::new(THREADS, THREADS, pool.now()),
            common: routes.shared(0, b"index.php", pool.now()),
            routes: load.kinds.iter().map(|kind| routes.get(0, kind.path, pool.now())).collect(),
            pool,
            chance: Chance::new(11),
            held_back: Vec::new(),
            latencies: vec![Vec::new(); load.kinds.len()],
        }
    }

    fn run(mut self) -> Vec<Vec<Duration>> {
        self.pool.arrive(Duration::ZERO, 0);
        self.pool.arrive(TICK, TICK_CLIENT);
        while let Some(event) = self.pool.next() {
            match event {
                Event::Arrival(TICK_CLIENT) => self.tick(),
                Event::Arrival(_) => self.arrival(),
                Event::Finished(request) => self.finished(request),
                Event::GaveUp(_) => unreachable!("nobody has a bound"),
            }
            self.let_in();
        }
        assert_eq!(self.lanes.waiting(), 0);
        assert!(self.routes.iter().all(|route| route.waiting() + route.running() == 0));
        self.latencies
    }

    fn is_over(&self) -> bool {
        self.pool.time() > Duration::from_secs(self.load.seconds)
    }

    fn tick(&mut self) {
        self.lanes.tick(self.pool.now());
        if !self.is_over() || self.lanes.waiting() > 0 {
            self.pool.arrive(TICK, TICK_CLIENT);
        }
    }

    fn arrival(&mut self) {
        if self.is_over() {
            return;
        }
        let kind = self.draw();
        match self.enter(kind) {
            Entry::Enter(place) => self.push(kind, self.pool.now(), place),
            Entry::Wait(turn) => self.held_back.push((kind, self.pool.now(), turn)),
        }
        let gap = self.chance.exponential(1.0 / self.load.per_second);
        self.pool.arrive(gap, 0);
    }

    fn enter(&self, kind: usize) -> Entry {
        let (route, now) = (&self.routes[kind], self.pool.now());
        match self.load.protection {
            Protection::Automatic => self.lanes.enter(route, || Arc::clone(&self.common), now),
            Protection::Off => Entry::Enter(self.lanes.exempt(route, now)),
        }
    }

    fn draw(&mut self) -> usize {
        let mut chance = self.chance.uniform();
        let last = self.load.kinds.len() - 1;
        let found = self.load.kinds.iter().position(|kind| {
            chance -= kind.share;
            chance < 0.0
        });
        found.unwrap_or(last)
    }

    fn push(&mut self, kind: usize, arrived: Duration, place: Place) {
        self.pool.push(Request { kind, arrived, service: self.load.kinds[kind].service, place });
    }

    fn let_in(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for (kind, arrived, mut turn) in std::mem::take(&mut self.held_back) {
            match Pin::new(&mut turn).poll(&mut context) {
                Poll::Ready(place) => self.push(kind, arrived, place),
                Poll::Pending => self.held_back.push((kind, arrived, turn)),
            }
        }
    }

    fn finished(&mut self, request: Request) {
        self.latencies[request.kind].push(self.pool.now() - request.arrived);
        request.place.finished(request.service);
    }
}

fn load(kinds: &[Kind]) -> Load<'_> {
    Load { protection: Protection::Automatic, per_second: 200.0, kinds, seconds: 60 }
}

fn alone() -> Duration {
    p99(load(&[kind("/fast", 1.0, 5)]).run().swap_remove(0))
}

/// The fast route's 99th percentile is less than twice as long as it is alone, and slow requests are served too.
#[track_caller]
fn does_not_notice(load: &Load<'_>) {
    let latencies = load.run();
    let (fast, alone) = (p99(latencies[0].clone()), alone());
    assert!(fast < alone * 2, "{alone:?} alone, {fast:?} beside slow routes");
    assert!(latencies.iter().all(|latencies| latencies.len() > 20), "every route is served");
}

#[test]
fn a_fast_route_does_not_notice_one_that_hangs() {
    let kinds = &[kind("/fast", 0.98, 5), kind("/hangs", 0.02, 5000)];
    does_not_notice(&load(kinds));
    let unprotected = Load { protection: Protection::Off, ..load(kinds) }.run();
    assert!(p99(unprotected[0].clone()) > ms(1000), "without lanes it would");
}

#[test]
fn a_fast_route_does_not_notice_a_slow_one() {
    does_not_notice(&load(&[kind("/fast", 0.99, 5), kind("/slow", 0.01, 300)]));
}

#[test]
fn a_fast_route_does_not_notice_several_slow_ones() {
    does_not_notice(&load(&[
        kind("/fast", 0.94, 5),
        kind("/a", 0.02, 3000),
        kind("/b", 0.02, 2000),
        kind("/c", 0.02, 300),
    ]));
}

#[test]
fn a_slow_route_that_fits_into_its_lane_is_hardly_slower() {
    let latencies = load(&[kind("/fast", 0.99, 5), kind("/slow", 0.01, 300)]).run();
    let slow = p99(latencies[1].clone());
    assert!(slow < ms(650), "{slow:?}");
}

#[test]
fn a_pool_of_slow_requests_keeps_its_capacity() {
    // 45 × 150 ms: 84 % of eight threads, beside a health check.
    let kinds = &[kind("/page", 0.95, 150), kind("/health", 0.05, 1)];
    let with = Load { per_second: 45.0, ..load(kinds) }.run();
    let without = Load { per_second: 45.0, protection: Protection::Off, ..load(kinds) }.run();
    assert_eq!(with, without, "lanes have nothing to say here");
}
