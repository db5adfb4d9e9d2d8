//! A fleet: how far it scales, by a simulation whose figures are measured ones, and what it cannot scale.
//!
//! What is simulated and what is measured is said on the page. Measured here: four Regents behind HAProxy, beside the
//! simulation of the same, and what Redis takes for what instances share.

mod limits;
mod measured;
mod model;
mod options;
mod page;
mod redis;
mod scenarios;
mod shared;
mod simulation;

use anyhow::{Context, Result};

pub use self::options::Options;

use crate::interrupt::Interrupt;
use crate::machine::{self, Machine};
use crate::packages::{self, Program};
use crate::report;
use crate::site::Site;

/// Simulates, measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let machine = Machine::describe();
    let measured = match options.measure {
        time if time.is_zero() => None,
        _ => Some(measure(options, &machine, &interrupt)?),
    };
    let scenarios = scenarios::run(options, &interrupt)?;
    let page = page::page(options, &machine, &scenarios, measured.as_ref());
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}

/// On this machine.
struct Measured {
    balancing: measured::Balancing,
    shared: shared::Costs,
}

fn measure(options: &Options, machine: &Machine, interrupt: &Interrupt) -> Result<Measured> {
    let programs = [Program::named("haproxy", "haproxy"), Program::named("redis-server", "redis-server")];
    packages::install_programs(&programs, interrupt)?;
    machine::raise_descriptor_limit(measured::MOST_CONNECTIONS * 2)?;
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let shared = shared::measure(&site, options.measure, interrupt)?;
    let balancing = measured::measure(options, &site, interrupt)?;
    Ok(Measured { balancing, shared })
}
