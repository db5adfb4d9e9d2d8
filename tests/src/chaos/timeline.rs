//! What a run looked like, second by second.

use super::load::Record;
use super::oracle::{Judgement, Verdict};
use std::time::Duration;

/// One second of a run.
#[derive(Debug, Clone, Default)]
pub struct Second {
    pub requests: usize,
    /// Of those that were answered as they should, in milliseconds.
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// Requests that failed and could be harmed.
    pub excused: usize,
    /// Requests that nothing excuses.
    pub lost: usize,
}

/// Percentiles of a set of requests, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Percentiles {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// All seconds from the beginning of the run on.
pub fn seconds(records: &[Record], judgement: &Judgement) -> Vec<Second> {
    let length = records.iter().map(|record| record.due.as_secs() + 1).max().unwrap_or(0) as usize;
    let mut seconds = vec![Second::default(); length];
    let mut latencies = vec![Vec::new(); length];
    for record in records {
        let second = record.due.as_secs() as usize;
        seconds[second].requests += 1;
        if record.trouble.is_none() {
            latencies[second].push(record.latency());
        }
    }
    for (place, verdict) in &judgement.failures {
        let second = &mut seconds[records[*place].due.as_secs() as usize];
        match verdict {
            Verdict::Lost => second.lost += 1,
            Verdict::Running(_) | Verdict::Ruined(_) => second.excused += 1,
        }
    }
    for (second, latencies) in seconds.iter_mut().zip(latencies) {
        let Percentiles { p50, p99, max } = percentiles(latencies);
        (second.p50, second.p99, second.max) = (p50, p99, max);
    }
    seconds
}

/// Of these latencies.
pub fn percentiles(mut latencies: Vec<Duration>) -> Percentiles {
    latencies.sort_unstable();
    // The nearest rank.
    let at = |share: f64| {
        let rank = (latencies.len() as f64 * share).ceil() as usize;
        latencies.get(rank.max(1) - 1).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    };
    Percentiles { p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let Percentiles { p50, p99, max } = percentiles((1..=200).map(Duration::from_millis).collect());
        assert_eq!((p50, p99, max), (100.0, 198.0, 200.0));
        let Percentiles { p50, max, .. } = percentiles(Vec::new());
        assert_eq!((p50, max), (0.0, 0.0));
    }
}
