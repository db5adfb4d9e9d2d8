//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use crate::arguments::regent_binary;
use crate::peers::ServerKind;
use crate::statistics::distinct;

/// Measures Regent beside nginx + php-fpm and Apache + mod_php: wrk, keep-alive, an answer of 128 bytes, closed loop.
#[derive(Debug, Parser)]
#[command(name = "regent-bench", version)]
pub struct Options {
    /// Numbers of keep-alive connections, one table section each
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,500",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: Vec<u32>,

    /// Interleaved rounds; a figure to be published needs 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds (wrk knows no shorter unit)
    #[arg(long, default_value = "3s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Servers, in the order in which the odd rounds measure them
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "respond,native,classic,worker,fpm,apache"
    )]
    servers: Vec<ServerKind>,

    /// Threads of Regent's PHP or native module, and children of php-fpm
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub threads: u16,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/hello")]
    pub out: PathBuf,
}

impl Options {
    /// The servers to measure, each once, in the order given.
    pub fn servers(&self) -> Vec<ServerKind> {
        distinct(self.servers.iter().copied())
    }

    /// The numbers of connections, each once, in the order given.
    pub fn connections(&self) -> Vec<u32> {
        distinct(self.connections.iter().copied())
    }

    pub fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }

    /// The regent binary as an absolute path, or `None` when no chosen server needs it.
    pub fn regent_binary(&self) -> Result<Option<PathBuf>> {
        if !self.servers.iter().any(|server| server.is_regent()) {
            return Ok(None);
        }
        regent_binary(self.regent.as_deref()).map(Some)
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse() {
        Ok(seconds @ 1..=300) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected whole seconds from 1s to 300s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_published_table() {
        let options = Options::parse_from(["regent-bench"]);
        assert_eq!(options.connections(), [1, 10, 100, 500]);
        assert_eq!((options.rounds, options.duration), (5, Duration::from_secs(3)));
        assert_eq!(options.servers().len(), 6);
        assert_eq!(options.most_connections(), 500);
    }

    #[test]
    fn lists_are_comma_separated_and_repetitions_are_measured_once() {
        let options =
            Options::parse_from(["regent-bench", "--connections", "10,20,10", "--servers", "fpm,apache,fpm"]);
        assert_eq!(options.connections(), [10, 20]);
        assert_eq!(options.servers(), [ServerKind::Fpm, ServerKind::Apache]);
        assert_eq!(options.regent_binary().expect("no binary is needed"), None);
    }

    #[test]
    fn a_missing_regent_binary_says_what_to_do() {
        let options = Options::parse_from(["regent-bench", "--regent", "/nonexistent/regent"]);
        let error = options.regent_binary().expect_err("it does not exist").to_string();
        assert!(error.contains("--servers") && error.contains("cargo build"), "{error}");
    }

    #[test]
    fn durations_are_whole_seconds() {
        assert_eq!(parse_seconds("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "0s", "1.5s", "301s", "2m", "-1s"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
