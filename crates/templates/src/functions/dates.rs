//! Times, as sprig has them.

use super::Function;
use crate::arguments::{Call, string};
use crate::{go_time, times};
use gotmpl::{Result, Value};
use jiff::{SignedDuration, ZonedDateTime};

/// How `toDate` and `date` write a day without its time (`htmlDate`).
const DAY: &str = "2006-01-02";

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("now", |call| Ok(times::value(&call.run.page.now.to_zoned_datetime(times::local_zone())))),
    ("date", |call| Ok(string(go_time::format(&time(call, 1)?, &call.text(0)?)))),
    ("dateInZone", date_in_zone),
    ("date_in_zone", date_in_zone),
    ("htmlDate", |call| Ok(string(go_time::format(&time(call, 0)?, DAY)))),
    ("htmlDateInZone", |call| {
        let zone = times::zone(&call.text(1)?);
        Ok(string(go_time::format(&time(call, 0)?.with_time_zone(zone), DAY)))
    }),
    ("dateModify", date_modify),
    ("date_modify", date_modify),
    ("toDate", to_date),
    ("mustToDate", to_date),
    ("unixEpoch", |call| Ok(string(time(call, 0)?.timestamp().as_second().to_string()))),
    ("ago", |call| {
        let seconds = call.run.page.now.as_second() - time(call, 0)?.timestamp().as_second();
        Ok(string(duration_text(seconds)))
    }),
    ("duration", |call| Ok(string(duration_text(call.int(0)?)))),
];

fn time(call: &Call<'_>, index: usize) -> Result<ZonedDateTime> {
    Ok(times::of_any(call.value(index)?, call.run.page.now))
}

/// `dateInZone LAYOUT TIME ZONE`
fn date_in_zone(call: &Call<'_>) -> Result<Value> {
    let zone = times::zone(&call.text(2)?);
    Ok(string(go_time::format(&time(call, 1)?.with_time_zone(zone), &call.text(0)?)))
}

/// `dateModify DURATION TIME`
fn date_modify(call: &Call<'_>) -> Result<Value> {
    shifted(call, &time(call, 1)?, &call.text(0)?)
}

/// The time that is so much later.
pub(crate) fn shifted(call: &Call<'_>, time: &ZonedDateTime, by: &str) -> Result<Value> {
    let Some(nanoseconds) = duration(by) else {
        return call.fail(format!("`{by}` is no duration; write one such as `-1h30m`"));
    };
    match time.checked_add(SignedDuration::from_nanos(nanoseconds)) {
        Ok(time) => Ok(times::value(&time)),
        Err(_) => call.fail("the time is too far away"),
    }
}

/// `toDate LAYOUT TEXT`
fn to_date(call: &Call<'_>) -> Result<Value> {
    match go_time::parse(&call.text(0)?, &call.text(1)?, times::local_zone()) {
        Ok(time) => Ok(times::value(&time)),
        Err(reason) => call.fail(reason),
    }
}

/// Nanoseconds of a duration as Go writes it.
fn duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let letters =
            rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len() - digits);
        let unit = &rest[digits..digits + letters];
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += rest[..digits].parse::<f64>().ok()? * factor;
        rest = &rest[digits + letters..];
    }
    (total > 0.0 && total < 9e18).then_some((sign * total) as i64)
}

/// Seconds as Go writes a duration.
fn duration_text(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    match (all / 3600, all / 60 % 60, all % 60) {
        (0, 0, seconds) => format!("{sign}{seconds}s"),
        (0, minutes, seconds) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{fails, print};

    #[test]
    fn times_are_written_moved_and_read() {
        // Tests render at 2026-05-04T15:02:01Z.
        for (template, text) in [
            (r#"{{dateInZone "2006-01-02 15:04" now "UTC"}}"#, "2026-05-04 15:02"),
            (r#"{{dateInZone "15:04 -0700" now "+02:00"}}"#, "17:02 +0200"),
            (r#"{{dateInZone "2006-01-02 15:04" (dateModify "-36h" now) "UTC"}}"#, "2026-05-03 03:02"),
            (r#"{{(now.UTC).Year}} {{now.UTC.Month}} {{now.Unix}}"#, "2026 May 1777906921"),
            (r#"{{now.UTC.Format "Jan 2"}} {{(now.UTC.AddDate 0 1 0).Format "Jan 2"}}"#, "May 4 Jun 4"),
            (r#"{{now.UTC}}"#, "2026-05-04 15:02:01 +0000 UTC"),
            (r#"{{toDate "2006-01-02" "2026-05-03" | date "02.01.2006"}}"#, "03.05.2026"),
            (r#"{{unixEpoch now}} {{duration 3661}}"#, "1777906921 1h1m1s"),
            (
                r#"{{humanize "time" "Mon, 04 May 2026 13:02:01 +0000"}} {{humanize "size" "2048000"}}"#,
                "2 hours ago 2.0 MB",
            ),
        ] {
            assert_eq!(print(template), text, "{template}");
        }
        assert!(fails(r#"{{toDate "2006" "x"}}"#).contains("is not written as"));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("-1h30m"), Some(-5_400_000_000_000));
        assert_eq!(duration("1.5s"), Some(1_500_000_000));
        assert!(duration("1y").is_none() && duration("x").is_none() && duration("99999999999999h").is_none());
    }
}
