//! h2load: a closed loop of HTTP/1.1 or HTTP/2 connections in one thread, each of which asks for the URLs in turn.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::figures::Figures;
use crate::interrupt::Interrupt;
use crate::supervise::run_to_end;

/// The package that has it.
pub const PACKAGE: &str = "nghttp2-client";
/// Time that h2load may take beyond the duration, to connect and to close.
const GRACE: Duration = Duration::from_secs(20);

/// Begins a command; what is asked for, and how, follows.
pub fn command(connections: u32, streams: u32) -> Command {
    let mut command = Command::new("h2load");
    command.args(["--clients", &connections.to_string(), "--threads", "1"]);
    command.args(["--max-concurrent-streams", &streams.to_string()]);
    command
}

/// Runs it for so many whole seconds, with a log of its requests in this file.
pub fn measure(
    mut command: Command,
    duration: Duration,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<Figures> {
    // It appends.
    if log.exists() {
        fs::remove_file(log)?;
    }
    command.args(["--duration", &duration.as_secs().to_string()]);
    command.arg(format!("--log-file={}", log.display()));
    let (status, output) = run_to_end(command, duration + GRACE, interrupt)?;
    ensure!(status.success(), "h2load failed ({status}):\n{output}");
    let figures = parse(&output, duration)?;
    let times = times(&fs::read_to_string(log).context("h2load wrote no log")?);
    Ok(Figures { p50_ms: quantile(&times, 0.5), p99_ms: quantile(&times, 0.99), ..figures })
}

/// Runs it until each of its connections has had one answer, with a log of its requests in this file.
pub fn measure_each(
    mut command: Command,
    connections: u32,
    most: Duration,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<Figures> {
    if log.exists() {
        fs::remove_file(log)?;
    }
    command.args(["--requests", &connections.to_string()]);
    command.arg(format!("--log-file={}", log.display()));
    let (status, output) = run_to_end(command, most, interrupt)?;
    ensure!(status.success(), "h2load failed ({status}):\n{output}");
    let times = times(&fs::read_to_string(log).context("h2load wrote no log")?);
    let last = Duration::from_micros(times.last().copied().unwrap_or_default().max(1));
    let figures = parse(&output, last)?;
    Ok(Figures { p50_ms: quantile(&times, 0.5), p99_ms: quantile(&times, 0.99), ..figures })
}

/// `requests:`, `status codes:` and `traffic:` of the summary.
fn parse(output: &str, duration: Duration) -> Result<Figures> {
    let line = |start: &str| {
        let found = output.lines().find_map(|line| line.trim_start().strip_prefix(start));
        found.with_context(|| format!("h2load printed no line `{start}`:\n{output}"))
    };
    let number = |line: &str, unit: &str| -> Result<u64> {
        let part = line.split(',').find(|part| part.trim_end().ends_with(unit));
        let text = part.and_then(|part| part.split_whitespace().next());
        let value = text.and_then(|text| text.parse().ok());
        value.with_context(|| format!("h2load's line has no number of {unit}: {line}"))
    };
    let (requests, codes) = (line("requests:")?, line("status codes:")?);
    let right = number(codes, "2xx")?;
    let failed = number(requests, "failed")? + number(requests, "timeout")?;
    let others = number(codes, "3xx")? + number(codes, "4xx")? + number(codes, "5xx")?;
    if right == 0 {
        bail!("no request was answered:\n{output}");
    }
    let body = data_bytes(line("traffic:")?);
    Ok(Figures {
        done: right,
        failed: failed + others,
        per_second: right as f64 / duration.as_secs_f64(),
        body_bytes: body.map(|bytes| bytes / right as f64),
        ..Figures::default()
    })
}

/// `… , 12.34MB (1234567) data`.
fn data_bytes(traffic: &str) -> Option<f64> {
    let part = traffic.split(',').find(|part| part.trim_end().ends_with("data"))?;
    part.split_once('(')?.1.split_once(')')?.0.parse().ok()
}

/// Of each request, in µs: the third column.
fn times(log: &str) -> Vec<u64> {
    let time = |line: &str| line.split_whitespace().nth(2)?.parse().ok();
    let mut times: Vec<u64> = log.lines().filter_map(time).collect();
    times.sort_unstable();
    times
}

fn quantile(sorted: &[u64], part: f64) -> Option<f64> {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map(|microseconds| *microseconds as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
finished in 2.00s, 5000.00 req/s, 1.20MB/s
requests: 10000 total, 10010 started, 10000 done, 9990 succeeded, 10 failed, 10 errored, 0 timeout
status codes: 9990 2xx, 0 3xx, 2 4xx, 8 5xx
traffic: 2.40MB (2516582) total, 97.66KB (100000) headers (space savings 95.00%), 1.22MB (1278720) data
                     min         max         mean         sd        +/- sd
";

    #[test]
    fn the_summary_is_read() {
        let figures = parse(OUTPUT, Duration::from_secs(2)).expect("valid");
        assert_eq!((figures.done, figures.failed), (9990, 20));
        assert!((figures.per_second - 4995.0).abs() < 1e-9);
        assert_eq!(figures.body_bytes, Some(128.0));
        assert!(parse("finished", Duration::from_secs(2)).is_err());
        assert!(parse(&OUTPUT.replace("9990 2xx", "0 2xx"), Duration::from_secs(2)).is_err());
    }

    #[test]
    fn quantiles_come_from_the_log() {
        let log: String = (1..=100).map(|number| format!("17000000\t200\t{}\n", number * 1000)).collect();
        let times = times(&log);
        assert_eq!((quantile(&times, 0.5), quantile(&times, 0.99)), (Some(50.0), Some(99.0)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
