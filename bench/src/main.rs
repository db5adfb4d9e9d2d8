//! `regent-bench`: Regent beside nginx + php-fpm and Apache + mod_php on one machine, in one run, interleaved.
//!
//! The story of a run: install what is missing, start every server with a configuration of its own on 127.0.0.1,
//! check that each is what it should be, measure them in turn for some rounds, and report medians with their spread.

#![forbid(unsafe_code)]

mod campaign;
mod interrupt;
mod load;
mod machine;
mod options;
mod packages;
mod peers;
mod probe;
mod procfs;
mod progress;
mod report;
mod site;
mod statistics;
mod supervise;
mod usage;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::campaign::Campaign;
use crate::interrupt::Interrupt;
use crate::load::wrk::Wrk;
use crate::machine::Machine;
use crate::options::Options;
use crate::progress::Progress;
use crate::report::Results;
use crate::site::Site;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let servers = options.servers();
    machine::raise_descriptor_limit(options.most_connections())?;
    packages::install_missing(&servers, &interrupt)?;

    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let wrk = Wrk::prepare(&site, options.duration)?;
    let plan = peers::Plan {
        site: &site,
        threads: options.threads,
        most_connections: options.most_connections(),
        regent: options.regent_binary()?,
        interrupt: &interrupt,
    };
    let mut running = Vec::with_capacity(servers.len());
    for server in &servers {
        eprintln!("starting {server}");
        running.push(peers::start(*server, &plan)?);
    }

    let campaign = Campaign::new(options, &wrk, &interrupt);
    let mut progress = Progress::new(campaign.expected_duration(running.len()));
    let samples = campaign.run(&mut running, &mut progress)?;

    let descriptions = running.iter().map(peers::Server::describe).collect();
    drop(running);
    let results = Results::new(options, machine, wrk.version(), descriptions, samples)?;
    report::write(&results, &options.out)?;
    print!("{}", report::summary(&results));
    eprintln!("written to {}", options.out.display());
    Ok(())
}
