//! How often a request is tried (Caddy's reverseproxy.go, `tryAgain`).

use regent_config::Balancing;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(crate) struct Tries<'a> {
    rules: &'a Balancing,
    started: Instant,
    /// Tries that failed.
    failed: u32,
}

impl<'a> Tries<'a> {
    pub fn new(rules: &'a Balancing) -> Self {
        Self { rules, started: Instant::now(), failed: 0 }
    }

    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// One has failed. Waits as configured, and answers whether there is to be another one.
    pub async fn again(&mut self) -> bool {
        let Balancing { retries, try_duration, try_interval, .. } = self.rules;
        let is_out_of_time = *try_duration > Duration::ZERO && self.started.elapsed() >= *try_duration;
        if is_out_of_time || retries.is_some_and(|most| self.failed >= most) {
            return false;
        }
        self.failed += 1;
        if !try_interval.is_zero() {
            sleep(*try_interval).await;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tries(retries: Option<u32>, try_duration: u64, try_interval: u64) -> (u32, u64) {
        let rules = Balancing {
            retries,
            try_duration: Duration::from_secs(try_duration),
            try_interval: Duration::from_secs(try_interval),
            ..Balancing::default()
        };
        let mut tries = Tries::new(&rules);
        while tries.again().await {}
        // clock: virtual in the test that calls this.
        (tries.failed(), tries.started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn they_end_by_number_or_by_time() {
        assert_eq!(tries(Some(0), 0, 0).await, (0, 0));
        assert_eq!(tries(Some(3), 0, 0).await, (3, 0));
        assert_eq!(tries(None, 5, 1).await, (5, 5));
        assert_eq!(tries(Some(2), 5, 1).await, (2, 2));
    }
}
