//! Load generators and what they measure.

pub mod figures;
pub mod h2load;
pub mod oha;
pub mod wrk;

use serde::Serialize;

/// One measurement of one server, closed loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    pub duration_s: f64,
    /// Answered requests, whatever their status.
    pub requests: u64,
    pub bytes: u64,
    /// Answered requests per second.
    pub throughput: f64,
    pub latency_ms: Latency,
    pub errors: Errors,
}

/// Milliseconds from the sending of a request to the end of its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Of the answers; less than connections ÷ throughput by the time that requests wait to be sent.
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// What went wrong, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    /// Answers with a status of 400 or more.
    pub status: u64,
    /// Answers that took longer than the generator's time-out.
    pub timeout: u64,
}

impl Errors {
    pub fn total(&self) -> u64 {
        self.connect + self.read + self.write + self.status + self.timeout
    }
}

impl Load {
    /// p99 ÷ (connections ÷ throughput): in a closed loop the mean latency is the divisor (Little's law), so this is
    /// how far the tail is from the mean. `None` without requests.
    pub fn p99_over_mean(&self, connections: u32) -> Option<f64> {
        (self.throughput > 0.0)
            .then(|| self.latency_ms.p99 / (f64::from(connections) / self.throughput * 1000.0))
    }
}

#[cfg(test)]
impl Load {
    /// A made-up measurement for the tests of other modules: 1 s at this throughput.
    pub fn sample(throughput: f64, p99: f64) -> Self {
        let latency_ms =
            Latency { mean: p99 / 1.9, p50: p99 / 2.0, p90: p99 * 0.8, p99, p999: p99 * 1.5, max: p99 * 2.0 };
        let requests = throughput as u64;
        Self {
            duration_s: 1.0,
            requests,
            bytes: requests * 300,
            throughput,
            latency_ms,
            errors: Errors::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_measured_against_littles_law() {
        // 100 connections at 50,000/s: a mean of 2 ms.
        let ratio = Load::sample(50_000.0, 3.0).p99_over_mean(100).expect("there are requests");
        assert!((ratio - 1.5).abs() < 1e-9);
        assert_eq!(Load::sample(0.0, 3.0).p99_over_mean(100), None);
    }
}
