//! Numbers, durations and sizes.

use crate::call::Call;
use crate::model::{LaneChoice, RetryMethods};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Units of Go's `time.ParseDuration`, and `d`, which Caddy adds.
const DURATION_UNITS: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

/// Units of bytes, in lower case: of a thousand and, with an `i`, of 1024.
const SIZE_UNITS: &[(&str, f64)] = &[
    ("", 1.0),
    ("b", 1.0),
    ("k", 1e3),
    ("kb", 1e3),
    ("m", 1e6),
    ("mb", 1e6),
    ("g", 1e9),
    ("gb", 1e9),
    ("t", 1e12),
    ("tb", 1e12),
    ("ki", 1024.0),
    ("kib", 1024.0),
    ("mi", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("gi", 1_073_741_824.0),
    ("gib", 1_073_741_824.0),
    ("ti", 1_099_511_627_776.0),
    ("tib", 1_099_511_627_776.0),
];

/// A longer time is surely a mistake, and far from any overflow: 100 years.
const MAX_SECONDS: f64 = 100.0 * 365.0 * 86_400.0;

/// A whole number in `range`; `what` names it in the message.
pub(crate) fn integer<T>(token: &Token, range: RangeInclusive<T>, what: &str) -> Result<T, Error>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display,
{
    let number = token.text.parse::<u64>().ok().and_then(|number| T::try_from(number).ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        error(token, format!("`{what}` must be a whole number from {least} to {most}, not `{}`", token.text))
    })
}

/// A time as Go writes it: `500ms`, `1m30s`, `1.5h`, `1d`; `0` needs no unit.
pub(crate) fn duration(token: &Token) -> Result<Duration, Error> {
    seconds(&token.text).map(Duration::from_secs_f64).ok_or_else(|| {
        let message = format!(
            "`{}` is not a duration; write a number with a unit, such as `500ms`, `5s` or `1m30s`",
            token.text
        );
        error(token, message)
    })
}

/// The same for a time that has to be longer than 0.
pub(crate) fn positive_duration(token: &Token) -> Result<Duration, Error> {
    let duration = duration(token)?;
    if duration.is_zero() {
        return Err(error(token, format!("`{}` is too short: it must be longer than 0", token.text)));
    }
    Ok(duration)
}

/// A time, or none: `off` or 0.
pub(crate) fn time_or_off(token: &Token) -> Result<Option<Duration>, Error> {
    if token.text == "off" {
        return Ok(None);
    }
    duration(token).map(|time| (!time.is_zero()).then_some(time))
}

/// How long a request may run: a duration, or `off`, which is 0 as well.
pub(crate) fn request_timeout(token: &Token) -> Result<Duration, Error> {
    if token.text == "off" { Ok(Duration::ZERO) } else { duration(token) }
}

/// Which requests are run once more: those of the methods that are named, of the safe ones if none is, or none with `off`.
pub(crate) fn retry(call: &Call<'_>, syntax: &str) -> Result<RetryMethods, Error> {
    call.without_block(syntax)?;
    match call.args {
        [] => return Ok(RetryMethods::SAFE),
        [off] if off.text == "off" => return Ok(RetryMethods::NONE),
        _ => {}
    }
    call.args.iter().try_fold(RetryMethods::NONE, |methods, token| {
        methods.with(&token.text).ok_or_else(|| {
            let message = format!(
                "requests with `{}` cannot be run twice without asking; write some of GET, HEAD, OPTIONS, PUT and DELETE, \
                 which mean the same once and twice (RFC 9110 §9.2.2), or `off`",
                token.text
            );
            error(token, message)
        })
    })
}

/// A number of bytes: `500`, `64KiB`, `10MB`, `1.5GB`.
pub(crate) fn size(token: &Token) -> Result<u64, Error> {
    bytes(&token.text).ok_or_else(|| {
        let message = format!(
            "`{}` is not a size; write a number of bytes with a unit, such as `64KiB` or `10MB`",
            token.text
        );
        error(token, message)
    })
}

pub(crate) fn boolean(token: &Token) -> Result<bool, Error> {
    match token.text.as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        other => Err(error(token, format!("`{other}` must be `true` or `false`"))),
    }
}

/// The lane of a route: a name of letters, digits, `-`, `_` and `.`, or `off`.
pub(crate) fn lane(token: &Token) -> Result<LaneChoice, Error> {
    let name = token.text.as_str();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name {
        "off" => Ok(LaneChoice::Off),
        _ if !name.is_empty() && name.chars().all(is_plain) => Ok(LaneChoice::Named(name.to_owned())),
        _ => Err(error(
            token,
            format!("`{name}` is no name of a lane: letters, digits, `-`, `_` and `.` can be in one"),
        )),
    }
}

/// Whether the text is a status code, as `respond` and `error` tell them from texts.
pub(crate) fn is_status(text: &str) -> bool {
    text.len() == 3
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (b'1'..=b'9').contains(&text.as_bytes()[0])
}

/// `404`, or `4xx` for all from 400 to 499.
pub(crate) fn statuses(token: &Token) -> Result<(u16, u16), Error> {
    let text = token.text.as_str();
    let (first, last) = (text.replace("xx", "00"), text.replace("xx", "99"));
    match (first.parse(), last.parse()) {
        (Ok(least), Ok(most)) if is_status(&first) => Ok((least, most)),
        _ => Err(error(token, format!("`{text}` is no status; write a number such as `404`, or `4xx`"))),
    }
}

fn seconds(text: &str) -> Option<f64> {
    if text == "0" {
        return Some(0.0);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let length = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (_, factor) = DURATION_UNITS.iter().find(|(unit, _)| *unit == &after[..length])?;
        total += number * factor;
        rest = &after[length..];
    }
    (!text.is_empty() && total <= MAX_SECONDS).then_some(total)
}

fn bytes(text: &str) -> Option<u64> {
    let (number, after) = leading_number(text)?;
    let unit = after.trim().to_ascii_lowercase();
    let (_, factor) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let total = number * factor;
    // Up to here a floating-point number holds every whole one.
    (total <= 9_007_199_254_740_992.0).then_some(total as u64)
}

/// A decimal number without a sign, and what follows it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let length = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..length].parse().ok()?, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        let cases =
            [("5s", 5.0), ("1m30s", 90.0), ("500ms", 0.5), ("1d", 86_400.0), ("1.5h", 5400.0), ("0", 0.0)];
        for (text, expected) in cases {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "5", "s", "-5s", "5 s", "5sec", "1e3s", "..s", "99999999999d"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_of_both_kinds() {
        let cases = [
            ("10", 10),
            ("10MB", 10_000_000),
            ("64KiB", 65_536),
            ("1.5 gb", 1_500_000_000),
            ("2m", 2_000_000),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in ["", "MB", "-1", "10XB", "99999999TB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn status_codes_have_three_digits() {
        assert!(is_status("404"));
        assert!(!is_status("044") && !is_status("hello") && !is_status("2000"));
    }
}
