//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use super::case::Case;
use super::server::Keeper;
use crate::apps::checkout::Checkout;
use crate::arguments::{parse_seconds, regent_binary};
use crate::statistics::distinct;

/// Measures WordPress for visitors from Regent's cache, beside nginx's: requests by h2load.
#[derive(Debug, Parser)]
pub struct Options {
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_value = "1,32",
          value_parser = clap::value_parser!(u32).range(1..=4_000))]
    connections: Vec<u32>,

    /// Interleaved rounds; a figure to be published needs 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds
    #[arg(long, default_value = "5s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Servers, in the order in which the odd rounds measure them
    #[arg(long, value_delimiter = ',', value_enum, default_value = "uncached,memory,disk,nginx,nginx-cache")]
    servers: Vec<Keeper>,

    /// Threads of Regent's PHP, and children of php-fpm
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub threads: u16,

    /// Connections that ask at once for a page that is not there yet
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..=4_000))]
    pub stampede: u32,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// Regent's sources, whose tools/fetch-app brings WordPress; by default those that this program was built of
    #[arg(long, value_name = "DIRECTORY")]
    checkout: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/cache")]
    pub out: PathBuf,
}

impl Options {
    /// Each once, in the order given.
    pub fn servers(&self) -> Vec<Keeper> {
        distinct(self.servers.iter().copied())
    }

    pub fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1).max(self.stampede)
    }

    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }

    pub fn checkout(&self) -> Result<Checkout> {
        Checkout::find(self.checkout.as_deref())
    }

    pub fn cases(&self) -> Vec<Case> {
        distinct(self.connections.iter().copied())
            .into_iter()
            .map(|connections| Case { connections })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_published_page() {
        let options = Options::parse_from(["cache"]);
        assert_eq!(options.servers().len(), 5);
        assert_eq!(options.cases(), [Case { connections: 1 }, Case { connections: 32 }]);
        assert_eq!(options.most_connections(), 500);
    }

    #[test]
    fn what_is_given_is_measured() {
        let options =
            Options::parse_from(["cache", "--servers", "memory,uncached,memory", "--connections", "8,8"]);
        assert_eq!(options.servers(), [Keeper::Memory, Keeper::Uncached]);
        assert_eq!(options.cases(), [Case { connections: 8 }]);
    }
}
