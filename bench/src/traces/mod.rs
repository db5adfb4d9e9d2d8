//! What `tracing` takes of a request: not traced, decided against, one of a hundred sampled, all of them. By h2load, the same
//! program each time, in turn.

mod options;
mod page;
mod server;

use anyhow::{Context, Result};

pub use self::options::Options;

use self::server::Collector;
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::machine::{self, Machine};
use crate::packages::{self, Program};
use crate::report;
use crate::samples::{Campaign, Running};
use crate::site::{HELLO_PATH, Site, WORKER_PATH};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Worker,
    Classic,
}

/// Measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let programs = [Program::named("h2load", h2load::PACKAGE), Program::named("nginx", "nginx")];
    packages::install_programs(&programs, &interrupt)?;
    machine::raise_descriptor_limit(options.connections)?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let collector = Collector::start(&site, &interrupt).context("the collector could not be started")?;
    let mut running = Vec::new();
    for sampling in server::Sampling::ALL {
        eprintln!("starting {sampling}");
        let started = server::start(sampling, options, &site, collector.port, &interrupt);
        running.push(started.with_context(|| format!("{sampling} could not be started"))?);
    }
    let log = site.path().join("h2load.log");
    let campaign = Campaign { cases: vec![Case::Worker, Case::Classic], rounds: options.rounds };
    let samples = campaign.run(
        &mut running,
        |_, _| Some(options.duration),
        |case, server: &Running<_>| {
            let mut command = h2load::command(options.connections, 1);
            let path = match case {
                Case::Worker => WORKER_PATH,
                Case::Classic => HELLO_PATH,
            };
            command.arg("--h1").arg(format!("http://127.0.0.1:{}{path}", server.port));
            h2load::measure(command, options.duration, &log, &interrupt)
        },
    )?;
    collector.check()?;
    let page = page::page(options, &machine, &running, &samples);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Worker => "hello world, worker",
            Self::Classic => "hello world, classic",
        })
    }
}
