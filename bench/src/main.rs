//! `regent-bench`: Regent beside other PHP servers on one machine, in one run, interleaved.
//!
//! The story of a suite: install what is missing, start the servers with configurations of their own on loopback, check
//! that each is what it should be, measure them in turn for some rounds, and report medians with their spread.

#![forbid(unsafe_code)]

mod apps;
mod arguments;
mod bench;
mod cache;
mod endless_loops;
mod fleet;
mod front;
mod generator;
mod hello;
mod interrupt;
mod load;
mod machine;
mod packages;
mod peers;
mod probe;
mod procfs;
mod progress;
mod proxy;
mod record;
mod report;
mod run;
mod samples;
mod site;
mod statistics;
mod suites;
mod supervise;
mod traces;
mod usage;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::suites::{Length, Suite};

fn main() -> ExitCode {
    match execute(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: Arguments) -> Result<()> {
    let one = |suite, options: &arguments::SuiteOptions| run::suites(&[suite], options, options.length());
    match arguments.command {
        None => run::suites(&Suite::ALL, &arguments.options, Length::Tour),
        Some(Command::Tour(options)) => run::suites(&Suite::ALL, &options, Length::Tour),
        Some(Command::Sweep(options)) => one(Suite::Sweep, &options),
        Some(Command::Fixed(options)) => one(Suite::Fixed, &options),
        Some(Command::Scaling(options)) => one(Suite::Scaling, &options),
        Some(Command::Burst(options)) => one(Suite::Burst, &options),
        Some(Command::Overload(options)) => one(Suite::Overload, &options),
        Some(Command::Isolation(options)) => one(Suite::Isolation, &options),
        Some(Command::Neighbours(options)) => one(Suite::Neighbours, &options),
        Some(Command::Files(options)) => one(Suite::Files, &options),
        Some(Command::Hello(options)) => hello::run(&options),
        Some(Command::Front(options)) => front::run(&options),
        Some(Command::Proxy(options)) => proxy::run(&options),
        Some(Command::Fleet(options)) => fleet::run(&options),
        Some(Command::Traces(options)) => traces::run(&options),
        Some(Command::Apps(options)) => apps::run(&options),
        Some(Command::Cache(options)) => cache::run(&options),
        Some(Command::Load(command)) => generator::command::execute(&command),
    }
}
