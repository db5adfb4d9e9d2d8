//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};

use crate::apps;
use crate::cache;
use crate::fleet;
use crate::front;
use crate::generator::command::LoadCommand;
use crate::hello;
use crate::peers::{Contender, External};
use crate::proxy;
use crate::record::Earlier;
use crate::statistics::{ROUNDS_TO_PUBLISH, distinct};
use crate::suites::Length;
use crate::traces;

/// Measures Regent beside other PHP servers and compiled code, on this machine and in one run. Without a command: a tour of all suites
/// in under 15 minutes.
#[derive(Debug, Parser)]
#[command(name = "regent-bench", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: SuiteOptions,
}

const EXAMPLES: &str = "\
Examples:
  regent-bench                                       the tour
  regent-bench sweep                                 1 to 10,000 users at once, short form
  regent-bench sweep --full --rounds 5               as in the original: 101 points, 100,000 requests each
  regent-bench sweep --servers native,worker,classic compiled code against PHP, on one server
  regent-bench sweep --generators 2 --out two        beside it: is the load generator the limit?
  regent-bench fixed --servers classic,worker,fpm    the tail at fixed connections, of these servers
  regent-bench scaling --servers classic,worker      half an hour: six scenarios and a step, three rounds
  regent-bench scaling --scenarios step,time-outs    only these of them
  regent-bench load http://127.0.0.1:8080/ -c 100    only the load generator";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// All suites, in their shortest form
    Tour(SuiteOptions),
    /// A: 1 to 10,000 users at once, a connection for each request, and on until it ends
    Sweep(SuiteOptions),
    /// B: the tail at fixed keep-alive connections
    Fixed(SuiteOptions),
    /// C: autoscaling scenarios: default, scaling and ideal pools
    Scaling(SuiteOptions),
    /// Growth: 100 requests at once on a pool that starts with 2 threads, and what is left of it
    Burst(SuiteOptions),
    /// D: overload and recovery, and clients that leave
    Overload(SuiteOptions),
    /// E: a fast route beside a slow one
    Isolation(SuiteOptions),
    /// A page of a millisecond beside endless loops
    Neighbours(SuiteOptions),
    /// Static files, large answers, uploads
    Files(SuiteOptions),
    /// Hello world over keep-alive connections, measured by wrk
    Hello(hello::Options),
    /// TLS handshakes, HTTP/1.1, HTTP/2 and HTTP/3 over TLS, compression; measured by openssl, h2load and oha
    Front(front::Options),
    /// Requests handed to another server, beside nginx and Caddy; measured by h2load
    Proxy(proxy::Options),
    /// Real applications: WordPress, Symfony, Laravel, DokuWiki; measured by h2load
    Apps(apps::Options),
    /// WordPress for visitors from a cache, beside nginx's, and 500 who come for a page that is not there yet; measured by h2load
    Cache(cache::Options),
    /// What traces take of a request: off, 1 % and all sampled; measured by h2load
    Traces(traces::Options),
    /// A fleet of servers, simulated, beside four that are measured; what does not scale, and where it ends
    Fleet(fleet::Options),
    /// The load generator by itself
    Load(LoadCommand),
}

/// What the suites have in common.
#[derive(Clone, Debug, Args)]
pub struct SuiteOptions {
    /// Servers, in the order in which the odd rounds measure them: classic, worker, native, native-inline, respond,
    /// fpm, fpm-kept, apache, or the identity of a description; `:default` behind a name means its distribution's own
    /// settings [default: what the suite is about]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    servers: Vec<Contender>,

    /// Interleaved rounds; a figure to be published needs 5 [default: 1 in the tour, else 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,

    /// The original sizes instead of the short form; the sweep alone then takes hours
    #[arg(long)]
    full: bool,

    /// Processes of the load generator at each point of the sweep: with one, its single core is what limits the fastest
    /// servers; more of them take more of the cores from the server [default: one for each 10,000 users]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub generators: Option<u32>,

    /// Of the autoscaling scenarios only these [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub scenarios: Vec<String>,

    /// Measure everything anew, also what an interrupted run has measured
    #[arg(long)]
    fresh: bool,

    /// The directory of the results, one directory in it for each suite
    #[arg(long, default_value = "regent-bench-results", value_name = "DIRECTORY")]
    pub out: PathBuf,

    /// The regent binary [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    regent: Option<PathBuf>,

    /// The description of another server; bench/README.md says how to write one. May be given several times
    #[arg(long = "external", value_name = "FILE")]
    externals: Vec<PathBuf>,
}

impl SuiteOptions {
    /// The chosen servers, each once. Without a choice `fallback`, and the described ones that this machine has.
    pub fn contenders(&self, fallback: &[Contender], externals: &[External]) -> Vec<Contender> {
        if !self.servers.is_empty() {
            return distinct(self.servers.iter().cloned());
        }
        let present = externals.iter().filter(|external| external.find_program().is_ok());
        distinct(fallback.iter().cloned().chain(present.map(External::contender)))
    }

    pub fn rounds(&self, length: Length) -> u32 {
        self.rounds.unwrap_or(match length {
            Length::Tour => 1,
            Length::Short => 3,
            Length::Full => ROUNDS_TO_PUBLISH,
        })
    }

    /// Of a suite that is run by itself.
    pub fn length(&self) -> Length {
        if self.full { Length::Full } else { Length::Short }
    }

    pub fn earlier(&self) -> Earlier {
        if self.fresh { Earlier::Discard } else { Earlier::GoOn }
    }

    /// The descriptions given, before the ones that this program brings along.
    pub fn externals(&self) -> Result<Vec<External>> {
        let given = self.externals.iter().map(|path| External::load(path)).collect::<Result<Vec<_>>>()?;
        Ok(given.into_iter().chain(External::known()).collect())
    }

    /// The regent binary as an absolute path.
    pub fn regent(&self) -> Result<PathBuf> {
        regent_binary(self.regent.as_deref())
    }
}

/// The given program, or the `regent` beside this one.
pub fn regent_binary(given: Option<&std::path::Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()
            .context("this program's own path is unknown; use --regent")?
            .with_file_name("regent"),
    };
    if !path.is_file() {
        bail!(
            "{} does not exist; build it (cargo build --release), name another with --regent, or leave \
             Regent's servers out of --servers",
            path.display()
        );
    }
    Ok(std::path::absolute(path)?)
}

/// Whole seconds of a measurement.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse() {
        Ok(seconds @ 1..=300) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected whole seconds from 1s to 300s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> SuiteOptions {
        let arguments = [&["regent-bench", "sweep"], arguments].concat();
        match Arguments::try_parse_from(arguments).expect("valid").command {
            Some(Command::Sweep(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn rounds_depend_on_the_length_unless_given() {
        assert_eq!(options(&[]).rounds(Length::Tour), 1);
        assert_eq!(options(&["--full"]).length(), Length::Full);
        assert_eq!(options(&["--rounds", "7"]).rounds(Length::Tour), 7);
    }

    #[test]
    fn servers_are_measured_once_in_the_order_given() {
        let chosen = options(&["--servers", "fpm,classic,fpm"]).contenders(&[], &[]);
        let names: Vec<String> = chosen.iter().map(Contender::identity).collect();
        assert_eq!(names, ["fpm", "classic"]);
    }

    #[test]
    fn a_missing_regent_binary_says_what_to_do() {
        let error = options(&["--regent", "/nonexistent/regent"]).regent().expect_err("missing").to_string();
        assert!(error.contains("--servers") && error.contains("cargo build"), "{error}");
    }
}
