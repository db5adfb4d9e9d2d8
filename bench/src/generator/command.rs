//! `regent-bench load`: the load generator by hand, and in processes of its own.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::plan::{Connections, Expect, Kind, Limit, Pace, Plan, Stage};
use super::process::run_in_processes;
use super::{run, table};
use crate::interrupt::Interrupt;

/// Loads a server on a loopback address and says how it answered.
#[derive(Debug, Args)]
pub struct LoadCommand {
    /// What to load: http://ADDRESS:PORT/PATH; {1-10} in the path is a random number
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    url: Option<String>,

    /// A whole plan as JSON, instead of everything else here; - is standard input
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    /// Closed loop: so many users, each on a connection of its own; open loop: at most so many connections
    #[arg(long, short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,

    /// Open loop: so many requests a second, whether or not others are answered
    #[arg(long, value_name = "R")]
    rate: Option<f64>,

    /// Ramp: so many users at the end of each stage, as in 5s:100,20s:400
    #[arg(long, value_delimiter = ',', value_parser = parse_stage, value_name = "TIME:USERS",
          conflicts_with_all = ["rate", "connections", "duration", "requests"])]
    stages: Vec<Stage>,

    /// How long new requests are sent
    #[arg(long, short = 'd', default_value = "10s", value_parser = parse_duration)]
    duration: Duration,

    /// How many requests are sent, however long that takes
    #[arg(long, short = 'n', conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// A connection for each request
    #[arg(long)]
    no_keep_alive: bool,

    /// When a request is given up
    #[arg(long, default_value = "3s", value_parser = parse_duration)]
    timeout: Duration,

    /// GET, POST or PUT; POST when there is a body
    #[arg(long)]
    method: Option<String>,

    /// Size of each request's body
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    body_bytes: u64,

    /// Close the connection so long after sending, without waiting for the answer
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    leave_after: Option<Duration>,

    /// The size that the answers' bodies must have
    #[arg(long, conflicts_with = "expect_body", value_name = "BYTES")]
    expect_bytes: Option<u64>,

    /// The text that the answers' bodies must be
    #[arg(long, value_name = "TEXT")]
    expect_body: Option<String>,

    /// Spread the connections over so many addresses, counted from that of the URL: each has as many ports
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    addresses: u8,

    /// Of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Divide the load among so many processes of one thread each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,

    /// Write a line for each request to this file
    #[arg(long, value_name = "FILE", conflicts_with = "processes")]
    raw: Option<PathBuf>,

    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the load and prints its outcome. An error when it could not be run; requests that failed are none.
pub fn execute(command: &LoadCommand) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let plan = command.plan()?;
    let outcome = match command.processes {
        1 => run(&plan, command.raw.as_deref(), &interrupt)?,
        processes => run_in_processes(&plan, processes, &interrupt)?,
    };
    if command.json {
        println!("{}", serde_json::to_string(&outcome)?);
    } else {
        print!("{}", table::summary(&outcome));
    }
    Ok(())
}

impl LoadCommand {
    fn plan(&self) -> Result<Plan> {
        match (&self.plan, &self.url) {
            (Some(path), _) => read_plan(path),
            (None, Some(url)) => self.plan_for(&Url::parse(url)?),
            (None, None) => bail!("name a URL or a --plan"),
        }
    }

    fn plan_for(&self, url: &Url) -> Result<Plan> {
        Ok(Plan {
            targets: url.targets(self.addresses)?,
            host: url.host.clone(),
            pace: self.pace(),
            connections: if self.no_keep_alive { Connections::PerRequest } else { Connections::KeepAlive },
            limit: self.limit(),
            timeout: self.timeout,
            mix: vec![self.kind(&url.target)],
            source: None,
            seed: self.seed,
        })
    }

    fn pace(&self) -> Pace {
        match self.rate {
            Some(rate) => Pace::Open { rate, most_connections: self.connections.unwrap_or(10_000) },
            None if self.stages.is_empty() => Pace::Closed { users: self.connections.unwrap_or(10) },
            None => Pace::Ramp { stages: self.stages.clone() },
        }
    }

    fn limit(&self) -> Limit {
        match self.requests {
            Some(requests) => Limit::Requests(requests),
            None if self.stages.is_empty() => Limit::Duration(self.duration),
            None => Limit::Stages,
        }
    }

    fn kind(&self, target: &str) -> Kind {
        let method = if self.body_bytes > 0 { "POST" } else { "GET" };
        Kind {
            name: "all".to_owned(),
            weight: 1,
            method: self.method.clone().unwrap_or_else(|| method.to_owned()),
            target: target.to_owned(),
            body_bytes: self.body_bytes,
            window: None,
            leave_after: self.leave_after,
            expect: self.expect(),
        }
    }

    fn expect(&self) -> Expect {
        match (&self.expect_body, self.expect_bytes) {
            (Some(text), _) => Expect::Body(text.clone()),
            (None, Some(bytes)) => Expect::Bytes(bytes),
            (None, None) => Expect::Any,
        }
    }
}

fn read_plan(path: &Path) -> Result<Plan> {
    if path == Path::new("-") {
        // The plan comes from a program that waits for the outcome: without it there is nothing to load for.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        return parse_plan(io::stdin().lock()).context("the plan on standard input is none");
    }
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    parse_plan(file).with_context(|| format!("the plan in {} is none", path.display()))
}

