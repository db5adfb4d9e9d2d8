//! Admission under more load than the pool can serve.

use crate::pool::{Chance, Event, Job, Pool, p99};
use regent_dispatch::admission::{Admission, Arrival, Bounds, Reason, Verdict};
use std::ops::Range;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(3);

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// Seconds.
fn s(value: f64) -> Duration {
    Duration::from_secs_f64(value)
}

struct Request {
    epoch: Duration,
    arrived: Duration,
    client: u64,
    /// Mean seconds in PHP when it starts at this second, and its part of that.
    mean: fn(f64) -> f64,
    part: f64,
    service: Duration,
    /// How long it may wait.
    patience: Option<Duration>,
}

impl Job for Request {
    fn has_given_up(&self, now: Duration) -> bool {
        self.patience.is_some_and(|patience| now - self.epoch - self.arrived > patience)
    }

    fn start(&mut self, now: Duration) -> Duration {
        self.service = s((self.mean)((now - self.epoch).as_secs_f64()) * self.part);
        self.service
    }
}

#[derive(Clone, Copy)]
enum Load {
    /// Independent arrivals; so many per second at a time.
    Open(fn(f64) -> f64),
    /// Clients that send the next request when they have the answer, and the time in which they appear.
    Closed(u32, Duration),
}

#[derive(Clone, Copy, PartialEq)]
enum Spread {
    Constant,
    Exponential,
}

struct Scenario {
    load: Load,
    /// Mean seconds in PHP of a request that starts at this second.
    service: fn(f64) -> f64,
    spread: Spread,
    /// From a second on, so many threads.
    threads: &'static [(f64, u32)],
    bounds: Bounds,
    deadline: Option<Duration>,
    seconds: f64,
}

impl Scenario {
    /// Eight threads of 10 ms: 800 requests per second.
    fn eight(load: Load) -> Self {
        Self {
            load,
            service: |_| 0.010,
            spread: Spread::Constant,
            threads: &[(0.0, 8)],
            bounds: Bounds::default(),
            deadline: Some(DEADLINE),
            seconds: 50.0,
        }
    }

    fn run(&self) -> Outcome {
        Run::new(self).run()
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    pool: Pool<Request>,
    admission: Admission,
    chance: Chance,
    /// Of the pool's one route; its mean is known as soon as a request has ended.
    service: Option<Duration>,
    outcome: Outcome,
}

#[derive(Default)]
struct Outcome {
    /// Arrival and latency.
    answered: Vec<(Duration, Duration)>,
    /// Arrival, reason and `Retry-After`.
    shed: Vec<(Duration, Reason, Duration)>,
    /// Let in, and not started in time.
    given_up: usize,
    most_waiting: u64,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            pool: Pool::new(scenario.threads[0].1),
            admission: Admission::new(scenario.bounds),
            chance: Chance::new(7),
            service: None,
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        match self.scenario.load {
            Load::Open(_) => self.pool.arrive(Duration::ZERO, 0),
            Load::Closed(clients, within) => {
                for client in 0..clients {
                    self.pool.arrive(within * client / clients, u64::from(client));
                }
            }
        }
        while let Some(event) = self.pool.next() {
            self.resize();
            match event {
                Event::Arrival(client) => self.arrival(client),
                Event::Finished(request) => self.finished(&request),
                Event::GaveUp(request) => self.gave_up(&request),
            }
        }
        self.outcome
    }

    fn resize(&mut self) {
        let time = self.pool.time();
        let (_, threads) =
            self.scenario.threads.iter().rev().find(|(from, _)| s(*from) <= time).expect("one from 0 on");
        if *threads != self.pool.queue().threads {
            self.pool.resize(*threads);
        }
    }

