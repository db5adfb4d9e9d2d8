//! `regent-phpt`: PHP's own tests, over HTTP.
//!
//! Each `.phpt` test runs on Regent, with the settings it asks for. Where the answer is not the expected one, php-cgi of
//! the same build runs it, too: if it does no better, the test is not one for servers; if it does, Regent differs, and
//! `differences.toml` has to say why. See README.md.

#![forbid(unsafe_code)]

mod case;
mod differences;
mod expectation;
mod glob;
mod options;
mod pattern;
mod php;
mod phpt;
mod place;
mod report;
mod request;
mod run;
mod server;
mod settings;
mod suite;
mod trial;
mod turns;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Parser;
use regent_tests::process;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use crate::differences::Differences;
use crate::glob::Glob;
use crate::options::{Mode, Options};
use crate::php::Php;
use crate::place::Place;
use crate::report::Report;
use crate::settings::Settings;
use crate::trial::{Skips, Trials};

/// A bound for every process that runs tests: some try how much memory they get. The server's shared memory counts, too.
const ADDRESS_SPACE: u64 = 32 << 30;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("regent-phpt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    bound_this_process_and_its_children()?;
    let known = Differences::read(&options.differences)?;
    let place = Place::unpack(&options.php)?;
    let php = Php::new(&options.php, &place)?;
    let mut failed = false;
    for mode in &options.mode {
        failed |= run_mode(options, *mode, &php, &place, &known)?;
    }
    end_what_tests_have_left();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether something differs for no known reason.
fn run_mode(
    options: &Options,
    mode: Mode,
    php: &Php<'_>,
    place: &Place,
    known: &Differences,
) -> Result<bool> {
    let plain = php.prepare(&Settings::default())?;
    let mut tests = suite::tests(&place.tree(), &selection(options))?;
    tests.retain(|test| mode != Mode::Worker || suite::is_for_workers(test));
    tests.truncate(options.limit.unwrap_or(usize::MAX));
    let (groups, skipped) = case::groups(place, tests, &php.extensions(&plain)?);
    let mut report = Report::new(mode, known, &options.report)?;
    run::skip(skipped, &mut report)?;
    let report = Mutex::new(report);
    let trials = Trials { php, place, mode, base: options.base, plain: &plain, skips: Skips::default() };
    run::run(&trials, &groups, options.seed, &report)?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.print()?;
    Ok(report.has_failed())
}

fn selection(options: &Options) -> Vec<Glob> {
    match (options.only.as_slice(), options.short) {
        ([], false) => vec![Glob::new("*")],
        ([], true) => suite::short_selection(),
        (only, _) => only.iter().map(|text| Glob::new(text)).collect(),
    }
}

fn bound_this_process_and_its_children() -> Result<()> {
    let bounds = [(Resource::As, ADDRESS_SPACE), (Resource::Core, 0)];
    for (resource, bound) in bounds {
        setrlimit(resource, Rlimit { current: Some(bound), maximum: Some(bound) })
            .context("setting limits")?;
    }
    // Processes that outlive their test become children of this one.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("becoming a subreaper")
}

fn end_what_tests_have_left() {
    for orphan in process::children(std::process::id()) {
        process::signal(orphan, Signal::KILL);
    }
}
