//! The front: TLS handshakes, requests over TLS by HTTP/1.1 and HTTP/2, and compression of what PHP writes. Measured by
//! programs that are not ours, h2load and openssl, beside nginx and, where a binary is given, Caddy.

mod case;
mod handshakes;
mod options;
mod page;
mod requests;
mod server;

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

pub use self::options::Options;

use self::case::{Case, Figures, Sample};
use self::server::Server;
use crate::interrupt::Interrupt;
use crate::machine::{self, Machine};
use crate::packages;
use crate::progress::Progress;
use crate::report;
use crate::site::Site;
use crate::suites::in_turn;
use crate::usage::{Snapshot, Usage};

/// Pause after each load, so that closed connections are gone before the next.
const SETTLE: Duration = Duration::from_millis(300);

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
    let samples = measure_all(options, &site, &mut running, &interrupt)?;
    let page = page::page(options, &machine, &running, &samples);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}

fn measure_all(
    options: &Options,
    site: &Site,
    servers: &mut [Server],
    interrupt: &Interrupt,
) -> Result<Vec<Sample>> {
    let cases = options.cases();
    let each = options.duration + SETTLE;
    let mut progress = Progress::new();
    let total = cases.len() * servers.len() * options.rounds as usize;
    progress.begin(total, each * total as u32);
    let mut samples = Vec::new();
    let indexes: Vec<usize> = (0..servers.len()).collect();
    for round in 1..=options.rounds {
        for case in &cases {
            for &index in in_turn(&indexes, round) {
                let server = &mut servers[index];
                let sample = measure(case, round, server, options.duration, site, interrupt)
                    .with_context(|| format!("{} with {}", case, server.front))?;
                progress.step(&sample.to_string(), each);
                samples.push(sample);
                sleep(SETTLE);
            }
        }
    }
    Ok(samples)
}

fn measure(
    case: &Case,
    round: u32,
    server: &mut Server,
    duration: Duration,
    site: &Site,
    interrupt: &Interrupt,
) -> Result<Sample> {
    server.check_alive()?;
    let leaders = server.leaders();
    let before = Snapshot::of(&leaders);
    let figures: Figures = match case {
        Case::Handshakes(kind) => handshakes::measure(*kind, server.port, duration, interrupt)?,
        Case::Requests(load) => requests::measure(load, server, duration, site, interrupt)?,
    };
    let usage = Usage::since(&before, &leaders, figures.done);
    Ok(Sample { front: server.front, case: case.clone(), round, figures, usage })
}