    fn arrival(&mut self, client: u64) {
        let time = self.pool.time();
        if time > s(self.scenario.seconds) {
            return;
        }
        let queue = self.pool.queue();
        self.outcome.most_waiting = self.outcome.most_waiting.max(queue.waiting);
        let arrival =
            Arrival { deadline: self.scenario.deadline, elapsed: Duration::ZERO, service: self.service };
        match self.admission.admit(self.pool.now(), queue, arrival) {
            Verdict::Admit => {
                let request = self.request(client);
                self.pool.push(request);
            }
            Verdict::Shed { reason, retry_after } => {
                self.outcome.shed.push((time, reason, retry_after));
                if let Load::Closed(..) = self.scenario.load {
                    self.pool.arrive(ms(100), client);
                }
            }
        }
        if let Load::Open(rate) = self.scenario.load {
            let gap = self.chance.exponential(1.0 / rate(time.as_secs_f64()));
            self.pool.arrive(gap, 0);
        }
    }

    fn request(&mut self, client: u64) -> Request {
        let part = match self.scenario.spread {
            Spread::Constant => 1.0,
            Spread::Exponential => self.chance.exponential(1.0).as_secs_f64(),
        };
        let arrived = self.pool.time();
        let epoch = self.pool.now() - arrived;
        let (deadline, max_wait) = (self.scenario.deadline, self.scenario.bounds.max_wait);
        let patience = deadline.into_iter().chain(max_wait).min();
        let service = Duration::ZERO;
        Request { epoch, arrived, client, mean: self.scenario.service, part, service, patience }
    }

    fn gave_up(&mut self, request: &Request) {
        self.outcome.given_up += 1;
        if let Load::Closed(..) = self.scenario.load {
            self.pool.arrive(ms(100), request.client);
        }
    }

    fn finished(&mut self, request: &Request) {
        let known = self.service.unwrap_or(request.service);
        self.service = Some((known * 15 + request.service) / 16);
        self.outcome.answered.push((request.arrived, self.pool.time() - request.arrived));
        if let Load::Closed(..) = self.scenario.load {
            self.pool.arrive(Duration::ZERO, request.client);
        }
    }
}

impl Outcome {
    /// Answers per second within the deadline, of the time that they came in.
    fn goodput(&self, during: Range<f64>, deadline: Duration) -> f64 {
        let within = |(arrived, latency): &&(Duration, Duration)| {
            *latency <= deadline && during.contains(&(*arrived + *latency).as_secs_f64())
        };
        self.answered.iter().filter(within).count() as f64 / (during.end - during.start)
    }

    /// Of requests that arrived in this time.
    fn p99(&self, during: Range<f64>) -> Duration {
        let arrived = self.answered.iter().filter(|(arrived, _)| during.contains(&arrived.as_secs_f64()));
        p99(arrived.map(|(_, latency)| *latency).collect())
    }

    fn shed(&self, during: Range<f64>) -> usize {
        self.shed.iter().filter(|(arrived, ..)| during.contains(&arrived.as_secs_f64())).count()
    }

    /// Share of the answers that came too late.
    fn late(&self, deadline: Duration) -> f64 {
        let late = self.answered.iter().filter(|(_, latency)| *latency > deadline).count();
        late as f64 / self.answered.len() as f64
    }
}

fn assert_at_least(what: &str, found: f64, least: f64) {
    assert!(found >= least, "{what}: {found:.1}, expected at least {least:.1}");
}

/// Bench D: half the capacity, 30 s of overload, half the capacity.
#[track_caller]
fn survives(overload: fn(f64) -> f64, spread: Spread) {
    let outcome = Scenario { spread, ..Scenario::eight(Load::Open(overload)) }.run();
    assert_at_least("goodput", outcome.goodput(10.0..40.0, DEADLINE), 0.9 * 800.0);
    assert!(outcome.late(DEADLINE) < 0.02, "{:.3} of the answers were late", outcome.late(DEADLINE));
    assert_eq!(outcome.shed(0.0..10.0), 0, "before");
    assert_eq!(outcome.shed(41.0..50.0), 0, "after");
    let (before, after) = (outcome.p99(0.0..10.0), outcome.p99(41.0..50.0));
    assert!(after <= before * 2, "p99 {before:?} before, {after:?} after");
}

#[test]
fn three_times_the_capacity() {
    let load = |time| if (10.0..40.0).contains(&time) { 2400.0 } else { 400.0 };
    survives(load, Spread::Constant);
    survives(load, Spread::Exponential);
}

