//! wrk: a closed loop of keep-alive connections in one thread.
//!
//! What to know of its figures: since wrk 4 it adds, for each latency above the expected interval (connections ÷
//! throughput), the ones that an open loop would have seen meanwhile (`stats_correct` in its stats.c), for every
//! server alike; and a request that is still open at the end is not counted, so that a server which starves some of
//! its connections shows it only in the throughput.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::load::{Errors, Latency, Load};
use crate::site::Site;
use crate::supervise::run_to_end;

const SCRIPT: &str = include_str!("wrk.lua");
const MARK: &str = "regent-bench ";

/// A latency above this counts as a time-out: the soft real-time limit of the scenarios.
pub const TIMEOUT_SECONDS: u64 = 3;

/// Time that wrk may take beyond the duration, to connect and to close.
const GRACE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Wrk {
    script: PathBuf,
    duration: Duration,
}

impl Wrk {
    /// Each measurement will take `duration`, whole seconds.
    pub fn prepare(site: &Site, duration: Duration) -> Result<Self> {
        let script = site.path().join("wrk.lua");
        fs::write(&script, SCRIPT)?;
        Ok(Self { script, duration })
    }

    /// From the first line of `wrk --version`, `wrk VERSION [epoll] Copyright …`; it exits with 1.
    pub fn version(&self) -> String {
        let output = Command::new("wrk").arg("--version").output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.split(" [").next().filter(|version| version.starts_with("wrk")).unwrap_or("wrk").to_owned()
    }

    pub fn measure(&self, port: u16, path: &str, connections: u32, interrupt: &Interrupt) -> Result<Load> {
        self.run(port, path, connections, self.duration, interrupt)
    }

    /// A second of load whose result is not wanted: code paths, caches and pools get warm.
    pub fn warm_up(&self, port: u16, path: &str, connections: u32, interrupt: &Interrupt) -> Result<()> {
        self.run(port, path, connections, Duration::from_secs(1), interrupt).map(drop)
    }

    fn run(
        &self,
        port: u16,
        path: &str,
        connections: u32,
        duration: Duration,
        interrupt: &Interrupt,
    ) -> Result<Load> {
        let mut command = Command::new("wrk");
        command
            .args(["--threads", "1", "--latency"])
            .args(["--connections", &connections.to_string()])
            .args(["--duration", &format!("{}s", duration.as_secs())])
            .args(["--timeout", &format!("{TIMEOUT_SECONDS}s")])
            .arg("--script")
            .arg(&self.script)
            .arg(format!("http://127.0.0.1:{port}{path}"));
        let (status, output) = run_to_end(command, duration + GRACE, interrupt)?;
        if !status.success() {
            bail!("wrk failed ({status}):\n{output}");
        }
        parse(&output)
    }
}

/// The line that wrk.lua prints.
#[derive(Deserialize)]
struct Line {
    duration: u64,
    requests: u64,
    bytes: u64,
    latency: LatencyMicroseconds,
    errors: ErrorCounts,
}

#[derive(Deserialize)]
struct LatencyMicroseconds {
    mean: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

#[derive(Deserialize)]
struct ErrorCounts {
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

fn parse(output: &str) -> Result<Load> {
    let json = output
        .lines()
        .find_map(|line| line.strip_prefix(MARK))
        .with_context(|| format!("wrk printed no result:\n{output}"))?;
    let line: Line =
        serde_json::from_str(json).with_context(|| format!("wrk's result is not as expected: {json}"))?;
    let duration_s = line.duration as f64 / 1e6;
    if duration_s <= 0.0 {
        bail!("wrk's result has no duration: {json}");
    }
    let ms = |microseconds: u64| microseconds as f64 / 1e3;
    let Line { latency, errors, .. } = line;
    Ok(Load {
        duration_s,
        requests: line.requests,
        bytes: line.bytes,
        throughput: line.requests as f64 / duration_s,
        latency_ms: Latency {
            mean: ms(latency.mean),
            p50: ms(latency.p50),
            p90: ms(latency.p90),
            p99: ms(latency.p99),
            p999: ms(latency.p999),
            max: ms(latency.max),
        },
        errors: Errors {
            connect: errors.connect,
            read: errors.read,
            write: errors.write,
            status: errors.status,
            timeout: errors.timeout,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"Running 1s test @ http://127.0.0.1:8080/hello.php
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   362.59us  191.44us   5.03ms   91.51%
Requests/sec:  25961.36
regent-bench {"duration":2000000,"requests":50000,"bytes":15000000,"latency":{"mean":362,"p50":330,"p90":520,"p99":1010,"p999":2200,"max":5030},"errors":{"connect":1,"read":2,"write":3,"status":4,"timeout":5}}
"#;

    #[test]
    fn the_marked_line_is_read_in_our_units() {
        let load = parse(OUTPUT).expect("valid");
        assert_eq!((load.requests, load.bytes), (50_000, 15_000_000));
        assert!((load.throughput - 25_000.0).abs() < 1e-9);
        assert_eq!(
            load.latency_ms,
            Latency { mean: 0.362, p50: 0.33, p90: 0.52, p99: 1.01, p999: 2.2, max: 5.03 }
        );
        assert_eq!(load.errors, Errors { connect: 1, read: 2, write: 3, status: 4, timeout: 5 });
        assert_eq!(load.errors.total(), 15);
    }

    #[test]
    fn output_without_a_result_is_an_error_that_shows_it() {
        let error = parse("unable to connect").expect_err("no result").to_string();
        assert!(error.contains("unable to connect"), "{error}");
        assert!(parse("regent-bench {}").is_err());
        assert!(parse(&OUTPUT.replace("2000000", "0")).is_err());
    }
}
