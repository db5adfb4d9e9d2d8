//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;

use super::case::{Answer, Case, Handshake, Load, Protocol};
use super::server::Front;
use crate::arguments::{parse_seconds, regent_binary};
use crate::statistics::distinct;

/// Bytes of the answers that are compressed.
const LARGE: u32 = 100_000;
/// Connections that carry them.
const LARGE_CONNECTIONS: u32 = 20;
/// Requests at once on a connection of HTTP/2 with many.
const STREAMS: u32 = 10;

/// Measures TLS, HTTP/2, HTTP/3 and compression: handshakes by openssl, requests by h2load and oha.
#[derive(Debug, Parser)]
pub struct Options {
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_value = "1,100,500",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: Vec<u32>,

    /// Interleaved rounds; a figure to be published needs 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds
    #[arg(long, default_value = "5s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Servers, in the order in which the odd rounds measure them; `caddy` needs --caddy
    #[arg(long, value_delimiter = ',', value_enum, default_value = "worker,classic,nginx")]
    servers: Vec<Front>,

    /// Threads of Regent's PHP, and children of php-fpm
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub threads: u16,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// A Caddy, which is measured in front of php-fpm
    #[arg(long)]
    pub caddy: Option<PathBuf>,

    /// An oha with HTTP/3 (`cargo install oha --features http3`); without it HTTP/3 is left out
    #[arg(long)]
    oha: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/front")]
    pub out: PathBuf,
}

impl Options {
    /// Each once, in the order given; Caddy is one of them if there is one.
    pub fn servers(&self) -> Vec<Front> {
        let given = self.caddy.iter().map(|_| Front::Caddy);
        distinct(self.servers.iter().copied().chain(given))
    }

    pub fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }

    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }

    pub fn caddy_binary(&self) -> Result<&PathBuf> {
        let caddy = self.caddy.as_ref().filter(|caddy| caddy.is_file());
        ensure!(caddy.is_some(), "there is no Caddy: name its binary with --caddy, or leave caddy out");
        Ok(caddy.expect("invariant: it was looked at"))
    }

    /// The load generator of HTTP/3, if there is one.
    pub fn oha(&self) -> Result<Option<&PathBuf>> {
        let given = self.oha.as_ref();
        let is_there = given.is_none_or(|oha| oha.is_file());
        ensure!(
            is_there,
            "there is no oha: name its binary with --oha, or leave that out and HTTP/3 with it"
        );
        Ok(given)
    }

    pub fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = vec![Case::Handshakes(Handshake::Full), Case::Handshakes(Handshake::Resumed)];
        let load = |protocol, connections, streams, answer| {
            Case::Requests(Load { protocol, connections, streams, answer })
        };
        let oha = self.oha()?;
        for connections in distinct(self.connections.iter().copied()) {
            cases.push(load(Protocol::Http1, connections, 1, Answer::Hello));
            cases.push(load(Protocol::Http2, connections, 1, Answer::Hello));
            if connections >= STREAMS {
                cases.push(load(Protocol::Http2, connections / STREAMS, STREAMS, Answer::Hello));
            }
            if oha.is_some() {
                cases.push(load(Protocol::Http3, connections, 1, Answer::Hello));
            }
        }
        for coding in ["", "gzip"] {
            let answer = Answer::Large(LARGE, coding);
            cases.push(load(Protocol::Http2, LARGE_CONNECTIONS, 1, answer));
        }
        Ok(cases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_published_page() {
        let options = Options::parse_from(["front"]);
        assert_eq!(options.servers(), [Front::Worker, Front::Classic, Front::Nginx]);
        assert_eq!(options.cases().expect("valid").len(), 2 + 3 + 3 + 2 + 2);
        assert!(options.caddy_binary().is_err());
    }

    #[test]
    fn a_caddy_that_is_given_is_measured() {
        let options = Options::parse_from(["front", "--caddy", "/bin/true", "--servers", "nginx,caddy"]);
        assert_eq!(options.servers(), [Front::Nginx, Front::Caddy]);
    }

    #[test]
    fn http_3_is_measured_where_there_is_an_oha() {
        let options = Options::parse_from(["front", "--oha", "/bin/true"]);
        let is_h3 = |case: &Case| matches!(case, Case::Requests(load) if load.protocol == Protocol::Http3);
        assert_eq!(options.cases().expect("valid").iter().filter(|case| is_h3(case)).count(), 3);
        let missing = Options::parse_from(["front", "--oha", "/nonexistent/oha"]).cases();
        assert!(missing.expect_err("it is missing").to_string().contains("--oha"));
    }
}
