//! Sizes and times as people say them, worded as Go's go-humanize does.

/// `83 MB`.
pub(crate) fn bytes(count: u64) -> String {
    in_units(count, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// `79 MiB`.
pub fn binary_bytes(count: u64) -> String {
    in_units(count, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn in_units(count: u64, base: f64, units: [&str; 7]) -> String {
    if count < 10 {
        return format!("{count} B");
    }
    let exponent = ((count as f64).ln() / base.ln()).floor();
    let value = (count as f64 / base.powf(exponent) * 10.0 + 0.5).floor() / 10.0;
    let unit = units[(exponent as usize).min(units.len() - 1)];
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// `2 weeks ago`, `3 days from now`: a time that is so many seconds after now.
pub(crate) fn relative(seconds: i64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const WEEK: u64 = 7 * DAY;
    const MONTH: u64 = 30 * DAY;
    const YEAR: u64 = 12 * MONTH;
    let label = if seconds > 0 { "from now" } else { "ago" };
    let distance = seconds.unsigned_abs();
    let of = |unit: u64, name: &str| format!("{} {name} {label}", distance / unit);
    match distance {
        0 => "now".to_owned(),
        1 => format!("1 second {label}"),
        d if d < MINUTE => of(1, "seconds"),
        d if d < 2 * MINUTE => format!("1 minute {label}"),
        d if d < HOUR => of(MINUTE, "minutes"),
        d if d < 2 * HOUR => format!("1 hour {label}"),
        d if d < DAY => of(HOUR, "hours"),
        d if d < 2 * DAY => format!("1 day {label}"),
        d if d < WEEK => of(DAY, "days"),
        d if d < 2 * WEEK => format!("1 week {label}"),
        d if d < MONTH => of(WEEK, "weeks"),
        d if d < 2 * MONTH => format!("1 month {label}"),
        d if d < YEAR => of(MONTH, "months"),
        d if d < 18 * MONTH => format!("1 year {label}"),
        d if d < 2 * YEAR => format!("2 years {label}"),
        d if d < 37 * YEAR => of(YEAR, "years"),
        _ => format!("a long while {label}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (count, text) in
            [(0, "0 B"), (9, "9 B"), (999, "999 B"), (2_048_000, "2.0 MB"), (82_854_982, "83 MB")]
        {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times() {
        for (seconds, text) in [
            (0, "now"),
            (-1, "1 second ago"),
            (-59, "59 seconds ago"),
            (3 * 86_400, "3 days from now"),
            (-15 * 86_400, "2 weeks ago"),
            (-400 * 86_400, "1 year ago"),
        ] {
            assert_eq!(relative(seconds), text);
        }
    }
}