fn parse_plan(mut input: impl Read) -> Result<Plan> {
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// A URL in its parts.
#[derive(Debug, PartialEq, Eq)]
struct Url {
    address: SocketAddr,
    host: String,
    target: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self> {
        let rest =
            text.strip_prefix("http://").with_context(|| format!("{text} does not start with http://"))?;
        let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let address = parse_address(host).with_context(|| {
            format!("{host} is not an address like 127.0.0.1:8080 (names but localhost are not looked up)")
        })?;
        Ok(Self { address, host: host.to_owned(), target })
    }

    fn targets(&self, addresses: u8) -> Result<Vec<SocketAddr>> {
        (0..addresses).map(|step| self.target_at(step)).collect()
    }

    fn target_at(&self, step: u8) -> Result<SocketAddr> {
        match self.address.ip() {
            ip if step == 0 => Ok(SocketAddr::new(ip, self.address.port())),
            IpAddr::V4(ip) => {
                let [a, b, c, last] = ip.octets();
                let last = last.checked_add(step).context("the URL's network has no more --addresses")?;
                Ok(SocketAddr::new([a, b, c, last].into(), self.address.port()))
            }
            IpAddr::V6(ip) => bail!("{ip} is the only loopback address of its kind; use one --addresses"),
        }
    }
}

/// An address with a port, or without one for port 80.
fn parse_address(host: &str) -> Option<SocketAddr> {
    let named = host.replacen("localhost", "127.0.0.1", 1);
    let bare = named.trim_start_matches('[').trim_end_matches(']');
    named.parse().ok().or_else(|| Some(SocketAddr::new(bare.parse().ok()?, 80)))
}

/// A number with the unit `ms`, `s` or `m`.
fn parse_duration(text: &str) -> Result<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match &text[unit..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => bail!("expected a number with a unit: 500ms, 10s or 2m"),
    };
    let number: f64 = text[..unit].parse().map_err(|_| anyhow!("{:?} is not a number", &text[..unit]))?;
    let duration = Duration::try_from_secs_f64(number * factor)?;
    ensure!(!duration.is_zero(), "it must be more than nothing");
    Ok(duration)
}

fn parse_stage(text: &str) -> Result<Stage> {
    let (duration, users) = text.split_once(':').context("expected TIME:USERS, as in 20s:400")?;
    let users = users.parse().with_context(|| format!("{users:?} is not a number of users"))?;
    Ok(Stage { duration: parse_duration(duration)?, users })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        load: LoadCommand,
    }

    fn plan_of(arguments: &[&str]) -> Result<Plan> {
        Program::try_parse_from([&["load"], arguments].concat())?.load.plan()
    }

    #[test]
    fn a_url_alone_is_a_closed_loop_of_ten_seconds() {
        let plan = plan_of(&["http://127.0.0.1:8080/a?b={1-3}"]).expect("valid");
        assert_eq!(plan.targets, ["127.0.0.1:8080".parse().expect("an address")]);
        assert_eq!((plan.host.as_str(), plan.mix[0].target.as_str()), ("127.0.0.1:8080", "/a?b={1-3}"));
        assert_eq!(
            (plan.pace, plan.limit),
            (Pace::Closed { users: 10 }, Limit::Duration(Duration::from_secs(10)))
        );
    }

    #[test]
    fn options_become_the_plan() {
        let plan = plan_of(&[
            "http://localhost",
            "--rate",
            "100",
            "-n",
            "5",
            "--body-bytes",
            "7",
            "--addresses",
            "2",
        ])
        .expect("valid");
        assert_eq!(
            plan.targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["127.0.0.1:80", "127.0.0.2:80"]
        );
        assert_eq!((plan.mix[0].method.as_str(), plan.mix[0].target.as_str()), ("POST", "/"));
        assert_eq!(plan.pace, Pace::Open { rate: 100.0, most_connections: 10_000 });
        assert_eq!(plan.limit, Limit::Requests(5));

        let ramp = plan_of(&["http://[::1]:81?x", "--stages", "5s:100,500ms:0"]).expect("valid");
        let stage = |milliseconds, users| Stage { duration: Duration::from_millis(milliseconds), users };
        assert_eq!(
            (ramp.pace, ramp.limit),
            (Pace::Ramp { stages: vec![stage(5000, 100), stage(500, 0)] }, Limit::Stages)
        );
        assert_eq!(
            (ramp.targets[0].to_string(), ramp.mix[0].target.as_str()),
            ("[::1]:81".to_owned(), "/?x")
        );
    }

    #[test]
    fn a_plan_comes_from_a_file() {
        let plan = plan_of(&["http://127.0.0.1:1/"]).expect("valid");
        let file = tempfile::NamedTempFile::new().expect("a file");
        serde_json::to_writer(&file, &plan).expect("written");
        let path = file.path().to_str().expect("UTF-8");
        assert_eq!(plan_of(&["--plan", path]).expect("valid"), plan);
    }

    #[test]
    fn mistakes_are_errors() {
        let url = "http://127.0.0.1:1/";
        for wrong in [
            &[][..],
            &["https://127.0.0.1/"],
            &["http://example.org/"],
            &["http://127.0.0.250/", "--addresses", "10"],
            &["http://[::1]/", "--addresses", "2"],
            &[url, "--duration", "10"],
            &[url, "--duration", "0s"],
            &[url, "--stages", "5s"],
            &[url, "--stages", "5s:1", "--rate", "1"],
            &["--plan", "/nonexistent/plan"],
        ] {
            assert!(plan_of(wrong).is_err(), "{wrong:?}");
        }
    }
}
