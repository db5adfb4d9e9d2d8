//! An outcome for people.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use super::outcome::{Failures, Outcome};

/// The time within which an answer is of use ("A. Concurrency sweep" of the scenarios).
const LIMIT: Duration = Duration::from_secs(3);

/// A few lines: throughput, percentiles, what failed, and whether the generator itself kept up.
pub fn summary(outcome: &Outcome) -> String {
    let mut text = String::new();
    write_summary(outcome, &mut text).expect("invariant: a String takes all");
    text
}

fn write_summary(outcome: &Outcome, text: &mut String) -> fmt::Result {
    let latencies = outcome.latencies();
    row(text, "requests", format_args!("{} in {:.2} s", outcome.requests(), outcome.duration_s))?;
    row(text, "right", format_args!("{} ({:.0} a second)", outcome.right(), outcome.throughput()))?;
    for (name, quantile) in [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        row(text, name, milliseconds(latencies.quantile_ms(quantile)))?;
    }
    row(text, "mean", milliseconds(latencies.mean_ms()))?;
    row(text, "max", milliseconds(latencies.max_ms()))?;
    row(text, "misses", format_args!("{} (no right answer within {LIMIT:?})", outcome.misses(LIMIT)))?;
    write_failures(outcome, text)?;
    row(text, "connections", format_args!("{} at most", outcome.most_connections))?;
    write_generator(outcome, text)
}

fn write_failures(outcome: &Outcome, text: &mut String) -> fmt::Result {
    let Failures { connect, broken, wrong, timeout, left } = outcome.failures();
    let failures =
        [("connect", connect), ("broken", broken), ("wrong", wrong), ("timeout", timeout), ("left", left)];
    for (name, count) in failures.into_iter().filter(|(_, count)| *count > 0) {
        row(text, name, count)?;
    }
    for (status, latencies) in outcome.kinds.values().flat_map(|kind| &kind.statuses) {
        row(text, format_args!("status {status}"), latencies.count())?;
    }
    Ok(())
}

fn write_generator(outcome: &Outcome, text: &mut String) -> fmt::Result {
    let share = outcome.generator_cores().unwrap_or(0.0) * 100.0;
    let each = outcome.generator_us_per_request().unwrap_or(0.0);
    row(text, "lag p99", milliseconds(outcome.lag.quantile_ms(0.99)))?;
    row(text, "generator", format_args!("{share:.0} % of a core, {each:.1} us a request"))
}

fn row(text: &mut String, name: impl Display, value: impl Display) -> fmt::Result {
    // Formatted apart: arguments that are not strings ignore the width.
    let name = name.to_string();
    writeln!(text, "{name:<12} {value}")
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3} ms"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::generator::outcome::KindOutcome;

    #[test]
    fn failures_are_named_and_zeros_are_not() {
        let mut kind = KindOutcome::default();
        kind.right.record(Duration::from_millis(2));
        kind.statuses.entry(503).or_default().record(Duration::from_millis(1));
        kind.failures.timeout = 3;
        let kinds = BTreeMap::from([("all".to_owned(), kind)]);
        let text = summary(&Outcome { duration_s: 1.0, right_in_time: 1, kinds, ..Outcome::default() });
        for line in [
            "requests     5 in 1.00 s",
            "right        1 (1 a second)",
            "status 503   1",
            "timeout      3",
            "p99          2.00",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("broken"), "{text}");
    }

    #[test]
    fn nothing_at_all_has_a_summary() {
        assert!(summary(&Outcome::default()).contains("p50          -"));
    }
}
