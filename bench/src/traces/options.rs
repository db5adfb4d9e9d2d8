//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use crate::arguments::{parse_seconds, regent_binary};

/// Measures what traces take of a request: requests by h2load.
#[derive(Debug, Parser)]
pub struct Options {
    /// Number of connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,

    /// Interleaved rounds: many short ones, since a machine differs more from one to the next than traces take
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds
    #[arg(long, default_value = "2s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Threads of PHP
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub threads: u16,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/traces")]
    pub out: PathBuf,
}

impl Options {
    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }
}
