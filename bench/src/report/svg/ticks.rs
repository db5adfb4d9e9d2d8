//! Round numbers along an axis, and how they are written.

use crate::report::format;

/// Labelled values, and those between them that only have a faint line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticks {
    pub major: Vec<Tick>,
    pub minor: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

/// The distance of round numbers: 1, 2 or 5 times a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    factor: f64,
    power: i32,
}

/// A logarithmic axis has at least so many labels, of round numbers as far apart as possible.
const FEWEST: usize = 3;
/// Powers outside of these are written as powers, not in full.
const PLAIN_POWERS: std::ops::RangeInclusive<i32> = -4..=8;

impl Step {
    /// The shortest of which at most `most` make the span, which is greater than zero.
    pub fn fitting(span: f64, most: usize) -> Self {
        let power = (span / most as f64).log10().floor() as i32;
        let steps = [(1.0, power), (2.0, power), (5.0, power), (1.0, power + 1), (2.0, power + 1)];
        let steps = steps.map(|(factor, power)| Self { factor, power });
        // The slack is for spans that are a whole number of steps but for rounding.
        let fits = |step: &&Self| span / step.length() <= most as f64 * (1.0 + 1e-9);
        *steps.iter().find(fits).unwrap_or(&steps[4])
    }

    pub fn length(self) -> f64 {
        self.times(1.0)
    }

    /// Dividing gives 0.3 its shortest decimal form, multiplying by 10^-1 does not.
    fn times(self, count: f64) -> f64 {
        if self.power < 0 {
            count * self.factor / 10f64.powi(-self.power)
        } else {
            count * self.factor * 10f64.powi(self.power)
        }
    }

    /// The largest multiple that is at most the value.
    pub fn below(self, value: f64) -> f64 {
        self.times((value / self.length() + 1e-9).floor())
    }

    /// The smallest multiple that is at least the value.
    pub fn above(self, value: f64) -> f64 {
        self.times((value / self.length() - 1e-9).ceil())
    }

    /// The multiples from `low` to `high`.
    fn between(self, low: f64, high: f64) -> Vec<Tick> {
        let first = (low / self.length() - 1e-9).ceil();
        let count = (high / self.length() + 1e-9).floor() - first;
        (0..=count.clamp(-1.0, 100.0) as i32)
            .map(|index| first + f64::from(index))
            .filter(|_| count >= 0.0)
            .map(|multiple| Tick { value: self.times(multiple) + 0.0, label: self.label(multiple) })
            .collect()
    }

    fn label(self, multiple: f64) -> String {
        if multiple == 0.0 {
            return "0".to_owned();
        }
        let value = self.times(multiple);
        if !PLAIN_POWERS.contains(&(value.abs().log10().floor() as i32)) {
            return scientific(value);
        }
        decimal(value, usize::try_from(-self.power).unwrap_or(0))
    }
}

/// At most `most` + 1 ticks from `low` to `high`, which is greater.
pub fn linear(low: f64, high: f64, most: usize) -> Ticks {
    Ticks { major: Step::fitting(high - low, most).between(low, high), minor: Vec::new() }
}

/// Powers of ten; over less than some decades their double and fivefold, too; over a small part of one, equal steps.
/// Both ends are greater than zero, `high` is greater.
pub fn logarithmic(low: f64, high: f64, most: usize) -> Ticks {
    let every = (high / low).log10().ceil() as i32 / most as i32 + 1;
    let decades: Vec<f64> = round_numbers(low, high, &[1.0], every);
    if decades.len() >= FEWEST {
        let minor = if every == 1 {
            round_numbers(low, high, &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1)
        } else {
            Vec::new()
        };
        return Ticks { major: labelled(decades), minor };
    }
    let fine = round_numbers(low, high, &[1.0, 2.0, 5.0], 1);
    if fine.len() >= FEWEST {
        return Ticks {
            major: labelled(fine),
            minor: round_numbers(low, high, &[3.0, 4.0, 6.0, 7.0, 8.0, 9.0], 1),
        };
    }
    linear(low, high, most)
}