#[test]
fn one_and_a_half_times_the_capacity() {
    let load = |time| if (10.0..40.0).contains(&time) { 1200.0 } else { 400.0 };
    survives(load, Spread::Constant);
    survives(load, Spread::Exponential);
}

#[test]
fn in_overload_those_who_get_in_are_answered_soon() {
    let outcome = Scenario::eight(Load::Open(|_| 2400.0)).run();
    let p99 = outcome.p99(10.0..50.0);
    assert!(p99 < ms(400), "{p99:?}: a queue stands");
    assert!(outcome.most_waiting < 2500, "{} waited", outcome.most_waiting);
    assert!(
        outcome
            .shed
            .iter()
            .all(|(_, reason, retry)| { *reason == Reason::Deadline && (s(1.0)..=s(3.0)).contains(retry) })
    );
}

#[test]
fn max_wait_time_alone_bounds_the_wait() {
    let bounds = Bounds { max_wait: Some(s(1.0)), max_queue: None };
    let outcome = Scenario { bounds, deadline: None, ..Scenario::eight(Load::Open(|_| 2400.0)) }.run();
    assert_at_least("goodput", outcome.goodput(0.0..50.0, s(1.1)), 0.9 * 800.0);
    assert!(outcome.shed.iter().all(|(_, reason, _)| *reason == Reason::WaitTime));
}

#[test]
fn by_default_three_times_too_much_leaves_nine_tenths_of_the_capacity() {
    // Nothing is promised; clients leave after some seconds, and what they do not wait for is lost work.
    let bounds = Bounds { max_wait: Some(s(3.0)), max_queue: None };
    for spread in [Spread::Constant, Spread::Exponential] {
        let scenario = Scenario { bounds, deadline: None, spread, ..Scenario::eight(Load::Open(|_| 2400.0)) };
        let outcome = scenario.run();
        assert_at_least("answered within 3.1 s", outcome.goodput(0.0..50.0, s(3.1)), 0.9 * 800.0);
        assert_at_least("answered within 1 s", outcome.goodput(5.0..50.0, s(1.0)), 0.9 * 800.0);
        assert!(outcome.given_up < 100, "{} were let in for nothing", outcome.given_up);
    }
}

#[test]
fn ten_thousand_users_who_fit_into_the_default_bound_are_never_shed() {
    // As the benchmark's sweep: 4,000 requests a second, after a cold start of half a second at a tenth of that.
    let bounds = Bounds { max_wait: Some(s(3.0)), max_queue: None };
    let outcome = Scenario {
        bounds,
        deadline: None,
        service: |time| if time < 0.5 { 0.010 } else { 0.001 },
        threads: &[(0.0, 4)],
        seconds: 8.0,
        ..Scenario::eight(Load::Closed(10_000, s(0.2)))
    }
    .run();
    assert_eq!((outcome.shed.len(), outcome.given_up), (0, 0));
    assert_at_least("throughput", outcome.goodput(1.0..8.0, DEADLINE), 0.98 * 4000.0);
}

#[test]
fn a_deadline_of_few_rounds_keeps_the_threads_busy() {
    let outcome =
        Scenario { service: |_| 1.0, threads: &[(0.0, 8)], ..Scenario::eight(Load::Open(|_| 24.0)) }.run();
    assert_at_least("goodput", outcome.goodput(5.0..50.0, DEADLINE), 0.9 * 8.0);
}

#[test]
fn a_closed_loop_below_the_deadline_is_never_shed() {
    for spread in [Spread::Constant, Spread::Exponential] {
        // 10,000 clients ÷ 4,000 requests per second: each waits for 2.5 s.
        let outcome = Scenario {
            spread,
            threads: &[(0.0, 40)],
            seconds: 20.0,
            ..Scenario::eight(Load::Closed(10_000, Duration::ZERO))
        }
        .run();
        assert_eq!(outcome.shed.len(), 0, "first: {:?}", outcome.shed[0]);
        assert_at_least("throughput", outcome.goodput(3.0..20.0, DEADLINE), 0.98 * 4000.0);
    }
}

