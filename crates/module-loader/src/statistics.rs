//! What is counted of the requests of an instance.

use crate::abi::RawStatistics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads count apart, so that they do not take one cache line from each other; more than these share.
const SHARDS: usize = 32;

/// Of one instance.
#[derive(Default)]
pub struct Statistics {
    shards: [Shard; SHARDS],
}

/// Which shard a thread counts in.
#[derive(Debug, Clone, Copy)]
pub struct ShardIndex(usize);

#[derive(Default)]
#[repr(align(128))]
struct Shard {
    started: AtomicU64,
    /// By the first digit of the status; 0: broken off.
    ended: [AtomicU64; 6],
    bytes: AtomicU64,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// `None`: broken off, or nobody waited for it.
    pub status: Option<u16>,
    /// Of the body.
    pub bytes: u64,
}

impl ShardIndex {
    /// Of the thread with this number, counted from 0.
    pub fn of_thread(number: usize) -> Self {
        Self(number % SHARDS)
    }
}

impl Statistics {
    pub fn start(&self, shard: ShardIndex) {
        self.shards[shard.0].started.fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self, shard: ShardIndex, ended: Ended) {
        let shard = &self.shards[shard.0];
        let class = ended.status.map_or(0, |status| usize::from(status / 100).min(5));
        shard.ended[class].fetch_add(1, Ordering::Relaxed);
        shard.bytes.fetch_add(ended.bytes, Ordering::Relaxed);
    }

    /// The sums. Its `size` is 0.
    pub fn sum(&self) -> RawStatistics {
        let mut sum = RawStatistics { size: 0, requests: 0, answers: [0; 6], running: 0, bytes: 0 };
        // What has ended is read first, so that no request has ended that had not started.
        for shard in &self.shards {
            for (class, count) in sum.answers.iter_mut().zip(&shard.ended) {
                *class += count.load(Ordering::Acquire);
            }
            sum.bytes += shard.bytes.load(Ordering::Relaxed);
        }
        sum.requests = self.shards.iter().map(|shard| shard.started.load(Ordering::Relaxed)).sum();
        sum.running = sum.requests.saturating_sub(sum.answers.iter().sum());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_the_first_digit_over_all_threads() {
        let statistics = Statistics::default();
        for (thread, status) in [Some(200), Some(204), Some(404), None].into_iter().enumerate() {
            let shard = ShardIndex::of_thread(thread * SHARDS + thread);
            statistics.start(shard);
            statistics.end(shard, Ended { status, bytes: 10 });
        }
        statistics.start(ShardIndex::of_thread(1));
        let sum = statistics.sum();
        assert_eq!((sum.requests, sum.running, sum.bytes), (5, 1, 40));
        assert_eq!(sum.answers, [1, 0, 2, 0, 1, 0]);
    }
}
