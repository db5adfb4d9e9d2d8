//! What came of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;

/// The outcome of a plan; that of several generators at once is merged into one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// From the first request to the end of the load's limit: what throughput is computed over.
    pub duration_s: f64,
    /// Right answers that ended within `duration_s`; the others ended while the last requests were waited for.
    pub right_in_time: u64,
    /// By the name of the kind.
    pub kinds: BTreeMap<String, KindOutcome>,
    /// Every tenth of a second since the start.
    pub series: Vec<Tick>,
    /// How late the generator itself was: for an open loop the time from the scheduled moment to the sending of
    /// requests for which a connection was free, otherwise the time between a socket being ready and being served, as
    /// far as the generator can know it (the time one round of its event loop took).
    pub lag: Latencies,
    /// Of a closed loop: see [`super::turns::Turns`].
    #[serde(default)]
    pub turns: Latencies,
    /// CPU time of the generator in seconds.
    pub cpu_s: f64,
    /// Most connections that were open at once.
    pub most_connections: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KindOutcome {
    /// Latencies of right answers, from the start of the request (see [`super::plan::Pace`]) to the end of the answer.
    pub right: Latencies,
    /// Latencies of answers by each status of 300 and more.
    pub statuses: BTreeMap<u16, Latencies>,
    pub failures: Failures,
    /// Received bytes, heads included.
    pub bytes: u64,
}

/// Requests without a right answer, by what went wrong. Answers with a status of 300 and more are in
/// [`KindOutcome::statuses`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The connection could not be made.
    pub connect: u64,
    /// The connection broke before the end of the answer.
    pub broken: u64,
    /// Not HTTP, or not the expected body.
    pub wrong: u64,
    /// No whole answer within the plan's time-out.
    pub timeout: u64,
    /// The client left on purpose.
    pub left: u64,
}

/// A tenth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Users with a request under way, or for an open loop connections; at the end of the tick.
    pub users: u32,
    /// Requests under way at the end of the tick.
    pub under_way: u32,
    /// Right answers.
    pub right: u32,
    /// Everything else that ended.
    pub failed: u32,
    /// Of the right answers that ended in this tick; 0 without any.
    pub p50_ms: f32,
    pub p99_ms: f32,
}

impl Outcome {
    /// All requests that ended, however.
    pub fn requests(&self) -> u64 {
        self.right() + self.failed()
    }

    pub fn right(&self) -> u64 {
        self.kinds.values().map(|kind| kind.right.count()).sum()
    }

    /// All requests without a right answer, those that the client left included.
    pub fn failed(&self) -> u64 {
        self.kinds.values().map(KindOutcome::failed).sum()
    }

    /// Right answers a second within the limit of the load.
    pub fn throughput(&self) -> f64 {
        if self.duration_s > 0.0 { self.right_in_time as f64 / self.duration_s } else { 0.0 }
    }

    /// CPU time of the generator for a request, in µs; `None` without requests.
    pub fn generator_us_per_request(&self) -> Option<f64> {
        let requests = self.requests();
        (requests > 0).then(|| self.cpu_s * 1e6 / requests as f64)
    }

    /// Cores that the generator took: 1.0 is all that one process can.
    pub fn generator_cores(&self) -> Option<f64> {
        (self.duration_s > 0.0).then(|| self.cpu_s / self.duration_s)
    }

    /// Latencies of the right answers of all kinds.
    pub fn latencies(&self) -> Latencies {
        self.kinds.values().fold(Latencies::default(), |mut all, kind| {
            all.merge(&kind.right);
            all
        })
    }

    /// Failures of all kinds of requests.
    pub fn failures(&self) -> Failures {
        self.kinds.values().fold(Failures::default(), |all, kind| all.plus(&kind.failures))
    }

    /// Requests without a right answer within `limit`. Those that the client left are not among them: nobody knows.
    pub fn misses(&self, limit: Duration) -> u64 {
        self.kinds.values().map(|kind| kind.misses(limit)).sum()
    }

