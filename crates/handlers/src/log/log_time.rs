//! Times in logs, in the formats that Caddy names or in layouts of Go's. All of them are in UTC.

use regent_config::LogTime;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::macros::format_description;

/// The time, and whether it is a number.
pub fn written(format: &LogTime, time: SystemTime) -> (String, bool) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    match format {
        LogTime::UnixSeconds => (format!("{:.6}", since.as_secs_f64()), true),
        LogTime::UnixMilliseconds => (format!("{:.3}", since.as_secs_f64() * 1e3), true),
        LogTime::UnixNanoseconds => (since.as_nanos().to_string(), true),
        LogTime::Layout(layout) => (regent_templates::utc_in_layout(time, layout), false),
        _ => (text(format, time.into()), false),
    }
}

fn text(format: &LogTime, time: OffsetDateTime) -> String {
    let wall = format_description!("[year]/[month]/[day] [hour]:[minute]:[second]");
    let wall_milli =
        format_description!("[year]/[month]/[day] [hour]:[minute]:[second].[subsecond digits:3]");
    let wall_nano = format_description!("[year]/[month]/[day] [hour]:[minute]:[second].[subsecond digits:9]");
    let rfc3339 = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let milli = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let nano = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z");
    let common = format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
    let written = match format {
        LogTime::Iso8601 => time.format(milli),
        LogTime::Rfc3339 => time.format(rfc3339),
        LogTime::Rfc3339Nanoseconds => time.format(nano),
        LogTime::Wall => time.format(wall),
        LogTime::WallNanoseconds => time.format(wall_nano),
        LogTime::CommonLog => time.format(common),
        _ => time.format(wall_milli),
    };
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn formats_of_caddy() {
        let time = UNIX_EPOCH + Duration::from_nanos(1_500_000_000_250_000_001);
        for (format, expected) in [
            (LogTime::UnixSeconds, "1500000000.250000"),
            (LogTime::UnixMilliseconds, "1500000000250.000"),
            (LogTime::UnixNanoseconds, "1500000000250000001"),
            (LogTime::Iso8601, "2017-07-14T02:40:00.250Z"),
            (LogTime::Rfc3339, "2017-07-14T02:40:00Z"),
            (LogTime::Rfc3339Nanoseconds, "2017-07-14T02:40:00.250000001Z"),
            (LogTime::Wall, "2017/07/14 02:40:00"),
            (LogTime::WallMilliseconds, "2017/07/14 02:40:00.250"),
            (LogTime::WallNanoseconds, "2017/07/14 02:40:00.250000001"),
            (LogTime::CommonLog, "14/Jul/2017:02:40:00 +0000"),
            (LogTime::Layout("Jan _2 2006 15:04:05.000 Z07:00".into()), "Jul 14 2017 02:40:00.250 Z"),
        ] {
            assert_eq!(written(&format, time).0, expected, "{format:?}");
        }
    }
}
