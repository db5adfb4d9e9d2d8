//! oha: a closed loop of HTTP/3 connections in one thread, each with a socket of its own. It is installed by
//! `cargo install oha --features http3`; h2load, as distributions build it, has no HTTP/3.
//!
//! What to know of it: its connections are not closed at the end but left to the server's idle time-out, so that its own
//! total, and what it counts a second of, has that in it. Requests a second are counted here by the duration.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::figures::Figures;
use crate::interrupt::Interrupt;
use crate::supervise::run_to_end;

/// Time that it may take beyond the duration, to connect and until the idle time-out.
const GRACE: Duration = Duration::from_secs(45);
/// Under way when the time was over: no failure.
const AT_THE_END: &str = "aborted due to deadline";

/// Asks for one URL of this machine by so many connections, with one request at once on each.
pub fn measure(
    program: &Path,
    connections: u32,
    url: &str,
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<Figures> {
    let mut command = Command::new(program);
    command.args(["--no-tui", "--output-format", "json", "--http-version", "3", "--insecure", "--ipv4"]);
    command.args(["--disable-compression", "--worker-threads", "1", "-c", &connections.to_string()]);
    command.args(["-z", &format!("{}s", duration.as_secs()), url]);
    let (status, output) = run_to_end(command, duration + GRACE, interrupt)?;
    ensure!(status.success(), "oha failed ({status}); was it built with its feature http3?\n{output}");
    parse(&output, duration)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    summary: Summary,
    latency_percentiles: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    size_per_request: Option<f64>,
}

fn parse(output: &str, duration: Duration) -> Result<Figures> {
    let output: Output = serde_json::from_str(output)
        .with_context(|| format!("oha's result is not as expected:\n{output}"))?;
    let with_status = |is_meant: fn(&str) -> bool| -> u64 {
        let meant = output.status_code_distribution.iter().filter(|(status, _)| is_meant(status));
        meant.map(|(_, number)| number).sum()
    };
    let done = with_status(|status| status.starts_with('2'));
    let errors = output.error_distribution.iter().filter(|(error, _)| *error != AT_THE_END);
    let failed =
        with_status(|status| !status.starts_with('2')) + errors.map(|(_, number)| number).sum::<u64>();
    if done == 0 {
        bail!("no request was answered: {:?}", output.error_distribution);
    }
    let milliseconds =
        |percentile: &str| output.latency_percentiles.get(percentile).copied().flatten().map(|s| s * 1e3);
    Ok(Figures {
        done,
        failed,
        per_second: done as f64 / duration.as_secs_f64(),
        p50_ms: milliseconds("p50"),
        p99_ms: milliseconds("p99"),
        body_bytes: output.summary.size_per_request,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"{
        "summary": {"successRate": 1.0, "total": 32.1, "requestsPerSec": 31.0, "totalData": 128000, "sizePerRequest": 128},
        "latencyPercentiles": {"p50": 0.0005, "p99": 0.002, "p99.99": null},
        "statusCodeDistribution": {"200": 990, "503": 10},
        "errorDistribution": {"aborted due to deadline": 100, "HTTP3 connection: gone": 3}
    }"#;

    #[test]
    fn requests_are_counted_by_the_duration_and_what_was_under_way_has_not_failed() {
        let figures = parse(OUTPUT, Duration::from_secs(2)).expect("valid");
        assert_eq!((figures.done, figures.failed), (990, 13));
        assert!((figures.per_second - 495.0).abs() < 1e-9);
        assert_eq!((figures.p50_ms, figures.p99_ms), (Some(0.5), Some(2.0)));
        assert_eq!(figures.body_bytes, Some(128.0));
    }

    #[test]
    fn no_answer_is_an_error_that_says_why() {
        let nothing = OUTPUT.replace("\"200\": 990, ", "");
        let error = parse(&nothing, Duration::from_secs(2)).expect_err("none is right").to_string();
        assert!(error.contains("HTTP3 connection: gone"), "{error}");
        assert!(parse("Summary:", Duration::from_secs(2)).is_err());
    }
}
