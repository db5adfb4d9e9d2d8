//! Real applications from the distribution's packages, unchanged, on Regent, php-fpm and FrankenPHP. Nearly all of their time
//! is PHP's own: what differs is the PHP that runs them, and how much a server adds to a request.

pub mod application;
mod case;
pub mod checkout;
pub mod configuration;
mod database;
mod options;
mod page;
pub mod peer;
mod server;

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

pub use self::options::Options;

use self::application::{Application, Prepared};
use self::case::{Case, Sample};
use self::server::{Ground, Server};
use crate::interrupt::Interrupt;
use crate::load::figures::Figures;
use crate::load::h2load;
use crate::machine::{self, Machine};
use crate::packages;
use crate::progress::Progress;
use crate::report;
use crate::site::Site;
use crate::suites::in_turn;
use crate::usage::{Snapshot, Usage};

/// Pause after each load, so that closed connections are gone before the next.
const SETTLE: Duration = Duration::from_millis(300);
/// A load whose result is not wanted, on each server first: opcache, the application's own caches and pools get warm.
const WARM_UP: Duration = Duration::from_secs(2);

/// Measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    packages::install_programs(&peer::programs(options), &interrupt)?;
    machine::raise_descriptor_limit(options.most_connections())?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let ground = Ground { site: &site, options, interrupt: &interrupt };
    let mut progress = Progress::new();
    let (mut samples, mut described) = (Vec::new(), Vec::new());
    let runs: usize = options.applications().iter().map(|it| options.peers(*it).len()).sum();
    let total = runs * options.connections().len() * options.rounds as usize;
    progress.begin(total, (options.duration + SETTLE) * total as u32);
    for application in options.applications() {
        eprintln!("preparing {application}");
        let prepared = application
            .prepare(&options.checkout()?, &site, &interrupt)
            .with_context(|| format!("{application} could not be prepared"))?;
        let mut servers = start_all(application, &prepared, &ground)?;
        samples.extend(measure_all(application, &ground, &mut servers, &mut progress)?);
        described.extend(servers.iter().map(Server::describe));
    }
    let page = page::page(options, &machine, &described, &samples);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}

fn start_all(application: Application, prepared: &Prepared, ground: &Ground<'_>) -> Result<Vec<Server>> {
    let mut servers: Vec<Server> = Vec::new();
    for peer in ground.options.peers(application) {
        eprintln!("starting {peer}");
        let server = server::start(peer, application, prepared, ground)
            .with_context(|| format!("{application} on {peer} could not be started"))?;
        if servers.is_empty() {
            application.install(server.port, ground.site, ground.interrupt)?;
        }
        application
            .check(server.port, ground.site, ground.interrupt)
            .with_context(|| format!("{application} on {peer} does not answer as it should"))?;
        load(application, &server, 4, WARM_UP, ground)?;
        servers.push(server);
    }
    Ok(servers)
}

fn measure_all(
    application: Application,
    ground: &Ground<'_>,
    servers: &mut [Server],
    progress: &mut Progress,
) -> Result<Vec<Sample>> {
    let options = ground.options;
    let mut samples = Vec::new();
    let indexes: Vec<usize> = (0..servers.len()).collect();
    for round in 1..=options.rounds {
        for connections in options.connections() {
            let case = Case { application, connections };
            for &index in in_turn(&indexes, round) {
                let server = &mut servers[index];
                let sample = measure(case, round, server, ground)
                    .with_context(|| format!("{case} on {}", server.peer))?;
                progress.step(&sample.to_string(), options.duration + SETTLE);
                samples.push(sample);
                sleep(SETTLE);
            }
        }
    }
    Ok(samples)
}

fn measure(case: Case, round: u32, server: &mut Server, ground: &Ground<'_>) -> Result<Sample> {
    server.check_alive()?;
    let leaders = server.leaders();
    let before = Snapshot::of(&leaders);
    let figures = load(case.application, server, case.connections, ground.options.duration, ground)?;
    let usage = Usage::since(&before, &leaders, figures.done + figures.failed);
    Ok(Sample { peer: server.peer, case, round, figures, usage })
}

/// The application's pages in turn, over connections that are kept.
fn load(
    application: Application,
    server: &Server,
    connections: u32,
    duration: Duration,
    ground: &Ground<'_>,
) -> Result<Figures> {
    let mut command: Command = h2load::command(connections, 1);
    command.arg("--h1");
    let pages = application.pages().iter();
    command.args(pages.map(|page| format!("http://127.0.0.1:{}{}", server.port, page.path)));
    h2load::measure(command, duration, &ground.site.path().join("h2load.log"), ground.interrupt)
}
