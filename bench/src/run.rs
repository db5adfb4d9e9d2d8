//! A run of suites: the ground they share, one after the other, and their reports.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::arguments::SuiteOptions;
use crate::bench::{Bench, Ground};
use crate::interrupt::Interrupt;
use crate::machine::{self, Machine};
use crate::packages;
use crate::peers::{Contender, External};
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
        let (contenders, others) = contenders(suite, options, &ground.externals);
        for contender in others {
            eprintln!("{contender} is left out: it does not answer all that is asked here");
        }
        if contenders.is_empty() {
            continue;
        }
        let page = run(suite, &ground, options, Selection::new(contenders, options, length))?;
        report::write_page(&page, &options.out.join(suite.name()))?;
        println!("{}", report::text(&page));
        pages.push(page);
    }
    ensure!(!pages.is_empty(), "no server is left: choose others with --servers");
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
        suites.iter().flat_map(|suite| contenders(*suite, options, &externals).0).collect();
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

/// The chosen servers: those that have what the suite asks for, and the others.
fn contenders(
    suite: Suite,
    options: &SuiteOptions,
    externals: &[External],
) -> (Vec<Contender>, Vec<Contender>) {
    let chosen = options.contenders(&suite.contenders(), externals);
    chosen.into_iter().partition(|contender| suite.scripts().iter().all(|script| contender.has(*script)))
}

fn run(suite: Suite, ground: &Ground, options: &SuiteOptions, selection: Selection) -> Result<Page> {
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

/// When the programs of Regent were built: the latest one.
fn built(regent: &Path) -> Result<String> {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let server = time(regent).with_context(|| regent.display().to_string())?;
    let engines = ["regent-php", "regent-native"].map(|engine| time(&regent.with_file_name(engine)));
    let latest = engines.into_iter().flatten().fold(server, SystemTime::max);
    Ok(OffsetDateTime::from(latest).format(&Rfc3339)?)
}
