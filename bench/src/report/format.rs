//! Numbers as a reader wants them.

use crate::statistics::{Comparison, Spread, Verdict};

/// `median (min–max)`; the median alone when all are shown alike.
pub fn spread(spread: &Spread, show: impl Fn(f64) -> String) -> String {
    let (median, min, max) = (show(spread.median), show(spread.min), show(spread.max));
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

/// The ratio's median, or that nothing may be claimed.
pub fn comparison(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::NoDifference => "no difference".to_owned(),
        Verdict::Differs => format!("{:.2}×", comparison.ratio.median),
    }
}

/// A whole number with commas between groups of three digits.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Three significant digits, but all digits before the point.
pub fn significant(value: f64) -> String {
    match value.abs() {
        v if v < 0.0005 => "0".to_owned(),
        v if v < 0.9995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => count(value),
    }
}

/// Bytes in MiB, or in GiB from 10 GiB on.
pub fn bytes(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 10_240.0 {
        format!("{mebibytes:.0} MiB")
    } else {
        format!("{:.0} GiB", mebibytes / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0.4), "0");
        assert_eq!(count(999.0), "999");
        assert_eq!(count(1_000.0), "1,000");
        assert_eq!(count(1_234_567.0), "1,234,567");
    }

    #[test]
    fn three_digits_matter() {
        let shown = [0.0, 0.085, 0.0333, 1.434, 9.999, 12.34, 123.4, 1_234.0].map(significant);
        assert_eq!(shown, ["0", "0.085", "0.033", "1.43", "10.0", "12.3", "123", "1,234"]);
    }

    #[test]
    fn a_spread_without_width_is_its_median() {
        let narrow = Spread { median: 1.0, min: 0.9999, max: 1.0001 };
        assert_eq!(spread(&narrow, significant), "1.00");
        let wide = Spread { median: 2.0, min: 1.0, max: 3.0 };
        assert_eq!(spread(&wide, significant), "2.00 (1.00–3.00)");
    }

    #[test]
    fn memory_has_a_unit() {
        assert_eq!(bytes(50 << 20), "50 MiB");
        assert_eq!(bytes(24 << 30), "24 GiB");
    }

    #[test]
    fn no_claim_without_a_difference() {
        let ratio = Spread { median: 3.456, min: 3.0, max: 4.0 };
        assert_eq!(comparison(&Comparison { ratio, verdict: Verdict::Differs }), "3.46×");
        assert_eq!(comparison(&Comparison { ratio, verdict: Verdict::NoDifference }), "no difference");
    }
}