/// The largest of 1, 2 and 5 times a power of ten that is at most the value, which is greater than zero.
pub fn round_below(value: f64) -> f64 {
    let power = value.log10().floor() as i32;
    let numbers =
        [(5.0, power), (2.0, power), (1.0, power), (5.0, power - 1)].map(|(f, p)| times_power(f, p));
    numbers.into_iter().find(|number| *number <= value * (1.0 + 1e-9)).unwrap_or(value)
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least the value, which is greater than zero.
pub fn round_above(value: f64) -> f64 {
    let power = value.log10().floor() as i32;
    let numbers =
        [(1.0, power), (2.0, power), (5.0, power), (1.0, power + 1)].map(|(f, p)| times_power(f, p));
    numbers.into_iter().find(|number| *number >= value * (1.0 - 1e-9)).unwrap_or(value)
}

/// The factors times the powers of ten that are multiples of `every`, as far as they lie in the range.
fn round_numbers(low: f64, high: f64, factors: &[f64], every: i32) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    powers
        .filter(|power| power % every == 0)
        .flat_map(|power| factors.iter().map(move |factor| times_power(*factor, power)))
        .filter(|number| *number >= low * (1.0 - 1e-9) && *number <= high * (1.0 + 1e-9))
        .collect()
}

fn labelled(numbers: Vec<f64>) -> Vec<Tick> {
    numbers.into_iter().map(|value| Tick { value, label: number(value) }).collect()
}

/// A round number in full, or as a power when that is long.
fn number(value: f64) -> String {
    let power = (value.log10() + 1e-9).floor() as i32;
    if PLAIN_POWERS.contains(&power) {
        decimal(value, usize::try_from(-power).unwrap_or(0))
    } else {
        scientific(value)
    }
}

fn times_power(factor: f64, power: i32) -> f64 {
    Step { factor, power }.length()
}

fn decimal(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    let magnitude = value.abs();
    if decimals == 0 {
        return format!("{sign}{}", format::count(magnitude));
    }
    let digits = format!("{magnitude:.decimals$}");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, "0"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), format::count);
    format!("{sign}{whole}.{fraction}")
}

/// Such as 2×10⁻⁷.
pub fn scientific(value: f64) -> String {
    let text = format!("{value:.3e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    let exponent: String = exponent.chars().map(superscript).collect();
    match mantissa.as_str() {
        "1" => format!("10{exponent}"),
        mantissa => format!("{mantissa}×10{exponent}"),
    }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.major.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&linear(0.0, 10_000.0, 6)), ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]);
        assert_eq!(labels(&linear(0.0, 0.3, 6)), ["0", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"]);
        assert_eq!(labels(&linear(-20.0, 20.0, 4)), ["−20", "−10", "0", "10", "20"]);
        assert_eq!(linear(0.0, 0.3, 3).major[3].value, 0.3);
    }

    #[test]
    fn extreme_ticks_are_powers() {
        assert_eq!(labels(&linear(0.0, 2e-7, 2)), ["0", "10⁻⁷", "2×10⁻⁷"]);
        assert_eq!(labels(&logarithmic(1e10, 1e12, 6)), ["10¹⁰", "10¹¹", "10¹²"]);
    }

    #[test]
    fn logarithmic_ticks_suit_the_number_of_decades() {
        let wide = logarithmic(0.1, 100.0, 8);
        assert_eq!(labels(&wide), ["0.1", "1", "10", "100"]);
        assert_eq!(wide.minor.len(), 24);
        assert_eq!(labels(&logarithmic(3.0, 150.0, 8)), ["5", "10", "20", "50", "100"]);
        assert_eq!(labels(&logarithmic(2.1, 2.7, 6)), ["2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7"]);
        assert_eq!(labels(&logarithmic(1e-90, 1e90, 6)).len(), 5);
    }

    #[test]
    fn ends_are_rounded_outwards() {
        assert_eq!([0.07, 1.0, 4.9, 1000.0].map(round_below), [0.05, 1.0, 2.0, 1000.0]);
        assert_eq!([0.07, 1.0, 5.1, 2001.0].map(round_above), [0.1, 1.0, 10.0, 5000.0]);
        let step = Step::fitting(47.0, 5);
        assert_eq!((step.below(-3.0), step.above(44.0)), (-10.0, 50.0));
    }
}
