//! Versions of modules, compared number by number.

use std::cmp::Ordering;

/// "1.10" is above "1.9", and "1.0" is "1". What is no number counts as 0, and as what it begins with otherwise.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.').map(number), b.split('.').map(number));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (a, b) => match a.unwrap_or(0).cmp(&b.unwrap_or(0)) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
        }
    }
}

fn number(part: &str) -> u64 {
    let digits = part.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        for (lower, higher) in [("1.9", "1.10"), ("1", "1.0.1"), ("0.9", "1"), ("1.2-rc1", "1.3")] {
            assert_eq!(compare(lower, higher), Ordering::Less, "{lower} {higher}");
            assert_eq!(compare(higher, lower), Ordering::Greater, "{higher} {lower}");
        }
        assert_eq!(compare("1.0", "1"), Ordering::Equal);
        assert_eq!(compare("99999999999999999999", "18446744073709551615"), Ordering::Equal);
    }
}
