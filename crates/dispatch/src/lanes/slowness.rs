//! Which routes are slow.
//!
//! A route's time is the mean of its requests of the last seconds, with those that still run counted as long as they
//! have run so far: that is never too much, and shows a hang while it lasts.
//!
//! It is compared with the *typical* request of the pool: the median over requests, each counted with its route's
//! mean. Those that wait count too: a hundred slow requests that come at once to two threads are what the pool is for
//! now, though only two of them run. Not with the average of the others, for two reasons. One route that hangs for seconds lifts that average above
//! all others, so that a second slow one would hide behind it. And where most requests are slow, slow is normal: a shop
//! whose pages take 150 ms must not lose half of its threads to them because a health check takes one.

use crate::estimate::Recorded;
use crate::routes::Route;
use std::sync::Arc;
use std::time::Duration;

/// Below this a request does not hold a thread long enough to hurt.
const SLOW_LEAST: Duration = Duration::from_millis(50);
/// In relation to the typical request.
const SLOW_FACTOR: f64 = 4.0;
/// A slow route stays slow while it is above these parts of both marks ...
const STAY_PART: f64 = 0.5;
/// ... and for so long afterwards, so that it does not flap.
const STAY_TIME: Duration = Duration::from_secs(5);
/// Requests count e⁻¹ after this time.
const MEMORY: Duration = Duration::from_secs(10);
/// Less than this many requests remembered: nothing is known.
const FORGOTTEN: f64 = 0.01;

/// The routes of a pool that are judged.
#[derive(Debug)]
pub(super) struct Watch {
    judged: Duration,
    routes: Vec<Watched>,
    /// Used in one call only.
    times: Vec<Time>,
}

/// The requests of a route: what one takes, in seconds, and how many they are, with those that wait.
#[derive(Debug, Clone, Copy)]
struct Time {
    mean: f64,
    requests: f64,
}

#[derive(Debug)]
struct Watched {
    route: Arc<Route>,
    seen: Recorded,
    /// Requests of the last seconds, and the seconds that they took.
    count: f64,
    time: f64,
    slow_until: Option<Duration>,
}

/// How a route has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Slow,
    Fast,
    /// It was new, and has shown that it is not slow.
    Known,
}

impl Watch {
    pub fn new(now: Duration) -> Self {
        Self { judged: now, routes: Vec::new(), times: Vec::new() }
    }

    pub fn add(&mut self, route: &Arc<Route>) {
        self.routes.push(Watched {
            route: Arc::clone(route),
            seen: Recorded::default(),
            count: 0.0,
            time: 0.0,
            slow_until: None,
        });
    }

    /// The route is not judged any more.
    pub fn forget(&mut self, route: &Arc<Route>) {
        self.routes.retain(|watched| !Arc::ptr_eq(&watched.route, route));
    }

    /// Looks at all routes, and tells of those that have become slow or fast, or known. A route that the table no longer has
    /// becomes fast and is forgotten.
    pub fn judge(&mut self, now: Duration, mut tell: impl FnMut(&Arc<Route>, Change)) {
        let kept = (-now.saturating_sub(self.judged).as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.judged = now;
        self.times.clear();
        self.times.extend(self.routes.iter_mut().filter_map(|watched| watched.time(now, kept)));
        let typical = typical(&mut self.times).unwrap_or(f64::INFINITY);
        for watched in &mut self.routes {
            if let Some(change) = watched.judge(now, typical) {
                tell(&watched.route, change);
            }
        }
        self.routes.retain(|watched| !watched.route.is_retired());
    }

    /// What the shortest of the requests that wait on the pool's queue will take, by their routes' means; none, if nothing
    /// is known of one. `None` if nobody waits there.
    pub fn shortest_queued(&self, now: Duration) -> Option<Duration> {
        let queued = self.routes.iter().filter(|watched| watched.route.queued() > 0);
        let mean = |watched: &Watched| watched.with_running(now).map_or(0.0, |time| time.mean);
        queued.map(mean).min_by(f64::total_cmp).map(Duration::from_secs_f64)
    }

    /// How many threads the requests of fast routes have held on average, of late.
    pub fn fast_load(&self) -> f64 {
        let fast = self.routes.iter().filter(|watched| watched.slow_until.is_none());
        // A constant load settles where what fades is what comes.
        fast.map(|watched| watched.time).sum::<f64>() / MEMORY.as_secs_f64()
    }
}

impl Watched {
    /// Takes in what was recorded since the last time, and lets what was before fade.
    fn time(&mut self, now: Duration, kept: f64) -> Option<Time> {
        let recorded = self.route.recorded();
        self.count = self.count * kept + (recorded.count - self.seen.count) as f64;
        self.time = self.time * kept + (recorded.total.saturating_sub(self.seen.total)).as_secs_f64();
        self.seen = recorded;
        self.with_running(now)
    }

