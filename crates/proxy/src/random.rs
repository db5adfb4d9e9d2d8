//! Chance, as far as load has to be spread. Nobody may rely on it for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Xorshift (Marsaglia, 2003), from a seed of the system's.
pub(crate) struct Random(Cell<u64>);

impl Default for Random {
    fn default() -> Self {
        Self(Cell::new(RandomState::new().hash_one(0) | 1))
    }
}

impl Random {
    /// A number less than `count`, which is at least 1.
    pub fn below(&self, count: usize) -> usize {
        let mut state = self.0.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0.set(state);
        // The upper half is the better one; the bias of the remainder is beyond notice.
        (state >> 32) as usize % count.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_up() {
        let random = Random::default();
        let mut counts = [0; 3];
        (0..3000).for_each(|_| counts[random.below(3)] += 1);
        assert!(counts.iter().all(|count| (500..1500).contains(count)), "{counts:?}");
    }
}
