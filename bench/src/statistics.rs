//! Medians with their spread, and what may be claimed from them.

use serde::{Deserialize, Serialize};

/// A claim needs this many rounds ("Rules for every published figure", rule 1).
pub const ROUNDS_TO_PUBLISH: u32 = 5;

/// A median over rounds with the smallest and the largest value; the unit is the values' own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` for no values; the median of an even number of values is the mean of the middle two.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// One server's values against the reference's, round by round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Value ÷ reference of the same round, so that what disturbs a whole round cancels out.
    pub ratio: Spread,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The spreads do not overlap.
    Differs,
    /// The spreads overlap: nothing may be claimed.
    NoDifference,
}

impl Comparison {
    /// Both slices hold one value for each round, in the order of the rounds. `None` when there is nothing to compare.
    pub fn of(values: &[f64], reference: &[f64]) -> Option<Self> {
        let ratio = Spread::of(values.iter().zip(reference).filter(|(_, r)| **r > 0.0).map(|(v, r)| v / r))?;
        let overlap = Spread::of(values.iter().copied())?.overlaps(&Spread::of(reference.iter().copied())?);
        Some(Self { ratio, verdict: if overlap { Verdict::NoDifference } else { Verdict::Differs } })
    }
}

/// The values in the order in which they first come, each once.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Spread::of([7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn spreads_that_touch_overlap() {
        let low = Spread { median: 1.0, min: 0.0, max: 2.0 };
        assert!(low.overlaps(&Spread { median: 3.0, min: 2.0, max: 4.0 }));
        assert!(!low.overlaps(&Spread { median: 3.0, min: 2.1, max: 4.0 }));
    }

    #[test]
    fn ratios_pair_the_values_of_a_round() {
        // The second round was disturbed for both: the ratio does not notice.
        let comparison = Comparison::of(&[30.0, 15.0], &[10.0, 5.0]).expect("comparable");
        assert_eq!(comparison.ratio, Spread { median: 3.0, min: 3.0, max: 3.0 });
        assert_eq!(comparison.verdict, Verdict::Differs);
    }

    #[test]
    fn nothing_is_claimed_where_the_spreads_overlap() {
        let comparison = Comparison::of(&[10.0, 12.0], &[11.0, 9.0]).expect("comparable");
        assert_eq!(comparison.verdict, Verdict::NoDifference);
    }

    #[test]
    fn a_reference_without_requests_gives_no_ratio() {
        assert_eq!(Comparison::of(&[10.0], &[0.0]), None);
        assert_eq!(Comparison::of(&[], &[]), None);
    }

    #[test]
    fn distinct_values_keep_their_order() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
    }
}
