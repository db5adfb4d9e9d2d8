//! The front: TLS handshakes, requests over TLS by HTTP/1.1, HTTP/2 and HTTP/3, and compression of what PHP writes.
//! Measured by programs that are not ours, h2load, openssl and oha, beside nginx and, where a binary is given, Caddy.

mod case;
mod handshakes;
mod options;
mod page;
mod requests;
mod server;

use anyhow::{Context, Result};

pub use self::options::Options;

use self::case::Case;
use crate::interrupt::Interrupt;
use crate::machine::{self, Machine};
use crate::packages;
use crate::report;
use crate::samples::Campaign;
use crate::site::Site;

/// Measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let fronts = options.servers();
    packages::install_programs(&server::programs(&fronts), &interrupt)?;
    machine::raise_descriptor_limit(options.most_connections())?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let ground = server::Ground::prepare(&site, options, &interrupt)?;
    let mut running = Vec::with_capacity(fronts.len());
    for front in fronts {
        eprintln!("starting {front}");
        running.push(server::start(front, &ground).with_context(|| format!("{front} could not be started"))?);
    }
    let duration = options.duration;
    let campaign = Campaign { cases: options.cases()?, rounds: options.rounds };
    let samples = campaign.run(
        &mut running,
        |front, case| front.has(case).then(|| duration + requests::time_to_end(case)),
        |case, server| match case {
            Case::Handshakes(kind) => handshakes::measure(*kind, server.port, duration, &interrupt),
            Case::Requests(load) => requests::measure(load, server, options, &site, &interrupt),
        },
    )?;
    let page = page::page(options, &machine, &running, &samples);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}
