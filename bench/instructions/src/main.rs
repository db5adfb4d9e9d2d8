//! `regent-instructions`: how many instructions a request costs, counted by callgrind, beside the stored figures.
//!
//! Time on a shared machine is noise; instructions are not: two runs of one build on an idle machine differ by less than
//! 0.3 %, so that a loss of a few per cent shows at once. A busy machine changes the order in which processes run, and
//! with it the counts, by several per cent up or down; so what seems costlier is counted again before it is believed.
//! What is not counted is what the kernel does, caches, and waiting: that is what `regent-bench` measures.
//!
//! A figure is the difference between two runs of the server, one with a thousand requests more: what start and stop
//! cost cancels. See [`server`] for what makes the runs alike.

#![forbid(unsafe_code)]

mod build;
mod client;
mod measure;
mod options;
mod profile;
mod report;
mod scenario;
mod server;
mod site;
mod stored;
mod turns;
mod verdict;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::measure::Measured;
use crate::options::Options;
use crate::site::Site;
use crate::stored::Stored;

/// How often what seems costlier is counted again. A loss is in each count, a disturbance is not.
const RECOUNTS: u32 = 2;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("regent-instructions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    let mut stored = Stored::read(&options.stored)?;
    let regent = options.regent_binary()?;
    turns::take_turns_on_one_cpu()?;
    let site = Site::create().context("making the site to be served")?;
    let mut measured = Measured::default();
    for scenario in options.scenarios() {
        eprintln!("counting {scenario}");
        measured.add(measure::scenario(&site, &regent, scenario, options.repeat)?);
    }
    let build = build::describe(&regent, measured.php_version())?;
    if let Some(rows) = options.top {
        print!("{}", report::hottest(&measured, rows));
    }
    if options.update {
        stored.store(build, measured.largest());
        stored.write(&options.stored)?;
        print!("{}", report::figures(&measured));
        eprintln!("written to {}", options.stored.display());
        return Ok(ExitCode::SUCCESS);
    }
    let compare = |measured: &Measured| verdict::compare(&stored, &build, &measured.smallest());
    let mut verdicts = compare(&measured);
    for scenario in verdict::costlier(&verdicts) {
        eprintln!("counting {scenario} again");
        measured.count_again(measure::scenario(&site, &regent, scenario, RECOUNTS)?);
    }
    verdicts = compare(&measured);
    print!("{}", report::verdicts(&stored, &build, &measured, &verdicts));
    Ok(if verdict::costlier(&verdicts).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
