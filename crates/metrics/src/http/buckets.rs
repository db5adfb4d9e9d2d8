//! Histograms with Caddy's bounds, that one thread writes and any thread reads.

use crate::counter::Counter;
use std::array;

/// Those of Caddy's histograms of durations (`prometheus.DefBuckets`), in ns.
pub(super) const DURATIONS: [u64; 11] = [
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Those of its histograms of sizes (`ExponentialBuckets(256, 4, 8)`), in bytes.
pub(super) const SIZES: [u64; 8] = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/// Values up to each bound; what is greater than all of them is in the rest.
pub(super) struct Buckets<const N: usize> {
    within: [Counter; N],
    rest: Counter,
    sum: Counter,
}

/// What one or several of them have counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketTotals<const N: usize> {
    pub within: [u64; N],
    pub rest: u64,
    pub sum: u64,
}

impl<const N: usize> Buckets<N> {
    pub fn add(&self, bounds: &[u64; N], value: u64) {
        let bucket = bounds.iter().position(|bound| value <= *bound);
        bucket.map_or(&self.rest, |bucket| &self.within[bucket]).add(1);
        self.sum.add(value);
    }

    pub fn add_to(&self, totals: &mut BucketTotals<N>) {
        for (total, counter) in totals.within.iter_mut().zip(&self.within) {
            *total += counter.get();
        }
        totals.rest += self.rest.get();
        totals.sum = totals.sum.wrapping_add(self.sum.get());
    }
}

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Self {
            within: array::from_fn(|_| Counter::default()),
            rest: Counter::default(),
            sum: Counter::default(),
        }
    }
}

impl<const N: usize> Default for BucketTotals<N> {
    fn default() -> Self {
        Self { within: [0; N], rest: 0, sum: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_a_bound_is_within_it() {
        let buckets = Buckets::default();
        for value in [0, 256, 257, 4_194_304, 4_194_305] {
            buckets.add(&SIZES, value);
        }
        let mut totals = BucketTotals::default();
        buckets.add_to(&mut totals);
        assert_eq!(totals.within, [2, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!((totals.rest, totals.sum), (1, 256 + 257 + 4_194_304 + 4_194_305));
    }
}
