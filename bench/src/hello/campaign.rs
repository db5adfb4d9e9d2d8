//! The measurements of a run: which server at which number of connections, in what order.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::hello::Options;
use crate::interrupt::Interrupt;
use crate::load::Load;
use crate::load::wrk::Wrk;
use crate::peers::{Script, Server, ServerKind};
use crate::progress::Progress;
use crate::usage::{Snapshot, Usage};

/// Pause after each load, so that closed connections are gone before the next.
const SETTLE: Duration = Duration::from_millis(200);
/// Rough time of the checks and counters around each load.
const OVERHEAD: Duration = Duration::from_millis(300);
/// How far the mean size of the answers may be from that of the right one.
const SIZE_TOLERANCE: f64 = 0.01;

/// One server, one number of connections, one round.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub server: ServerKind,
    pub connections: u32,
    /// From 1.
    pub round: u32,
    pub load: Load,
    pub usage: Usage,
}

#[derive(Debug)]
pub struct Campaign<'a> {
    options: &'a Options,
    wrk: &'a Wrk,
    interrupt: &'a Interrupt,
}

impl<'a> Campaign<'a> {
    pub fn new(options: &'a Options, wrk: &'a Wrk, interrupt: &'a Interrupt) -> Self {
        Self { options, wrk, interrupt }
    }

    fn expected_duration(&self, servers: usize) -> Duration {
        let measurements = self.measurements(servers) as u32;
        (self.options.duration + SETTLE + OVERHEAD) * measurements + Duration::from_secs(servers as u64)
    }

    /// All samples in the order in which they were measured. An error when a server is not what it should be.
    pub fn run(&self, servers: &mut [Server], progress: &mut Progress) -> Result<Vec<Sample>> {
        for server in servers.iter() {
            eprintln!("warming up {}", server.label());
            let (port, path) = (server.address().port(), server.target(Script::Hello)?);
            self.wrk.warm_up(port, &path, self.options.most_connections(), self.interrupt)?;
            sleep(SETTLE);
        }
        progress.begin(self.measurements(servers.len()), self.expected_duration(servers.len()));
        let mut samples = Vec::new();
        for round in 1..=self.options.rounds {
            for connections in self.options.connections() {
                for index in order(servers.len(), round) {
                    let sample = self.measure(&mut servers[index], connections, round)?;
                    progress.step(&describe(&sample), self.options.duration + SETTLE + OVERHEAD);
                    samples.push(sample);
                    sleep(SETTLE);
                }
            }
        }
        Ok(samples)
    }

    fn measurements(&self, servers: usize) -> usize {
        servers * self.options.connections().len() * self.options.rounds as usize
    }

    fn measure(&self, server: &mut Server, connections: u32, round: u32) -> Result<Sample> {
        server.check()?;
        let leaders = server.leaders();
        let before = Snapshot::of(&leaders);
        let load = self
            .wrk
            .measure(server.address().port(), &server.target(Script::Hello)?, connections, self.interrupt)
            .with_context(|| format!("{} with {connections} connections", server.label()))?;
        let usage = Usage::since(&before, &leaders, load.requests);
        check_sizes(server, &load)?;
        let kind = server.contender().built_in().context("only built-in servers are measured")?;
        Ok(Sample { server: kind, connections, round, load, usage })
    }
}

/// A B C D in odd rounds, D C B A in even ones: whatever drifts hits all servers alike.
fn order(servers: usize, round: u32) -> Vec<usize> {
    let forward = 0..servers;
    if round % 2 == 1 { forward.collect() } else { forward.rev().collect() }
}

/// The generator does not look into the bodies; answers of another size than the checked one give them away.
fn check_sizes(server: &Server, load: &Load) -> Result<()> {
    if load.requests == 0 || load.errors.total() > 0 {
        return Ok(());
    }
    let mean = load.bytes as f64 / load.requests as f64;
    let right = server.hello_bytes() as f64;
    ensure!(
        (mean - right).abs() <= right * SIZE_TOLERANCE,
        "{} answered with {mean:.0} bytes on average under load, but the right answer has {right:.0}",
        server.label()
    );
    Ok(())
}

fn describe(sample: &Sample) -> String {
    let Sample { server, connections, round, load, .. } = sample;
    let errors = match load.errors.total() {
        0 => String::new(),
        errors => format!(", {errors} errors"),
    };
    format!(
        "round {round}, connections {connections}, {server}: {:.0} requests/s, p99 {:.2} ms{errors}",
        load.throughput, load.latency_ms.p99
    )
}

#[cfg(test)]
impl Sample {
    /// A made-up sample for the tests of other modules.
    pub fn made_up(server: ServerKind, connections: u32, round: u32, throughput: f64, p99: f64) -> Self {
        let usage = Usage {
            cpu_us_per_request: Some(12.0),
            context_switches_per_request: Some(0.25),
            memory_bytes: 50 << 20,
            processes: 2,
            threads: 12,
            listen_overflows: 0,
            listen_drops: 0,
        };
        Self { server, connections, round, load: Load::sample(throughput, p99), usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_turns_with_each_round() {
        assert_eq!(order(4, 1), [0, 1, 2, 3]);
        assert_eq!(order(4, 2), [3, 2, 1, 0]);
        assert_eq!(order(4, 3), [0, 1, 2, 3]);
    }

    #[test]
    fn a_progress_line_tells_what_was_measured_and_what_failed() {
        let mut sample = Sample::made_up(ServerKind::Fpm, 100, 2, 25_700.0, 5.6);
        assert_eq!(
            describe(&sample),
            "round 2, connections 100, nginx + php-fpm: 25700 requests/s, p99 5.60 ms"
        );
        sample.load.errors.status = 7;
        assert!(describe(&sample).ends_with(", 7 errors"));
    }
}
