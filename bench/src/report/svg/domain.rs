//! Which values an axis shows, and where along it each lies.

use super::ticks::{self, Step, Ticks};
use crate::report::page::Scale;

/// Greater magnitudes are no measurements, and their differences might not be finite.
const LARGEST: f64 = 1e100;
const SMALLEST: f64 = 1e-100;
/// The ends of a logarithmic axis differ at least by this factor.
const NARROWEST: f64 = 1.2;

/// The range of an axis; `low` is smaller than `high`, both are finite, and greater than zero on a logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    scale: Scale,
    low: f64,
    high: f64,
}

/// Where the axis ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// At the smallest and the largest value.
    Values,
    /// At the next round numbers, for about so many ticks.
    Round(usize),
}

/// Whether a value has a place on an axis of the scale.
pub fn can_show(scale: Scale, value: f64) -> bool {
    value.is_finite()
        && value.abs() <= LARGEST
        && match scale {
            Scale::Linear => true,
            Scale::Logarithmic => value >= SMALLEST,
        }
}

impl Domain {
    /// The range of those of the values that can be shown: from zero on a linear axis.
    pub fn of(scale: Scale, values: impl Iterator<Item = f64>, ends: Ends) -> Self {
        let extremes = values.filter(|value| can_show(scale, *value)).fold(None, |extremes, value| {
            let (low, high) = extremes.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        });
        match scale {
            Scale::Linear => Self::linear(extremes.unwrap_or((0.0, 1.0)), ends),
            Scale::Logarithmic => Self::logarithmic(extremes.unwrap_or((1.0, 10.0)), ends),
        }
    }

    fn linear((low, high): (f64, f64), ends: Ends) -> Self {
        let (low, mut high) = (low.min(0.0), high.max(0.0));
        if high - low < SMALLEST {
            high = low + 1.0;
        }
        if let Ends::Round(most) = ends {
            let step = Step::fitting(high - low, most);
            return Self { scale: Scale::Linear, low: step.below(low), high: step.above(high) };
        }
        Self { scale: Scale::Linear, low, high }
    }

    fn logarithmic((mut low, mut high): (f64, f64), ends: Ends) -> Self {
        if let Ends::Round(_) = ends {
            (low, high) = (ticks::round_below(low), ticks::round_above(high));
        }
        if high < low * NARROWEST {
            (low, high) = (low / 2.0, high * 2.0);
        }
        Self { scale: Scale::Logarithmic, low, high }
    }

    /// 0 at the low end, 1 at the high end, and never beyond.
    pub fn part(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        part.clamp(0.0, 1.0)
    }

    pub fn ticks(&self, most: usize) -> Ticks {
        match self.scale {
            Scale::Linear => ticks::linear(self.low, self.high, most),
            Scale::Logarithmic => ticks::logarithmic(self.low, self.high, most),
        }
    }

    pub fn high(&self) -> f64 {
        self.high
    }

    pub fn low(&self) -> f64 {
        self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(scale: Scale, values: &[f64], ends: Ends) -> (f64, f64) {
        let domain = Domain::of(scale, values.iter().copied(), ends);
        (domain.low, domain.high)
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_round() {
        assert_eq!(domain(Scale::Linear, &[30.0, 47.0, f64::NAN], Ends::Round(6)), (0.0, 50.0));
        assert_eq!(domain(Scale::Linear, &[-3.0, 7.0], Ends::Round(6)), (-4.0, 8.0));
        assert_eq!(domain(Scale::Linear, &[1.0, 37.2], Ends::Values), (0.0, 37.2));
    }

    #[test]
    fn a_logarithmic_axis_ends_round_inside_decades() {
        assert_eq!(domain(Scale::Logarithmic, &[0.0, 3.0, 4_100.0], Ends::Round(6)), (2.0, 5_000.0));
        assert_eq!(domain(Scale::Logarithmic, &[1.0, 10_000.0], Ends::Values), (1.0, 10_000.0));
    }

    #[test]
    fn nothing_and_equal_values_have_a_range() {
        assert_eq!(domain(Scale::Linear, &[0.0, f64::INFINITY], Ends::Round(6)), (0.0, 1.0));
        assert_eq!(domain(Scale::Logarithmic, &[-1.0, 0.0], Ends::Values), (1.0, 10.0));
        assert_eq!(domain(Scale::Logarithmic, &[5.0, 5.0], Ends::Round(6)), (2.5, 10.0));
    }

    #[test]
    fn parts_are_equal_for_equal_factors_on_a_logarithmic_axis() {
        let domain = Domain::of(Scale::Logarithmic, [1.0, 100.0].into_iter(), Ends::Values);
        assert_eq!([0.0, 1.0, 10.0, 100.0, 1e9].map(|value| domain.part(value)), [0.0, 0.0, 0.5, 1.0, 1.0]);
    }
}
