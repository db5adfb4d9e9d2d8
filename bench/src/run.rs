//! A run of suites: the ground they share, one after the other, and their reports.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::arguments::SuiteOptions;
use crate::bench::{Bench, Ground};
use crate::interrupt::Interrupt;
use crate::machine::{self, Machine};
use crate::packages;
use crate::peers::Contender;
use crate::record::{Circumstances, Store};
use crate::report;
use crate::report::page::Page;
use crate::site::Site;
use crate::suites::{Length, Selection, Suite};

/// Runs the suites and writes a report of each into its directory below `--out`, and one of all of them.
pub fn suites(suites: &[Suite], options: &SuiteOptions, length: Length) -> Result<()> {
    let ground = prepare(suites, options)?;
    let mut pages = Vec::with_capacity(suites.len());
    for &suite in suites {
        eprintln!("\n{}", suite.title());
        let page = run(suite, &ground, options, length)?;
        report::write_page(&page, &options.out.join(suite.name()))?;
        println!("{}", report::text(&page));
        pages.push(page);
    }
    let report = match suites {
        [suite] => options.out.join(suite.name()).join(format!("{}.html", suite.name())),
        _ => report::write_index(&pages, &options.out)?,
    };
    println!("The report: {}", fs::canonicalize(&report).unwrap_or(report).display());
    Ok(())
}

/// Everything that the chosen servers need is there, or an error says what to do.
fn prepare(suites: &[Suite], options: &SuiteOptions) -> Result<Ground> {
    let interrupt =
        Interrupt::install().context("the handlers of SIGINT and SIGTERM could not be installed")?;
    let externals = options.externals()?;
    let contenders: Vec<Contender> =
        suites.iter().flat_map(|suite| options.contenders(&suite.contenders(), &externals)).collect();
    machine::raise_descriptor_limit(0)?;
    packages::install_missing(&contenders, &interrupt)?;
    let machine = Machine::describe();
    machine.warn_when_busy();
    Ok(Ground {
        site: Site::create().context("the work directory could not be made")?,
        machine,
        regent: contenders.iter().any(|c| c.kind.is_regent()).then(|| options.regent()).transpose()?,
        externals,
        interrupt,
    })
}

fn run(suite: Suite, ground: &Ground, options: &SuiteOptions, length: Length) -> Result<Page> {
    let selection = Selection {
        contenders: options.contenders(&suite.contenders(), &ground.externals),
        length,
        rounds: options.rounds(length),
        scenarios: options.scenarios.clone(),
    };
    let circumstances = Circumstances {
        suite: suite.name().to_owned(),
        bench: format!("regent-bench {}", env!("CARGO_PKG_VERSION")),
        machine: ground.machine.clone(),
        regent_built: ground.regent.as_deref().map(built).transpose()?,
    };
    let store = Store::open(&options.out.join(suite.name()), circumstances, options.earlier())?;
    if !store.is_empty() {
        eprintln!("{} measurements of an interrupted run are used; --fresh measures them anew", store.len());
    }
    suite.run(&mut Bench::new(ground, store), &selection)
}

/// When the programs of Regent were built: the later one.
fn built(regent: &Path) -> Result<String> {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let server = time(regent).with_context(|| regent.display().to_string())?;
    let engine = time(&regent.with_file_name("regent-php")).unwrap_or(server);
    Ok(OffsetDateTime::from(server.max(engine)).format(&Rfc3339)?)
}
