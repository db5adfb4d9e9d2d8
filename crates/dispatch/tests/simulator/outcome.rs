//! What a run was like.

use super::machine::Nanos;
use regent_dispatch::scaling::{Decision, Observation};

#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub at: Nanos,
    pub decision: Decision,
}

#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Of all requests that were answered, in order of size.
    pub latencies: Vec<Nanos>,
    pub changes: Vec<Change>,
    /// Of the pool, whenever the policy looked.
    pub sizes: Vec<(Nanos, u32)>,
    pub most_memory: u64,
    pub most_booting: u16,
}

impl Outcome {
    pub fn handled(&self) -> usize {
        self.latencies.len()
    }

    /// Zero if nothing was answered.
    pub fn percentile(&self, percent: usize) -> Nanos {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * percent / 100).copied().unwrap_or(0)
    }

    pub fn most_threads(&self) -> u32 {
        self.sizes.iter().map(|&(_, size)| size).max().unwrap_or(0)
    }

    pub fn threads_at(&self, time: Nanos) -> u32 {
        self.sizes.iter().take_while(|&&(at, _)| at <= time).last().map_or(0, |&(_, size)| size)
    }

    /// When the pool first had so many threads.
    pub fn reached(&self, threads: u32) -> Option<Nanos> {
        self.sizes.iter().find(|&&(_, size)| size >= threads).map(|&(at, _)| at)
    }

    /// The fewest and the most threads from `time` on.
    pub fn range_after(&self, time: Nanos) -> (u32, u32) {
        let later = self.sizes.iter().filter(|&&(at, _)| at > time).map(|&(_, size)| size);
        later.fold((u32::MAX, 0), |(fewest, most), size| (fewest.min(size), most.max(size)))
    }

    pub fn changes_after(&self, time: Nanos) -> usize {
        self.changes.iter().filter(|change| change.at > time).count()
    }

    /// Both runs as one.
    pub fn and(mut self, other: Self) -> Self {
        self.latencies.extend(other.latencies);
        self.latencies.sort_unstable();
        self.sizes.extend(other.sizes);
        self.changes.extend(other.changes);
        self.most_memory = self.most_memory.max(other.most_memory);
        self.most_booting = self.most_booting.max(other.most_booting);
        self
    }

    /// How often growth followed on shrinking, or shrinking on growth, from `time` on.
    pub fn turns_after(&self, time: Nanos) -> usize {
        let later = self.changes.iter().filter(|change| change.at > time);
        let grows: Vec<bool> = later.map(|change| matches!(change.decision, Decision::Add { .. })).collect();
        grows.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    pub(super) fn note(&mut self, seen: &Observation) {
        let threads = seen.threads;
        let size = u32::from(threads.booting) + u32::from(threads.idle) + u32::from(threads.busy);
        self.sizes.push((seen.now.as_nanos() as Nanos, size));
        self.most_memory = self.most_memory.max(seen.memory.map_or(0, |memory| memory.used));
        self.most_booting = self.most_booting.max(threads.booting);
    }
}
