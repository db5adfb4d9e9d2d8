//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;

use super::case::{Case, Exchange};
use super::server::Proxy;
use crate::arguments::{parse_seconds, regent_binary};
use crate::statistics::distinct;

/// Measures `reverse_proxy` beside other proxies: requests by h2load.
#[derive(Debug, Parser)]
pub struct Options {
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_value = "1,64,500",
          value_parser = clap::value_parser!(u32).range(1..=4_000))]
    connections: Vec<u32>,

    /// Interleaved rounds; a figure to be published needs 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds
    #[arg(long, default_value = "5s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Servers, in the order in which the odd rounds measure them; `caddy` needs --caddy
    #[arg(long, value_delimiter = ',', value_enum, default_value = "regent,nginx")]
    servers: Vec<Proxy>,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// A Caddy, which is measured too
    #[arg(long)]
    caddy: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/proxy")]
    pub out: PathBuf,
}

impl Options {
    /// Each once, in the order given; Caddy is one of them if there is one.
    pub fn servers(&self) -> Vec<Proxy> {
        let given = self.caddy.iter().map(|_| Proxy::Caddy);
        distinct(self.servers.iter().copied().chain(given))
    }

    pub fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }

    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }

    pub fn caddy_binary(&self) -> Result<PathBuf> {
        let caddy = self.caddy.as_ref().filter(|caddy| caddy.is_file());
        ensure!(caddy.is_some(), "there is no Caddy: name its binary with --caddy, or leave caddy out");
        Ok(std::fs::canonicalize(caddy.expect("invariant: it was looked at"))?)
    }

    pub fn cases(&self) -> Vec<Case> {
        let connections = distinct(self.connections.iter().copied());
        let of = |exchange| connections.iter().map(move |&connections| Case { connections, exchange });
        Exchange::ALL.into_iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_published_page() {
        let options = Options::parse_from(["proxy"]);
        assert_eq!(options.servers(), [Proxy::Regent, Proxy::Nginx]);
        assert_eq!(options.cases().len(), 9);
        assert!(options.caddy_binary().is_err());
    }

    #[test]
    fn a_caddy_that_is_given_is_measured() {
        let options = Options::parse_from(["proxy", "--caddy", "/bin/true", "--servers", "nginx,caddy"]);
        assert_eq!(options.servers(), [Proxy::Nginx, Proxy::Caddy]);
    }
}
