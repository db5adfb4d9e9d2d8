//! What a histogram held at one moment, or between two.

use crate::bounds::{self, BUCKETS, COARSE_BOUNDS, COARSE_BUCKETS};
use std::array;
use std::time::Duration;

/// Counts of a [`Histogram`](crate::Histogram), or of several that were merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    buckets: Box<[u64; BUCKETS]>,
    /// In ns, as `max`.
    sum: u64,
    max: u64,
}

impl Snapshot {
    pub(crate) fn new(buckets: Box<[u64; BUCKETS]>, sum: u64, max: u64) -> Self {
        Self { buckets, sum, max }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// The longest; zero when there is none. Of what [`since`](Self::since) returns: at most 10 % more than the longest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Zero when there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum.checked_div(self.count()).unwrap_or(0))
    }

    /// The shortest duration that a part `q` (0 to 1) of all does not exceed, within 5 %; zero when there is none.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        Duration::from_nanos(found.map_or(self.max, |bucket| bounds::middle(bucket).min(self.max)))
    }

    /// Adds what another histogram held.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *bucket += count;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// What came between an earlier snapshot of the same histograms and this one.
    pub fn since(&self, earlier: &Self) -> Self {
        let buckets = array::from_fn(|bucket| self.buckets[bucket].saturating_sub(earlier.buckets[bucket]));
        Self::between(Box::new(buckets), self.sum.wrapping_sub(earlier.sum), self.max)
    }

    /// The non-empty buckets, with their counts.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.buckets.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    pub(crate) fn sum_nanos(&self) -> u64 {
        self.sum
    }

    pub(crate) fn max_nanos(&self) -> u64 {
        self.max
    }

    pub(crate) fn coarse(&self) -> CoarseSnapshot {
        let mut coarse = CoarseSnapshot { sum: self.sum, ..CoarseSnapshot::default() };
        for (bucket, count) in self.filled() {
            coarse.buckets[bounds::coarse_bucket(bucket)] += count;
        }
        coarse
    }

    /// Of a part of a histogram whose longest was `longest`.
    fn between(buckets: Box<[u64; BUCKETS]>, sum: u64, longest: u64) -> Self {
        let last = buckets.iter().rposition(|count| *count > 0);
        Self { buckets, sum, max: last.map_or(0, |bucket| bounds::upper_bound(bucket).min(longest)) }
    }
}

/// Empty.
impl Default for Snapshot {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), sum: 0, max: 0 }
    }
}

/// Counts in the buckets that Prometheus gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CoarseSnapshot {
    /// Each without those before it.
    pub buckets: [u64; COARSE_BUCKETS],
    /// In ns.
    pub sum: u64,
}

impl CoarseSnapshot {
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += count;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Each bound, in ns, with the number of durations that do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        COARSE_BOUNDS.into_iter().zip(self.buckets).scan(0, |seen, (bound, count)| {
            *seen += count;
            Some((bound, *seen))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const QUANTILES: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0];

    fn histogram_of(nanos: &[u64]) -> Snapshot {
        let histogram = Histogram::default();
        nanos.iter().for_each(|nanos| histogram.record(Duration::from_nanos(*nanos)));
        histogram.snapshot()
    }

    fn exact_quantile(sorted: &[u64], q: f64) -> u64 {
        let rank = (q * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }

    /// Longer than 1 µs, up to 1000 s, as likely in each decade.
    fn duration() -> impl Strategy<Value = u64> {
        (3u32..12, 1.0..10.0f64).prop_map(|(decade, value)| 1 + (value * 10f64.powi(decade as i32)) as u64)
    }

    proptest! {
        #[test]
        fn quantiles_are_within_5_percent(mut nanos in vec(duration(), 1..400)) {
            let snapshot = histogram_of(&nanos);
            nanos.sort_unstable();
            for q in QUANTILES {
                let (measured, exact) = (snapshot.quantile(q).as_nanos() as f64, exact_quantile(&nanos, q) as f64);
                prop_assert!((measured - exact).abs() <= 0.0501 * exact, "{q}: {measured} for {exact}");
            }
        }

        #[test]
        fn merging_is_recording_into_one(a in vec(duration(), 0..50), b in vec(duration(), 0..50)) {
            let mut merged = histogram_of(&a);
            merged.merge(&histogram_of(&b));
            prop_assert_eq!(merged, histogram_of(&[a, b].concat()));
        }

        #[test]
        fn a_difference_is_what_came_since(a in vec(duration(), 0..50), b in vec(duration(), 0..50)) {
            let difference = histogram_of(&[a.clone(), b.clone()].concat()).since(&histogram_of(&a));
            let since = histogram_of(&b);
            prop_assert_eq!(&difference.buckets, &since.buckets);
            prop_assert_eq!(difference.sum, since.sum);
            prop_assert!(difference.max >= since.max && difference.max <= since.max + since.max / 10 + 1);
        }

        #[test]
        fn cumulative_counts_are_exact(nanos in vec(duration(), 0..200)) {
            for (bound, count) in histogram_of(&nanos).coarse().cumulative() {
                prop_assert_eq!(count, nanos.iter().filter(|nanos| **nanos <= bound).count() as u64);
            }
        }
    }

    #[test]
    fn a_sum_that_has_started_again_has_right_differences() {
        let before = histogram_of(&[u64::MAX - 5]);
        assert_eq!(histogram_of(&[u64::MAX - 5, 2_000]).since(&before).sum(), Duration::from_micros(2));
    }

    #[test]
    fn nothing_has_quantiles_of_zero() {
        let empty = Snapshot::default();
        assert_eq!((empty.count(), empty.mean(), empty.quantile(0.99)), (0, Duration::ZERO, Duration::ZERO));
        assert_eq!(empty, Histogram::default().snapshot());
    }

    #[test]
    fn what_exceeds_all_bounds_is_the_longest() {
        let snapshot = histogram_of(&[5_000_000_000_000]);
        assert_eq!(snapshot.quantile(0.5), Duration::from_secs(5_000));
        assert_eq!(snapshot.since(&Snapshot::default()).max(), Duration::from_secs(5_000));
    }
}
