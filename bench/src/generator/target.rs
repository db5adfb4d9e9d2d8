//! Targets of requests, with random numbers in them.

use std::io::Write;
use std::ops::RangeInclusive;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;

/// A path and query in which `{1-10}` is a random whole number from 1 to 10 inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Number(RangeInclusive<u64>),
}

impl Target {
    pub fn parse(text: &str) -> Result<Self> {
        ensure!(text.starts_with('/'), "the target {text:?} does not start with /");
        ensure!(
            text.bytes().all(|byte| byte.is_ascii_graphic()),
            "the target {text:?} has characters that must be percent-encoded"
        );
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, number)) = rest.split_once('{') {
            let (range, after) = number
                .split_once('}')
                .with_context(|| format!("a {{ of the target {text:?} is not closed"))?;
            pieces.extend([plain(before)?, Piece::Number(parse_range(range)?)]);
            rest = after;
        }
        pieces.push(plain(rest)?);
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Self(pieces))
    }

    pub fn write(&self, random: &mut Rng, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Number(range) => {
                    write!(out, "{}", random.u64(range.clone())).expect("invariant: a Vec takes all");
                }
            }
        }
    }
}

fn plain(text: &str) -> Result<Piece> {
    if text.contains('}') {
        bail!("a }} has no {{ before it in {text:?}");
    }
    Ok(Piece::Text(text.to_owned()))
}

fn parse_range(text: &str) -> Result<RangeInclusive<u64>> {
    let bounds = text.split_once('-').and_then(|(low, high)| Some((number(low)?, number(high)?)));
    match bounds {
        Some((low, high)) if low <= high => Ok(low..=high),
        _ => bail!("expected two whole numbers in order, like {{1-10}}, not {{{text}}}"),
    }
}

/// Digits alone: `u64`'s own parser takes a sign too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    fn written(target: &Target, seed: u64) -> String {
        let mut out = Vec::new();
        target.write(&mut Rng::with_seed(seed), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn a_target_without_braces_stays_as_it_is() {
        let target = Target::parse("/a?b=c-d").expect("valid");
        assert_eq!(written(&target, 1), "/a?b=c-d");
    }

    #[test]
    fn both_bounds_are_drawn() {
        let target = Target::parse("/{1-3}").expect("valid");
        let drawn: std::collections::BTreeSet<String> = (0..100).map(|seed| written(&target, seed)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), ["/1", "/2", "/3"]);
    }

    #[test]
    fn mistakes_are_errors() {
        for wrong in [
            "", "x", "/{", "/}", "/{1}", "/{2-1}", "/{a-b}", "/{1-2", "/{+1-2}", "/{1-2-3}", "/{{1-2}}",
            "/a b", "/é",
        ] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,40}") {
            let _ = Target::parse(&text);
        }

        #[test]
        fn numbers_stay_within_their_bounds(low in any::<u64>(), span in 0..1000_u64, seed in any::<u64>()) {
            let high = low.saturating_add(span);
            let target = Target::parse(&format!("/x?n={{{low}-{high}}}&z")).expect("valid");
            let text = written(&target, seed);
            let drawn: u64 = text.strip_prefix("/x?n=").and_then(|rest| rest.strip_suffix("&z")).expect("the text around it").parse().expect("a number");
            prop_assert!((low..=high).contains(&drawn));
        }
    }
}
