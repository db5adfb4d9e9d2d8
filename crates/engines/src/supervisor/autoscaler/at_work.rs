//! Keeps those threads of a pool asleep that would only take the CPU from the others.

use super::long_computations::LongComputations;
use super::thread_sample::ThreadSample;
use regent_dispatch::concurrency::{Concurrency, Seen};
use regent_wire::Region;
use std::time::Duration;

/// Of one pool.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    policy: Concurrency,
    long: LongComputations,
}

impl AtWork {
    /// To be called while requests wait. `true` if threads are kept asleep now.
    pub fn adjust(
        &mut self,
        region: &Region,
        pool: usize,
        sample: &ThreadSample,
        cores: f32,
        now: Duration,
    ) -> bool {
        let threads = sample.threads;
        let (taken, spent) = sample.work();
        let computes_long = self.long.any(sample.busy(), now);
        let most = self.policy.most_at_work(&Seen { now, threads, cores, taken, spent, computes_long });
        let kept = most.map_or(0, |most| u32::from(threads.idle + threads.busy).saturating_sub(most));
        region.keep_asleep(pool, kept);
        kept > 0
    }
}
