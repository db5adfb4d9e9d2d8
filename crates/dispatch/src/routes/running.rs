//! How many requests of a route run, and for how long already, without a list of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A million requests at once; PHP threads are far fewer.
const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const SUM_BITS: u32 = u64::BITS - COUNT_BITS;
const TICK: Duration = Duration::from_micros(100);

/// The number of running requests (low bits) and the sum of their starts (high bits, modulo 2⁴⁴ ticks) in one word:
/// a request adds its start and takes it away again, and the sum of all ages is count × now − sum of the starts. In
/// two words, a look between two writes would see a request without its start, that is, as old as the server.
#[derive(Debug, Default)]
pub(crate) struct Running(AtomicU64);

/// When a request started, in ticks after the route's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start(u64);

impl Start {
    pub fn after(since_epoch: Duration) -> Self {
        Self((since_epoch.as_nanos() / TICK.as_nanos()) as u64)
    }

    /// What it adds to the word. The ticks' own high bits fall off at the top, as modulo asks for.
    fn word(self) -> u64 {
        (self.0 << COUNT_BITS) | 1
    }
}

impl Running {
    pub fn begin(&self, start: Start) {
        self.0.fetch_add(start.word(), Relaxed);
    }

    pub fn end(&self, start: Start) {
        self.0.fetch_sub(start.word(), Relaxed);
    }

    pub fn count(&self) -> u32 {
        (self.0.load(Relaxed) & COUNT_MASK) as u32
    }

    /// The number of running requests, and the sum of their ages.
    pub fn ages(&self, now: Start) -> (u32, Duration) {
        let word = self.0.load(Relaxed);
        let count = word & COUNT_MASK;
        let sum = now.0.wrapping_mul(count).wrapping_sub(word >> COUNT_BITS) & (u64::MAX >> COUNT_BITS);
        // Another thread's clock reading may be newer than `now`: a negative sum, which wrapped around.
        let sum = if sum >> (SUM_BITS - 1) == 0 { sum } else { 0 };
        (count as u32, Duration::from_micros(sum * TICK.as_micros() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Start {
        Start::after(Duration::from_millis(ms))
    }

    #[test]
    fn ages_add_up() {
        let running = Running::default();
        assert_eq!(running.ages(at(1000)), (0, Duration::ZERO));
        running.begin(at(100));
        running.begin(at(700));
        assert_eq!(running.ages(at(1000)), (2, Duration::from_millis(1200)));
        running.end(at(100));
        assert_eq!(running.ages(at(1000)), (1, Duration::from_millis(300)));
    }

    #[test]
    fn a_start_from_the_future_has_no_age() {
        let running = Running::default();
        running.begin(at(1001));
        assert_eq!(running.ages(at(1000)), (1, Duration::ZERO));
    }

    proptest! {
        #[test]
        fn the_sum_is_exact_whatever_wraps(
            starts in proptest::collection::vec(0_u64..1 << 50, 0..50),
            lead in 0_u64..1 << 30,
            ended in 0_usize..50,
        ) {
            let latest = starts.iter().copied().max().unwrap_or(0);
            // Ages that the 44 bits can hold.
            let starts: Vec<_> = starts.iter().map(|start| latest - (latest - start) % (1 << 36)).collect();
            let running = Running::default();
            starts.iter().for_each(|start| running.begin(Start(*start)));
            let ended = ended.min(starts.len());
            starts[..ended].iter().for_each(|start| running.end(Start(*start)));
            let now = latest + lead;
            let expected: u64 = starts[ended..].iter().map(|start| now - start).sum();
            let (count, ages) = running.ages(Start(now));
            prop_assert_eq!(count as usize, starts.len() - ended);
            prop_assert_eq!(ages, Duration::from_micros(expected * 100));
        }
    }
}
