//! Hello world over keep-alive connections, measured by wrk: a witness that is not ours.

mod campaign;
mod options;

use anyhow::{Context, Result};

pub use self::campaign::Sample;
pub use self::options::Options;

use self::campaign::Campaign;
use crate::generator::plan::Connections;
use crate::interrupt::Interrupt;
use crate::load::wrk::Wrk;
use crate::machine::{self, Machine};
use crate::packages;
use crate::peers;
use crate::progress::Progress;
use crate::report::{self, Results};
use crate::site::Site;

/// Measures, prints the table, and writes the results into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let servers: Vec<peers::Contender> = options.servers().into_iter().map(Into::into).collect();
    machine::raise_descriptor_limit(options.most_connections())?;
    packages::install_missing(&servers, &interrupt)?;

    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let wrk = Wrk::prepare(&site, options.duration)?;
    let plan = peers::Plan {
        site: &site,
        pool: peers::Pool::Fixed(options.threads),
        most_connections: options.most_connections(),
        connections: Connections::KeepAlive,
        regent: options.regent_binary()?,
        externals: &[],
        time_limit: None,
        deadline: None,
        wait: peers::Wait::Default,
        interrupt: &interrupt,
    };
    let mut running = Vec::with_capacity(servers.len());
    for server in &servers {
        eprintln!("starting {server}");
        running.push(peers::start(server, &plan)?);
    }

    let campaign = Campaign::new(options, &wrk, &interrupt);
    let samples = campaign.run(&mut running, &mut Progress::new())?;

    let descriptions = running.iter().map(peers::Server::describe).collect();
    drop(running);
    let results = Results::new(options, machine, wrk.version(), descriptions, samples)?;
    report::write(&results, &options.out)?;
    print!("{}", report::summary(&results));
    eprintln!("written to {}", options.out.display());
    Ok(())
}
