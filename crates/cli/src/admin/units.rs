//! Figures as people read them.

use std::time::Duration;

/// `850 µs`, `3.2 ms`, `1.5 s`, `2 min 5 s`, `3 h 4 min`, `1 d 2 h`
pub fn duration(duration: Duration) -> String {
    let (seconds, micros) = (duration.as_secs(), duration.as_micros());
    match seconds {
        0 if micros == 0 => "0".to_owned(),
        0 if micros < 1_000 => format!("{micros} µs"),
        0 if micros < 10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        0 => format!("{} ms", micros / 1_000),
        1..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Events in a time, for each second.
pub fn rate(events: u64, within: Duration) -> String {
    let rate = events as f64 / within.as_secs_f64().max(0.001);
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// What comes from requests must not move a terminal's cursor, or turn the direction of a line.
pub fn printable(text: &str) -> String {
    let harmless = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_fits() {
        for (micros, text) in [
            (0, "0"),
            (850, "850 µs"),
            (3_200, "3.2 ms"),
            (47_900, "47 ms"),
            (1_500_000, "1.5 s"),
            (59_000_000, "59 s"),
            (125_000_000, "2 min 5 s"),
            (93_784_000_000, "1 d 2 h"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn rates_are_for_each_second() {
        assert_eq!(rate(0, Duration::from_secs(10)), "0");
        assert_eq!(rate(5, Duration::from_secs(10)), "0.5");
        assert_eq!(rate(12_345, Duration::from_secs(10)), "1234");
    }

    #[test]
    fn what_moves_a_cursor_is_replaced() {
        assert_eq!(printable("/a\x1b[2J\n\u{202e}é"), "/a\u{fffd}[2J\u{fffd}\u{fffd}é");
    }
}
