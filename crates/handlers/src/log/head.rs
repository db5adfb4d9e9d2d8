//! How a line of an access log begins: with what every line of every log has.

use crate::log::visible;
use regent_config::LogKeys;
use std::time::Duration;

const MESSAGE: &str = "handled request";

/// All of it that is known before there is a request.
#[derive(Debug, PartialEq)]
pub(super) struct Head {
    start: &'static str,
    first: Part,
    second: Part,
    /// Behind them, up to the fields of the request.
    rest: String,
}

/// What differs from line to line, with what stands around it. Neither if lines do not have it.
#[derive(Debug, PartialEq)]
struct Part {
    what: What,
    before: String,
    behind: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Level,
    Time,
    Nothing,
}

impl Head {
    /// Up to the first field: `{"level":"info","ts":1.5,"logger":"http.log.access","msg":"handled request"`.
    pub fn json(keys: &LogKeys, logger: &str) -> Self {
        let is_first = |others: &[&String]| others.iter().all(|other| other.is_empty());
        let key = |key: &str, is_first: bool| format!("{}{}:", if is_first { "" } else { "," }, quoted(key));
        let LogKeys { level, time, name, message } = keys;
        let part = |of: &str, what, before: String, behind| match of.is_empty() {
            true => Part { what: What::Nothing, before: String::new(), behind: "" },
            false => Part { what, before, behind },
        };
        let mut rest = String::new();
        if !name.is_empty() {
            rest = key(name, is_first(&[level, time])) + &quoted(logger);
        }
        if !message.is_empty() {
            rest += &(key(message, is_first(&[level, time, name])) + &quoted(MESSAGE));
        }
        Self {
            start: "{",
            first: part(level, What::Level, format!("{}\"", key(level, true)), "\""),
            second: part(time, What::Time, key(time, is_first(&[level])), ""),
            rest,
        }
    }

    /// Up to the first field, with tabs between: time, level, logger, message, and a brace.
    pub fn console(keys: &LogKeys, logger: &str) -> Self {
        let part = |of: &str, what| match of.is_empty() {
            true => Part { what: What::Nothing, before: String::new(), behind: "" },
            false => Part { what, before: String::new(), behind: "\t" },
        };
        let mut rest = String::new();
        for (key, text) in [(&keys.name, logger), (&keys.message, MESSAGE)] {
            if !key.is_empty() {
                rest += &format!("{text}\t");
            }
        }
        Self {
            start: "",
            first: part(&keys.time, What::Time),
            second: part(&keys.level, What::Level),
            rest: rest + "{",
        }
    }

    /// `time`: in pieces.
    pub fn write(&self, level: &str, time: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(self.start.as_bytes());
        for part in [&self.first, &self.second] {
            out.extend_from_slice(part.before.as_bytes());
            match part.what {
                What::Level => out.extend_from_slice(level.as_bytes()),
                What::Time => time.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes())),
                What::Nothing => {}
            }
            out.extend_from_slice(part.behind.as_bytes());
        }
        out.extend_from_slice(self.rest.as_bytes());
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    visible::write_json(&text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// As Go writes it (time/time.go, `Duration.String`): the largest unit that is not 0, with what is below behind a point.
pub(super) fn go_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let (unit, name) = match nanoseconds {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => return go_seconds(duration),
    };
    format!("{}{name}", decimal(nanoseconds, unit))
}

fn go_seconds(duration: Duration) -> String {
    let (seconds, minutes) = (duration.as_secs() % 60, duration.as_secs() / 60);
    let below = u128::from(seconds) * 1_000_000_000 + u128::from(duration.subsec_nanos());
    let seconds = decimal(below, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// A number in units, without zeros at its end.
fn decimal(number: u128, unit: u128) -> String {
    let digits = unit.ilog10() as usize;
    let below = format!("{:0digits$}", number % unit);
    match below.trim_end_matches('0') {
        "" => format!("{}", number / unit),
        below => format!("{}.{below}", number / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(level: &str, time: &str, name: &str, message: &str) -> LogKeys {
        let [level, time, name, message] = [level, time, name, message].map(str::to_owned);
        LogKeys { level, time, name, message }
    }

    fn written(head: &Head) -> String {
        let mut out = Vec::new();
        head.write("info", &["1", ".", "5"], &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_no_name_is_left_out() {
        let json = |keys: &LogKeys| written(&Head::json(keys, "a"));
        let whole = r#"{"level":"info","ts":1.5,"logger":"a","msg":"handled request""#;
        assert_eq!(json(&LogKeys::default()), whole);
        assert_eq!(json(&keys("", "", "", "")), "{");
        assert_eq!(json(&keys("", "a\"b", "", "")), r#"{"a\"b":1.5"#);
        assert_eq!(json(&keys("", "", "n", "m")), r#"{"n":"a","m":"handled request""#);
        assert_eq!(json(&keys("l", "", "", "m")), r#"{"l":"info","m":"handled request""#);
        let console = |keys: &LogKeys| written(&Head::console(keys, "a"));
        assert_eq!(console(&LogKeys::default()), "1.5\tinfo\ta\thandled request\t{");
        assert_eq!(console(&keys("", "t", "", "m")), "1.5\thandled request\t{");
        assert_eq!(console(&keys("", "", "", "")), "{");
    }

    #[test]
    fn durations_are_written_as_by_go() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (5_000_000, "5ms"),
            (1_234_567, "1.234567ms"),
            (1_000_000_000, "1s"),
            (61_500_000_000, "1m1.5s"),
            (3_600_000_000_000, "1h0m0s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanoseconds)), text);
        }
    }
}