    /// Adds what another generator saw at the same time. Percentiles of ticks cannot be added: the larger is kept.
    pub fn merge(&mut self, other: &Self) {
        self.duration_s = self.duration_s.max(other.duration_s);
        self.right_in_time += other.right_in_time;
        for (name, kind) in &other.kinds {
            self.kinds.entry(name.clone()).or_default().merge(kind);
        }
        self.series.resize(self.series.len().max(other.series.len()), Tick::default());
        self.series.iter_mut().zip(&other.series).for_each(|(tick, other)| tick.merge(other));
        self.lag.merge(&other.lag);
        self.turns.merge(&other.turns);
        self.cpu_s += other.cpu_s;
        self.most_connections += other.most_connections;
    }
}

impl KindOutcome {
    pub fn failed(&self) -> u64 {
        self.failures.total() + self.statuses.values().map(Latencies::count).sum::<u64>()
    }

    fn misses(&self, limit: Duration) -> u64 {
        self.failed() - self.failures.left + self.right.count_above(limit)
    }

    pub fn merge(&mut self, other: &Self) {
        self.right.merge(&other.right);
        for (status, latencies) in &other.statuses {
            self.statuses.entry(*status).or_default().merge(latencies);
        }
        self.failures = self.failures.plus(&other.failures);
        self.bytes += other.bytes;
    }
}

impl Failures {
    pub fn total(&self) -> u64 {
        self.connect + self.broken + self.wrong + self.timeout + self.left
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            connect: self.connect + other.connect,
            broken: self.broken + other.broken,
            wrong: self.wrong + other.wrong,
            timeout: self.timeout + other.timeout,
            left: self.left + other.left,
        }
    }
}

impl Tick {
    fn merge(&mut self, other: &Self) {
        self.users += other.users;
        self.under_way += other.under_way;
        self.right += other.right;
        self.failed += other.failed;
        self.p50_ms = self.p50_ms.max(other.p50_ms);
        self.p99_ms = self.p99_ms.max(other.p99_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(milliseconds: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        milliseconds.iter().for_each(|value| latencies.record(Duration::from_millis(*value)));
        latencies
    }

    fn outcome(name: &str, ticks: usize) -> Outcome {
        let kind = KindOutcome {
            right: latencies(&[1, 2, 4000]),
            statuses: BTreeMap::from([(503, latencies(&[1]))]),
            failures: Failures { connect: 1, broken: 2, wrong: 3, timeout: 4, left: 5 },
            bytes: 100,
        };
        let tick = Tick { users: 1, under_way: 2, right: 3, failed: 4, p50_ms: ticks as f32, p99_ms: 6.0 };
        Outcome {
            duration_s: 2.0,
            right_in_time: 2,
            kinds: BTreeMap::from([(name.to_owned(), kind)]),
            series: vec![tick; ticks],
            cpu_s: 0.5,
            most_connections: 7,
            ..Outcome::default()
        }
    }

    #[test]
    fn every_request_is_counted_once() {
        let outcome = outcome("a", 1);
        assert_eq!((outcome.requests(), outcome.right(), outcome.failed()), (19, 3, 16));
        assert!((outcome.throughput() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn late_answers_are_misses_and_departures_are_not() {
        assert_eq!(outcome("a", 1).misses(Duration::from_secs(3)), 12);
        assert_eq!(outcome("a", 1).misses(Duration::from_secs(5)), 11);
    }

    #[test]
    fn merging_adds_kinds_ticks_and_costs() {
        let mut both = outcome("a", 1);
        both.merge(&outcome("a", 2));
        both.merge(&outcome("b", 0));
        assert_eq!((both.requests(), both.right_in_time, both.most_connections), (57, 6, 21));
        assert_eq!(both.kinds["a"].statuses[&503].count(), 2);
        let tick = Tick { users: 2, under_way: 4, right: 6, failed: 8, p50_ms: 2.0, p99_ms: 6.0 };
        assert_eq!(both.series, [tick, Tick { users: 1, under_way: 2, right: 3, failed: 4, ..tick }]);
        assert!((both.duration_s - 2.0).abs() < 1e-9 && (both.cpu_s - 1.5).abs() < 1e-9);
    }

    #[test]
    fn json_brings_an_outcome_back() {
        let json = serde_json::to_string(&outcome("a", 2)).expect("serializable");
        let back: Outcome = serde_json::from_str(&json).expect("what was written");
        assert_eq!(format!("{back:?}"), format!("{:?}", outcome("a", 2)));
    }
}
