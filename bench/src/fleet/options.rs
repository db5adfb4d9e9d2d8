//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use super::model::{Balancing, Check, Fleet, Policy, Service};
use crate::arguments::regent_binary;

/// Simulates a fleet of servers, beside four that are measured on this machine, and says what does not scale.
#[derive(Debug, Parser)]
pub struct Options {
    /// Servers
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    nodes: u16,

    /// Requests a second of all together
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rate: u32,

    /// Threads of PHP on each server
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    threads: u16,

    /// What a request takes of a thread, on the average
    #[arg(long, default_value = "1ms", value_parser = parse_time)]
    service: Duration,

    /// How different these times are
    #[arg(long, value_enum, default_value = "log-normal")]
    times: Times,

    /// Standard deviation of times that are log-normal, as a part of the mean
    #[arg(long, default_value_t = 1.0, value_parser = parse_deviation)]
    deviation: f64,

    /// How balancers choose where the page is not about that
    #[arg(long, value_enum, default_value = "least-conn")]
    policy: Policy,

    /// Balancers that know nothing of each other
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    balancers: u16,

    /// Simulated requests for each figure; the tails need many
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    pub requests: u32,

    /// Of the random numbers: equal seeds have equal figures
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Time of each measurement on this machine; 0s: nothing is measured
    #[arg(long, default_value = "5s", value_parser = parse_time)]
    pub measure: Duration,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/fleet")]
    pub out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Times {
    Fixed,
    Exponential,
    LogNormal,
}

impl Options {
    pub fn fleet(&self) -> Fleet {
        Fleet {
            nodes: self.nodes.into(),
            threads: self.threads.into(),
            service: match self.times {
                Times::Fixed => Service::Fixed(self.service),
                Times::Exponential => Service::Exponential(self.service),
                Times::LogNormal => Service::LogNormal { mean: self.service, deviation: self.deviation },
            },
            balancing: Balancing {
                policy: self.policy,
                balancers: self.balancers.into(),
                check: Check::HAPROXY,
            },
            way: Duration::from_micros(500),
            longest_wait: None,
        }
    }

    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }
}

/// A number of s, ms or us.
fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let seconds = found.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    let seconds = seconds.filter(|seconds| (0.0..=300.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected a time such as 250us, 1ms or 5s".to_owned())
}

fn parse_deviation(text: &str) -> Result<f64, String> {
    let deviation = text.parse().ok().filter(|deviation| (0.0..=10.0).contains(deviation));
    deviation.ok_or_else(|| "expected a number from 0 to 10".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_time("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse_time("0s"), Ok(Duration::ZERO));
        for bad in ["5", "-1s", "ms", "1h", "NaNs"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_published_page() {
        let options = Options::parse_from(["fleet"]);
        let fleet = options.fleet();
        assert_eq!((fleet.nodes, fleet.threads, options.rate), (100, 16, 1_000_000));
        assert!((fleet.capacity() - 1_600_000.0).abs() < 1.0);
    }
}
