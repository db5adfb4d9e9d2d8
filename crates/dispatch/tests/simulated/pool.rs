//! A pool of threads behind a FIFO, in simulated time.

use regent_dispatch::admission::Queue;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The moment at which the tests begin.
const START: Duration = Duration::from_secs(1_000);

/// A request as the pool sees it.
pub trait Job {
    /// A thread takes it. Returns how long it will run.
    fn start(&mut self, now: Duration) -> Duration;

    /// It has waited for so long that it was answered already.
    fn has_given_up(&self, _now: Duration) -> bool {
        false
    }
}

pub enum Event<J> {
    /// A client of this number sends a request.
    Arrival(u64),
    Finished(J),
    GaveUp(J),
}

pub struct Pool<J> {
    epoch: Duration,
    now: Duration,
    /// By time, and by order of making within it.
    events: BTreeMap<(Duration, u64), Event<J>>,
    made: u64,
    fifo: VecDeque<J>,
    threads: u32,
    busy: u32,
    started: u64,
}

impl<J: Job> Pool<J> {
    pub fn new(threads: u32) -> Self {
        let epoch = START;
        Self {
            epoch,
            now: epoch,
            events: BTreeMap::new(),
            made: 0,
            fifo: VecDeque::new(),
            threads,
            busy: 0,
            started: 0,
        }
    }

    pub fn now(&self) -> Duration {
        self.now
    }

    /// Since the beginning.
    pub fn time(&self) -> Duration {
        self.now - self.epoch
    }

    pub fn queue(&self) -> Queue {
        Queue {
            waiting: self.fifo.len() as u64,
            started: self.started,
            threads: self.threads,
            idle: self.threads.saturating_sub(self.busy),
        }
    }

    pub fn arrive(&mut self, after: Duration, client: u64) {
        self.schedule(after, Event::Arrival(client));
    }

    /// Puts a request behind all that wait.
    pub fn push(&mut self, job: J) {
        self.fifo.push_back(job);
        self.start_waiting();
    }

    /// Threads beyond the new number end after their request.
    pub fn resize(&mut self, threads: u32) {
        self.threads = threads;
        self.start_waiting();
    }

    pub fn next(&mut self) -> Option<Event<J>> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        if let Event::Finished(_) = &event {
            self.busy -= 1;
            self.start_waiting();
        }
        Some(event)
    }

    fn start_waiting(&mut self) {
        while self.busy < self.threads {
            let Some(mut job) = self.fifo.pop_front() else { return };
            if job.has_given_up(self.now) {
                self.schedule(Duration::ZERO, Event::GaveUp(job));
                continue;
            }
            self.busy += 1;
            self.started += 1;
            let service = job.start(self.now);
            self.schedule(service, Event::Finished(job));
        }
    }

    fn schedule(&mut self, after: Duration, event: Event<J>) {
        self.made += 1;
        self.events.insert((self.now + after, self.made), event);
    }
}

/// Repeatable chance.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in 0..1 (splitmix64).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed: gaps of independent arrivals.
    pub fn exponential(&mut self, mean: f64) -> Duration {
        Duration::from_secs_f64(-mean * (1.0 - self.uniform()).ln())
    }
}

/// The 99th percentile.
pub fn p99(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    latencies[latencies.len() * 99 / 100]
}
