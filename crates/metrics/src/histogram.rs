//! Histograms of durations that one thread writes and any thread reads.

use crate::bounds::{BUCKETS, COARSE_BUCKETS, Sample};
use crate::counter::{Counter, Greatest};
use crate::snapshot::{CoarseSnapshot, Snapshot};
use std::array;
use std::time::Duration;

/// Durations from 1 µs to 1000 s with an error of at most 5 %, in 2.5 KiB. Shorter and longer ones are counted too, as
/// less than 1 µs and as the longest of all.
///
/// One thread at a time may [`record`](Self::record): what two record at the same moment may be counted once. The sum
/// starts again at zero after 584 years of recorded time, which 10,000 requests at a time reach in three weeks;
/// Prometheus expects that of counters, and differences of snapshots stay right.
pub struct Histogram {
    sum: Counter,
    max: Greatest,
    buckets: [Counter; BUCKETS],
}

impl Histogram {
    pub fn record(&self, duration: Duration) {
        self.add(Sample::new(duration));
    }

    /// What was recorded up to now. A request that is being recorded meanwhile may be in the count and not yet in the
    /// sum.
    pub fn snapshot(&self) -> Snapshot {
        let buckets = Box::new(array::from_fn(|bucket| self.buckets[bucket].get()));
        Snapshot::new(buckets, self.sum.get(), self.max.get())
    }

    pub(crate) fn add(&self, sample: Sample) {
        self.buckets[sample.bucket()].add(1);
        self.sum.add(sample.nanos);
        self.max.raise(sample.nanos);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: array::from_fn(|_| Counter::default()),
            sum: Counter::default(),
            max: Greatest::default(),
        }
    }
}

/// Only the buckets that Prometheus gets, in 128 bytes.
#[derive(Default)]
pub(crate) struct CoarseHistogram {
    buckets: [Counter; COARSE_BUCKETS],
    sum: Counter,
}

impl CoarseHistogram {
    pub fn add(&self, sample: Sample) {
        self.buckets[sample.coarse_bucket()].add(1);
        self.sum.add(sample.nanos);
    }

    pub fn snapshot(&self) -> CoarseSnapshot {
        CoarseSnapshot { buckets: array::from_fn(|bucket| self.buckets[bucket].get()), sum: self.sum.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn count_sum_and_max_are_exact() {
        let histogram = Histogram::default();
        for micros in [3, 700, 52_000] {
            histogram.record(Duration::from_micros(micros));
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count(), 3);
        assert_eq!(snapshot.sum(), Duration::from_micros(52_703));
        assert_eq!(snapshot.max(), Duration::from_millis(52));
    }

    #[test]
    fn a_coarse_histogram_counts_as_a_fine_one_does() {
        let (fine, coarse) = (Histogram::default(), CoarseHistogram::default());
        for micros in (0..20_000_000).step_by(997) {
            let sample = Sample::new(Duration::from_micros(micros));
            fine.add(sample);
            coarse.add(sample);
        }
        assert_eq!(fine.snapshot().coarse(), coarse.snapshot());
    }

    #[test]
    fn what_a_reader_sees_only_grows_and_ends_complete() {
        let (histogram, done) = (Histogram::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for nanos in 0..200_000 {
                    histogram.record(Duration::from_nanos(nanos));
                }
                done.store(true, Ordering::Release);
            });
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                let count = histogram.snapshot().count();
                assert!(count >= seen);
                seen = count;
            }
        });
        assert_eq!(histogram.snapshot().count(), 200_000);
    }
}
