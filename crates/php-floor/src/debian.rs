//! The order of versions of Debian's packages: Debian Policy 5.6.12, as dpkg has it (lib/dpkg/version.c, `verrevcmp`).

use std::cmp::Ordering;

/// Which of two versions of a package is newer.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Parts::of(one), Parts::of(other));
    let of_epochs = one.epoch.cmp(&other.epoch);
    of_epochs
        .then_with(|| in_turns(one.upstream, other.upstream))
        .then_with(|| in_turns(one.revision, other.revision))
}

struct Parts<'a> {
    epoch: u64,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Parts<'a> {
    fn of(version: &'a str) -> Self {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self { epoch: epoch.parse().unwrap_or(0), upstream, revision }
    }
}

/// Letters and numbers in turns, as long as there are any.
fn in_turns(mut one: &str, mut other: &str) -> Ordering {
    while !one.is_empty() || !other.is_empty() {
        let letters = |text: &str| text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
        let (word, rest) = one.split_at(letters(one));
        let (other_word, other_rest) = other.split_at(letters(other));
        let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, rest) = rest.split_at(digits(rest));
        let (other_number, other_rest) = other_rest.split_at(digits(other_rest));
        let order = words(word, other_word).then_with(|| numbers(number, other_number));
        if order.is_ne() {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
    Ordering::Equal
}

/// A tilde comes before the end, the end before letters, and letters before all else.
fn words(one: &str, other: &str) -> Ordering {
    let weight = |letter: Option<u8>| match letter {
        Some(b'~') => -1,
        None => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(letter),
        Some(letter) => i32::from(letter) + 256,
    };
    let at = |text: &str, index: usize| weight(text.as_bytes().get(index).copied());
    let mut orders = (0..one.len().max(other.len())).map(|index| at(one, index).cmp(&at(other, index)));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn numbers(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of them was compared by `dpkg --compare-versions`.
    #[test]
    fn versions_are_in_the_order_of_dpkg() {
        let ascending = [
            "8.2.36~rc1-1",
            "8.2.36-1~deb12u1",
            "8.2.36-1",
            "8.2.36-1ubuntu1",
            "8.2.36-1ubuntu1.9",
            "8.2.36-1ubuntu1.10",
            "8.2.36-1+0~20261119.100+debian12~1.gbp0a1b2c",
            "8.2.36-2",
            "8.2.100-1",
            "1:8.2.1-1",
        ];
        for (index, version) in ascending.iter().enumerate() {
            for (other_index, other) in ascending.iter().enumerate() {
                assert_eq!(compare(version, other), index.cmp(&other_index), "{version} and {other}");
            }
        }
        assert_eq!(compare("8.02.1-1", "8.2.1-1"), Ordering::Equal);
    }
}
