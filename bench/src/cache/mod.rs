//! A page of WordPress that is the same for all visitors: made by PHP each time, and from a cache, Regent's and nginx's. And
//! what becomes of many who come at once for a page that is not in the cache yet.

mod case;
mod options;
mod page;
mod server;
mod stampede;

use std::time::Duration;

use anyhow::{Context, Result};

pub use self::options::Options;

use self::server::{Ground, Keeper};
use crate::apps::application::Application;
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::machine::{self, Machine};
use crate::packages;
use crate::report;
use crate::samples::{Campaign, Running};
use crate::site::Site;

/// A load whose result is not wanted, on each server first: opcache, WordPress and the caches get warm.
const WARM_UP: Duration = Duration::from_secs(2);

/// Measures, prints the tables, and writes the page into the directory of the options.
pub fn run(options: &Options) -> Result<()> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    packages::install_programs(&server::programs(&options.servers()), &interrupt)?;
    machine::raise_descriptor_limit(options.most_connections() * 2)?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    let site = Site::create().context("the work directory could not be made")?;
    let ground = Ground { site: &site, options, interrupt: &interrupt };
    eprintln!("preparing WordPress");
    let prepared = Application::Wordpress
        .prepare(&options.checkout()?, &site, &interrupt)
        .context("WordPress could not be prepared")?;
    let mut running: Vec<Running<Keeper>> = Vec::new();
    for keeper in options.servers() {
        eprintln!("starting {keeper}");
        let server = server::start(keeper, &prepared, &ground)
            .with_context(|| format!("{keeper} could not be started"))?;
        if running.is_empty() {
            Application::Wordpress.install(server.port, &site, &interrupt)?;
        }
        // The first page may be that of a blog that was just installed.
        Application::Wordpress.check(server.port, &site, &interrupt)?;
        let warm = case::Case { connections: 4 }.command(server.port);
        h2load::measure(warm, WARM_UP, &site.path().join("h2load.log"), &interrupt)?;
        server::check(&server, &ground).with_context(|| format!("{keeper} is not what it should be"))?;
        running.push(server);
    }
    let log = site.path().join("h2load.log");
    let campaign = Campaign { cases: options.cases(), rounds: options.rounds };
    let samples = campaign.run(
        &mut running,
        |_, _| Some(options.duration),
        |case, server| h2load::measure(case.command(server.port), options.duration, &log, &interrupt),
    )?;
    let stampedes = stampede::run_all(&mut running, &ground)?;
    let page = page::page(options, &machine, &running, &samples, &stampedes);
    report::write_page(&page, &options.out)?;
    println!("{}", report::text(&page));
    eprintln!("written to {}", options.out.display());
    Ok(())
}