#[test]
fn a_closed_loop_beyond_the_deadline_works_at_capacity() {
    let outcome = Scenario { seconds: 20.0, ..Scenario::eight(Load::Closed(10_000, s(1.0))) }.run();
    assert_at_least("goodput", outcome.goodput(1.0..20.0, DEADLINE), 0.9 * 800.0);
}

#[test]
fn slower_requests_are_noticed() {
    // 560 per second on 800, then on 200, then on 800 again.
    let outcome = Scenario {
        service: |time| if (15.0..35.0).contains(&time) { 0.040 } else { 0.010 },
        ..Scenario::eight(Load::Open(|_| 560.0))
    }
    .run();
    assert_at_least("goodput", outcome.goodput(15.5..35.0, DEADLINE), 0.9 * 200.0);
    assert!(outcome.late(DEADLINE) < 0.02);
    assert_eq!(outcome.shed(0.0..15.0) + outcome.shed(36.0..50.0), 0);
    assert_at_least("goodput again", outcome.goodput(36.0..50.0, DEADLINE), 0.95 * 560.0);
}

#[test]
fn new_threads_are_used_at_once() {
    let outcome =
        Scenario { threads: &[(0.0, 8), (20.0, 16)], ..Scenario::eight(Load::Open(|_| 1200.0)) }.run();
    assert_at_least("goodput before", outcome.goodput(2.0..20.0, DEADLINE), 0.9 * 800.0);
    assert_at_least("goodput after", outcome.goodput(20.0..50.0, DEADLINE), 0.95 * 1200.0);
    assert_eq!(outcome.shed(21.0..50.0), 0);
}

#[test]
fn capacity_that_halves_is_noticed() {
    let outcome =
        Scenario { threads: &[(0.0, 16), (20.0, 8)], ..Scenario::eight(Load::Open(|_| 1200.0)) }.run();
    assert_eq!(outcome.shed(0.0..20.0), 0);
    assert_at_least("goodput", outcome.goodput(20.0..50.0, DEADLINE), 0.9 * 800.0);
    assert!(outcome.late(DEADLINE) < 0.02);
}

#[test]
fn a_burst_is_not_shed_before_autoscaling_answers() {
    let outcome = Scenario {
        service: |_| 0.100,
        threads: &[(0.0, 2), (0.15, 20), (0.25, 100)],
        seconds: 0.4,
        ..Scenario::eight(Load::Closed(100, Duration::ZERO))
    }
    .run();
    assert_eq!(outcome.shed.len(), 0);
}

#[test]
fn a_hung_pool_sheds_and_recovers() {
    // Every request that starts from 20 to 30 hangs until 30.
    let outcome = Scenario {
        service: |time| if (20.0..30.0).contains(&time) { 30.0 - time } else { 0.010 },
        ..Scenario::eight(Load::Open(|_| 400.0))
    }
    .run();
    assert_eq!(outcome.shed(0.0..20.0), 0);
    // It can't be told from a slow pool at first. After the deadline no hope is left.
    assert_at_least("shed while it hung", outcome.shed(23.0..30.0) as f64, 0.95 * 400.0 * 7.0);
    assert_eq!(outcome.shed(34.0..50.0), 0, "after it");
    assert!(outcome.most_waiting < 1300, "{} waited", outcome.most_waiting);
}

#[test]
fn a_pool_that_boots_sheds_nothing() {
    let outcome =
        Scenario { threads: &[(0.0, 0), (2.0, 8)], seconds: 10.0, ..Scenario::eight(Load::Open(|_| 400.0)) }
            .run();
    assert_eq!(outcome.shed.len(), 0, "first: {:?}", outcome.shed[0]);
}

#[test]
fn what_was_measured_before_a_pause_is_forgotten() {
    // Slow requests and a queue, a pause, and then a burst of fast ones.
    let outcome = Scenario {
        service: |time| if time < 10.0 { 0.5 } else { 0.010 },
        ..Scenario::eight(Load::Open(|time| match time {
            time if time < 8.0 => 18.0,
            time if time < 20.0 => 0.7,
            _ => 790.0,
        }))
    }
    .run();
    assert_eq!(outcome.shed(20.0..50.0), 0);
}
