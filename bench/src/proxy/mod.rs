//! `reverse_proxy`: requests that are handed to another server over kept connections, and what handing them costs.
//! Measured by h2load, beside nginx and, where a binary is given, Caddy. Behind all of them is one nginx with files.

mod case;
mod options;
mod page;
mod server;
mod upstream;

use anyhow::{Context, Result};

pub use self::options::Options;

use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::machine::{self, Machine};
use crate::packages;
use crate::report;
use crate::samples::Campaign;
use crate::site::Site;

/// Measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    packages::install_programs(&server::programs(), &interrupt)?;
    // A connection of the client and one to the upstream, in one process or another.
    machine::raise_descriptor_limit(options.most_connections() * 2)?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let upstream = upstream::start(&site, &interrupt).context("the server behind could not be started")?;
    let mut running = Vec::new();
    for proxy in options.servers() {
        eprintln!("starting {proxy}");
        let started = server::start(proxy, options, &site, upstream.port, &interrupt);
        running.push(started.with_context(|| format!("{proxy} could not be started"))?);
    }
    let (log, body) = (site.path().join("h2load.log"), upstream::body(&site)?);
    let campaign = Campaign { cases: options.cases(), rounds: options.rounds };
    let samples = campaign.run(
        &mut running,
        |_, _| Some(options.duration),
        |case, server| h2load::measure(case.command(server.port, &body), options.duration, &log, &interrupt),
    )?;
    let page = page::page(options, &machine, &upstream, &running, &samples);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}
