//! What encoders may take of the machine: far more memory than other responses, and cores.

use regent_config::{EncodeFormat, ZstdLevel};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

const MIB: u64 = 1 << 20;

/// Bytes that the encoders of one listening address may hold, all together. What comes beyond is sent as it is.
const MOST: u64 = 512 * MIB;

/// Of one listening address, shared by the I/O threads.
#[derive(Debug)]
pub(crate) struct EncoderBudget {
    held: AtomicU64,
    /// One for each core. More pieces at once would be done no sooner, in threads with heaps of their own, which take the cores
    /// from the I/O threads.
    turns: Arc<Semaphore>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Arc<EncoderBudget>,
    bytes: u64,
}

impl Default for EncoderBudget {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, |cores| cores.get());
        Self { held: AtomicU64::new(0), turns: Arc::new(Semaphore::new(cores)) }
    }
}

impl EncoderBudget {
    /// For one encoder. `None`: there is no room.
    pub(crate) fn reserve(self: &Arc<Self>, format: EncodeFormat) -> Option<Reserved> {
        let bytes = most_of(format);
        let added = |held: u64| held.checked_add(bytes).filter(|held| *held <= MOST);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).ok()?;
        Some(Reserved { budget: Arc::clone(self), bytes })
    }
}

impl Reserved {
    /// Taken by what is encoded outside of the I/O threads.
    pub(crate) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.budget.turns)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Measured, and rounded up; see [`Encoder`](super::encoder::Encoder).
const fn most_of(format: EncodeFormat) -> u64 {
    match format {
        EncodeFormat::Gzip { .. } => MIB / 2,
        EncodeFormat::Zstd { level: ZstdLevel::Fastest | ZstdLevel::Default, .. } => 2 * MIB,
        EncodeFormat::Zstd { level: ZstdLevel::Better | ZstdLevel::Best, .. } => 4 * MIB,
        EncodeFormat::Brotli { level: ..=5 } => 3 * MIB,
        EncodeFormat::Brotli { level: 6 } => 5 * MIB,
        EncodeFormat::Brotli { level: 7 } => 10 * MIB,
        EncodeFormat::Brotli { level: 8.. } => 36 * MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_had_again() {
        let budget = Arc::<EncoderBudget>::default();
        let format = EncodeFormat::Brotli { level: 9 };
        let mut held: Vec<_> = std::iter::from_fn(|| budget.reserve(format)).collect();
        assert_eq!(held.len(), 14);
        let small = EncodeFormat::Gzip { level: 5 };
        assert!(budget.reserve(small).is_some(), "what is left does for another");
        held.pop();
        assert!(budget.reserve(format).is_some());
        drop(held);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
    }
}
