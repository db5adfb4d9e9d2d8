//! Latencies with three significant digits.

use std::fmt;
use std::io::Cursor;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Decoder, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is recorded, in µs; anything beyond counts as the bound.
const RANGE: std::ops::RangeInclusive<u64> = 1..=600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of latencies from 1 µs to 600 s. Serialized as base64 of HdrHistogram's V2 format (deflated), which that
/// project's tools read; its unit is the µs.
#[derive(Clone)]
pub struct Latencies(Histogram<u32>);

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(microseconds(latency));
    }

    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("invariant: all histograms have one range");
    }

    pub fn clear(&mut self) {
        self.0.reset();
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that the share `quantile` (0 to 1) of the recorded ones does not exceed, in ms; `None` without any.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.unless_empty(|histogram| histogram.value_at_quantile(quantile) as f64 / 1e3)
    }

    /// In ms; `None` without any.
    pub fn mean_ms(&self) -> Option<f64> {
        self.unless_empty(|histogram| histogram.mean() / 1e3)
    }

    /// In ms; `None` without any.
    pub fn max_ms(&self) -> Option<f64> {
        self.unless_empty(|histogram| histogram.max() as f64 / 1e3)
    }

    /// How many are longer than `limit`, but for those that differ from it in the fourth digit only.
    pub fn count_above(&self, limit: Duration) -> u64 {
        let limit = microseconds(limit);
        self.0
            .iter_recorded()
            .filter(|step| step.value_iterated_to() > self.0.highest_equivalent(limit))
            .map(|step| step.count_since_last_iteration())
            .sum()
    }

    fn unless_empty(&self, figure: impl Fn(&Histogram<u32>) -> f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| figure(&self.0))
    }
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(*RANGE.start(), *RANGE.end(), SIGNIFICANT_DIGITS);
        Self(histogram.expect("invariant: the range and the digits are in HdrHistogram's bounds"))
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Latencies")
            .field("count", &self.count())
            .field("p50_ms", &self.quantile_ms(0.5))
            .field("p99_ms", &self.quantile_ms(0.99))
            .field("max_ms", &self.max_ms())
            .finish()
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(D::Error::custom)?;
        let decoded =
            Decoder::new().deserialize::<u32, _>(&mut Cursor::new(bytes)).map_err(D::Error::custom)?;
        let mut latencies = Self::default();
        latencies.0.add(&decoded).map_err(D::Error::custom)?;
        Ok(latencies)
    }
}

fn microseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(*RANGE.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_milliseconds(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        values.into_iter().for_each(|value| latencies.record(Duration::from_millis(value)));
        latencies
    }

    fn is_near(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() <= expected / 1000.0)
    }

    #[test]
    fn figures_hold_three_digits() {
        let latencies = of_milliseconds(1..=1000);
        assert_eq!(latencies.count(), 1000);
        assert!(is_near(latencies.quantile_ms(0.5), 500.0), "{latencies:?}");
        assert!(is_near(latencies.quantile_ms(0.99), 990.0), "{latencies:?}");
        assert!(is_near(latencies.max_ms(), 1000.0), "{latencies:?}");
        assert!(is_near(latencies.mean_ms(), 500.5), "{latencies:?}");
    }

    #[test]
    fn nothing_has_no_figures() {
        let none = Latencies::default();
        assert_eq!((none.quantile_ms(0.5), none.mean_ms(), none.max_ms()), (None, None, None));
        assert_eq!(none.count_above(Duration::ZERO), 0);
    }

    #[test]
    fn what_is_above_a_limit_is_counted() {
        let latencies = of_milliseconds([1, 2999, 3000, 3010, 4000, 500_000]);
        assert_eq!(latencies.count_above(Duration::from_secs(3)), 3);
        assert_eq!(latencies.count_above(Duration::from_secs(600)), 0);
    }

    #[test]
    fn latencies_beyond_the_range_count_as_its_bounds() {
        let mut latencies = of_milliseconds([0]);
        latencies.record(Duration::from_secs(100_000));
        assert_eq!(latencies.count(), 2);
        assert!(is_near(latencies.max_ms(), 600_000.0), "{latencies:?}");
    }

    #[test]
    fn json_brings_every_count_back() {
        let latencies = of_milliseconds((1..=500).chain([7000]));
        let json = serde_json::to_string(&latencies).expect("serializable");
        let back: Latencies = serde_json::from_str(&json).expect("what was written");
        assert_eq!(back.0, latencies.0);
        assert!(serde_json::from_str::<Latencies>("\"AAAA\"").is_err());
    }

    #[test]
    fn merged_histograms_hold_both() {
        let mut latencies = of_milliseconds(1..=500);
        latencies.merge(&of_milliseconds(501..=1000));
        assert_eq!(latencies.0, of_milliseconds(1..=1000).0);
    }
}
