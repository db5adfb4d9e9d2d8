//! What came of a simulation.

use std::time::Duration;

use super::{Moment, nanoseconds};
use crate::generator::histogram::Latencies;

pub struct Outcome {
    /// What was counted after the beginning.
    pub total: Counts,
    /// All, from the beginning on, for each stretch of time.
    pub bins: Vec<Counts>,
    bin: Moment,
    warm_up: Moment,
}

#[derive(Clone, Default)]
pub struct Counts {
    pub answered: u64,
    /// Their connections broke, or there was nobody to send them to.
    pub lost: u64,
    /// Would have waited too long.
    pub refused: u64,
    /// For a thread.
    pub wait: Latencies,
    /// From the client's request to its answer.
    pub latency: Latencies,
    /// That serve, where they change.
    pub nodes: usize,
}

impl Outcome {
    pub fn new(bin: Duration, warm_up: Duration) -> Self {
        Self {
            total: Counts::default(),
            bins: Vec::new(),
            bin: nanoseconds(bin).max(1),
            warm_up: nanoseconds(warm_up),
        }
    }

    pub fn begin(&mut self, now: Moment, wait: Moment) {
        self.count(now, |counts| counts.wait.record(Duration::from_nanos(wait)));
    }

    pub fn answer(&mut self, now: Moment, latency: Moment) {
        self.count(now, |counts| {
            counts.answered += 1;
            counts.latency.record(Duration::from_nanos(latency));
        });
    }

    pub fn lose(&mut self, now: Moment, requests: u64) {
        self.count(now, |counts| counts.lost += requests);
    }

    pub fn refuse(&mut self, now: Moment) {
        self.count(now, |counts| counts.refused += 1);
    }

    pub fn count_nodes(&mut self, now: Moment, nodes: usize) {
        self.count(now, |counts| counts.nodes = nodes);
    }

    fn count(&mut self, now: Moment, count: impl Fn(&mut Counts)) {
        let place = (now / self.bin) as usize;
        if place >= self.bins.len() {
            self.bins.resize_with(place + 1, Counts::default);
        }
        count(&mut self.bins[place]);
        if now >= self.warm_up {
            count(&mut self.total);
        }
    }
}