    fn with_running(&self, now: Duration) -> Option<Time> {
        let (running, ages) = self.route.in_progress(now);
        let known = self.count + f64::from(running);
        (known > FORGOTTEN).then(|| Time {
            mean: (self.time + ages.as_secs_f64()) / known,
            requests: known + f64::from(self.route.waiting()),
        })
    }

    fn judge(&mut self, now: Duration, typical: f64) -> Option<Change> {
        let was_slow = self.slow_until.is_some();
        self.slow_until = self.slow_until(now, typical);
        let was_new = self.seen.count > 0 && self.route.set_known();
        match (was_slow, self.slow_until.is_some()) {
            (false, true) => Some(Change::Slow),
            (true, false) => Some(Change::Fast),
            (false, false) if was_new => Some(Change::Known),
            _ => None,
        }
    }

    fn slow_until(&self, now: Duration, typical: f64) -> Option<Duration> {
        if self.route.is_retired() {
            return None;
        }
        let mean = self.with_running(now).map_or(0.0, |time| time.mean);
        let mark = SLOW_LEAST.as_secs_f64().max(SLOW_FACTOR * typical);
        let part = if self.slow_until.is_some() { STAY_PART } else { 1.0 };
        if mean >= mark * part { Some(now + STAY_TIME) } else { self.slow_until.filter(|until| now < *until) }
    }
}

/// What the median request takes.
fn typical(times: &mut [Time]) -> Option<f64> {
    times.sort_unstable_by(|a, b| a.mean.total_cmp(&b.mean));
    let half = times.iter().map(|time| time.requests).sum::<f64>() / 2.0;
    let mut below = 0.0;
    times
        .iter()
        .find(|time| {
            below += time.requests;
            below >= half
        })
        .map(|time| time.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Routes;

    const START: Duration = Duration::from_secs(1_000);

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// Routes of a pool, on a clock that the test moves.
    struct Pool {
        now: Duration,
        routes: Routes,
        watch: Watch,
    }

    impl Pool {
        fn new() -> Self {
            let now = START;
            Self { now, routes: Routes::new(now), watch: Watch::new(now) }
        }

        fn route(&mut self, path: &str) -> Arc<Route> {
            let route = self.routes.get(0, path, self.now);
            if route.list() {
                self.watch.add(&route);
            }
            route
        }

        fn record(&mut self, path: &str, count: usize, time: Duration) {
            let route = self.route(path);
            (0..count).for_each(|_| route.record(time));
        }

        /// Time passes; what changes.
        fn after(&mut self, time: Duration) -> Vec<(String, Change)> {
            self.now += time;
            let mut changes = Vec::new();
            self.watch.judge(self.now, |route, change| {
                if change != Change::Known {
                    changes.push((route.name().to_owned(), change));
                }
            });
            changes.sort_by(|a, b| a.0.cmp(&b.0));
            changes
        }
    }

    fn slow(name: &str) -> (String, Change) {
        (name.to_owned(), Change::Slow)
    }

    fn fast(name: &str) -> (String, Change) {
        (name.to_owned(), Change::Fast)
    }

    #[test]
    fn slow_means_both_marks() {
        let mut pool = Pool::new();
        pool.record("/fast", 100, ms(5));
        pool.record("/below-fifty", 1, ms(49));
        pool.record("/slow", 1, ms(50));
        assert_eq!(pool.after(ms(20)), [slow("/slow")]);

        let mut pool = Pool::new();
        pool.record("/usual", 100, ms(100));
        pool.record("/below-four-times", 1, ms(399));
        pool.record("/slow", 1, ms(400));
        assert_eq!(pool.after(ms(20)), [slow("/slow")]);
    }

    #[test]
    fn a_route_is_known_when_a_request_has_ended() {
        let mut pool = Pool::new();
        pool.record("/fast", 100, ms(5));
        let new = pool.route("/new");
        let start = new.begin(pool.now);
        pool.after(ms(20));
        assert!(pool.route("/fast").is_known() && !new.is_known(), "it still runs");
        new.end(start);
        pool.record("/new", 1, ms(25));
        let mut changes = Vec::new();
        pool.watch.judge(pool.now, |route, change| changes.push((route.name().to_owned(), change)));
        assert_eq!(changes, [("/new".to_owned(), Change::Known)]);
        assert!(new.is_known());
    }

    #[test]
    fn what_waits_shortest_is_known_by_its_route() {
        let mut pool = Pool::new();
        let shortest = |pool: &Pool| pool.watch.shortest_queued(pool.now);
        pool.record("/fast", 100, ms(5));
        pool.record("/slow", 10, ms(500));
        pool.after(ms(20));
        assert_eq!(shortest(&pool), None);
        pool.route("/slow").let_in();
        assert!(shortest(&pool).is_some_and(|time| time.abs_diff(ms(500)) < ms(1)));
        pool.route("/fast").let_in();
        assert!(shortest(&pool).is_some_and(|time| time.abs_diff(ms(5)) < ms(1)));
        pool.route("/new").let_in();
        assert_eq!(shortest(&pool), Some(Duration::ZERO));
    }

    #[test]
    fn a_route_that_hangs_is_slow_before_its_first_request_ends() {
        let mut pool = Pool::new();
        pool.record("/fast", 100, ms(5));
        let route = pool.route("/hangs");
        route.begin(pool.now);
        assert_eq!(pool.after(ms(49)), []);
        assert_eq!(pool.after(ms(1)), [slow("/hangs")]);
        assert_eq!(pool.after(ms(10)), [], "told once");
    }

    #[test]
    fn a_slow_route_does_not_hide_behind_a_slower_one() {
        let mut pool = Pool::new();
        pool.record("/fast", 97, ms(5));
        pool.record("/hangs", 2, ms(15_000));
        pool.record("/slow", 1, ms(100));
        assert_eq!(pool.after(ms(20)), [slow("/hangs"), slow("/slow")]);
    }

    #[test]
    fn where_most_requests_are_slow_slow_is_normal() {
        let mut pool = Pool::new();
        pool.record("/health", 20, ms(1));
        pool.record("/", 50, ms(150));
        pool.record("/cart", 30, ms(200));
        assert_eq!(pool.after(ms(20)), []);
        pool.record("/report", 1, ms(2000));
        assert_eq!(pool.after(ms(20)), [slow("/report")]);
    }

    #[test]
    fn the_load_of_the_fast_is_known() {
        let mut pool = Pool::new();
        for _ in 0..5000 {
            pool.record("/fast", 4, ms(5));
            pool.record("/slow", 1, ms(500));
            pool.after(ms(20));
        }
        let load = pool.watch.fast_load();
        assert!((0.99..1.01).contains(&load), "{load}");
    }

    #[test]
    fn one_route_alone_is_not_slow() {
        let mut pool = Pool::new();
        pool.record("/", 3, ms(30_000));
        pool.route("/").begin(pool.now);
        assert_eq!(pool.after(ms(60_000)), []);
    }

    #[test]
    fn a_route_between_the_marks_does_not_flap() {
        let mut pool = Pool::new();
        pool.record("/fast", 10_000, ms(5));
        pool.record("/edge", 100, ms(51));
        assert_eq!(pool.after(ms(20)), [slow("/edge")]);
        for round in 0..1000 {
            pool.record("/fast", 20, ms(5));
            pool.record("/edge", 1, ms(if round % 2 == 0 { 30 } else { 65 }));
            assert_eq!(pool.after(ms(20)), [], "round {round}");
        }
    }

    #[test]
    fn a_route_that_has_become_fast_is_let_go() {
        let mut pool = Pool::new();
        pool.record("/fast", 1000, ms(5));
        pool.record("/cured", 10, ms(200));
        assert_eq!(pool.after(ms(20)), [slow("/cured")]);
        let cured = pool.now;
        let changes = (0..5000).find_map(|_| {
            pool.record("/fast", 20, ms(5));
            pool.record("/cured", 2, ms(5));
            Some(pool.after(ms(20))).filter(|changes| !changes.is_empty())
        });
        assert_eq!(changes, Some(vec![fast("/cured")]));
        let took = pool.now - cured;
        assert!(took >= STAY_TIME && took < STAY_TIME * 3, "{took:?}");
    }

    #[test]
    fn a_hang_is_forgotten_when_nobody_asks_for_the_route() {
        let mut pool = Pool::new();
        pool.record("/fast", 1000, ms(5));
        pool.record("/hangs", 1, ms(5000));
        assert_eq!(pool.after(ms(20)), [slow("/hangs")]);
        pool.record("/fast", 1000, ms(5));
        assert_eq!(pool.after(ms(40_000)), [], "its last request still is what is known of it");
        assert_eq!(pool.after(ms(50_000)), [fast("/hangs")]);
    }

    #[test]
    fn a_retired_route_is_let_go_and_forgotten() {
        let mut pool = Pool::new();
        pool.record("/fast", 1000, ms(5));
        pool.record("/scan", 1, ms(500));
        assert_eq!(pool.after(ms(20)), [slow("/scan")]);
        pool.route("/scan").retire();
        assert_eq!(pool.after(ms(20)), [fast("/scan")]);
        assert_eq!(pool.watch.routes.len(), 1);
    }
}
