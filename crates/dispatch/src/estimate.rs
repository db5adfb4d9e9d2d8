//! How long a route's requests take, estimated from those that ended. A handful of relaxed atomic operations for each
//! sample: two threads that record at the same moment may lose one sample of the mean, never more.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A sixteenth of each sample goes into the mean: it follows a change within some 30 requests, and one odd request
/// moves it by 6 % of the difference.
const MEAN_SHIFT: u32 = 4;
/// How far a sample above the estimate moves the 99th percentile, relative to it. 20 samples carry it over a factor of
/// 100.
const HIGH_STEP: f64 = 0.25;
const HIGH_QUANTILE: f64 = 0.99;

/// Mean and 99th percentile of a stream of durations, in nanoseconds within; 0 stands for "no sample yet".
#[derive(Debug, Default)]
pub(crate) struct ServiceTime {
    mean: AtomicU64,
    high: AtomicU64,
    count: AtomicU64,
    total: AtomicU64,
}

/// What has been recorded since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub count: u64,
    pub total: Duration,
}

impl ServiceTime {
    pub fn record(&self, sample: Duration) {
        let sample = nanoseconds(sample).max(1);
        self.total.fetch_add(sample, Relaxed);
        self.count.fetch_add(1, Relaxed);
        let mean = match self.mean.load(Relaxed) {
            0 => sample,
            mean => mean - (mean >> MEAN_SHIFT) + (sample >> MEAN_SHIFT),
        };
        self.mean.store(mean.max(1), Relaxed);
        self.high.store(next_high(self.high.load(Relaxed), sample), Relaxed);
    }

    /// Exponentially weighted mean.
    pub fn mean(&self) -> Option<Duration> {
        known(self.mean.load(Relaxed))
    }

    /// About 99 of 100 requests take no longer.
    pub fn high(&self) -> Option<Duration> {
        known(self.high.load(Relaxed))
    }

    pub fn recorded(&self) -> Recorded {
        Recorded { count: self.count.load(Relaxed), total: Duration::from_nanos(self.total.load(Relaxed)) }
    }
}

/// Stochastic approximation: steps up and down in the ratio of the odds rest where 1 % of the samples lies above. The
/// steps are relative, so that one rule serves microseconds and minutes.
fn next_high(high: u64, sample: u64) -> u64 {
    let step = match high {
        0 => return sample,
        high if sample > high => HIGH_STEP * HIGH_QUANTILE,
        _ => -HIGH_STEP * (1.0 - HIGH_QUANTILE),
    };
    ((high as f64 * (1.0 + step)) as u64).max(1)
}

/// Nanoseconds as they fit in a word: 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn known(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn nothing_is_known_before_the_first_sample() {
        let time = ServiceTime::default();
        assert_eq!((time.mean(), time.high()), (None, None));
        time.record(ms(7));
        assert_eq!((time.mean(), time.high()), (Some(ms(7)), Some(ms(7))));
    }

    #[test]
    fn the_mean_follows_a_change_within_fifty_samples() {
        let time = ServiceTime::default();
        (0..100).for_each(|_| time.record(ms(5)));
        (0..50).for_each(|_| time.record(ms(50)));
        assert!(time.mean().unwrap() > ms(45), "{:?}", time.mean());
        assert_eq!(time.recorded(), Recorded { count: 150, total: ms(3000) });
    }

    #[test]
    fn the_high_estimate_rests_at_the_99th_percentile() {
        let time = ServiceTime::default();
        // Each of 1 to 1000 ms equally often, in an order without pattern.
        let mut highs = Vec::new();
        for number in 0..200_000_u64 {
            time.record(ms(1 + number * 619 % 1000));
            highs.push(time.high().unwrap().as_millis() as u64);
        }
        let settled = &highs[100_000..];
        let mean = settled.iter().sum::<u64>() / settled.len() as u64;
        assert!((930..1100).contains(&mean), "{mean} ms");
    }

    #[test]
    fn instant_requests_do_not_lock_the_estimates_at_zero() {
        let time = ServiceTime::default();
        (0..1000).for_each(|_| time.record(Duration::ZERO));
        assert!(time.high().is_some() && time.mean().is_some());
        (0..200).for_each(|_| time.record(ms(5)));
        assert!(time.mean().unwrap() > ms(4));
    }
}
