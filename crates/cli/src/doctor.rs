//! `regent doctor`: what an experienced operator would say.

use crate::arguments::Doctor;
use crate::configuration::Origin;
use crate::{certificates, serve};
use anyhow::{Context, Result};
use regent_config::Config;
use regent_doctor::{Finding, Machine, Severity};
use regent_php_floor::Table;
use regent_server::EngineKind;
use std::path::Path;
use std::process::ExitCode;

/// The exit code is 1 if there is a problem.
pub fn doctor(options: &Doctor) -> Result<ExitCode> {
    let (table, mut findings) = table(options.advisories.as_deref());
    findings.extend(match Origin::File(options.config.clone()).load() {
        Ok(config) => examine(&config, &table)?,
        Err(error) => vec![Finding::problem(
            "configuration",
            format!("{error:#}").trim().to_owned(),
            "The server does not start with this configuration.",
            "Correct what is named; `regent validate` checks it again.",
        )],
    });
    let report = if options.json { regent_doctor::as_json } else { regent_doctor::as_text };
    print!("{}", report(&findings));
    let bad = findings.iter().any(|finding| finding.severity == Severity::Problem);
    Ok(ExitCode::from(u8::from(bad)))
}

/// The table of PHP's versions that is meant, or the one that is built in and what is wrong with the other.
fn table(advisories: Option<&Path>) -> (Table, Vec<Finding>) {
    match advisories.map(read_table) {
        None => (Table::built_in(), Vec::new()),
        Some(Ok(table)) => (table, Vec::new()),
        Some(Err(error)) => (
            Table::built_in(),
            vec![Finding::problem(
                "advisories",
                format!("{error:#}"),
                "PHP's version is judged by the table that is built in, which may be older.",
                "Name a file of the form that docs/php.md shows.",
            )],
        ),
    }
}

fn read_table(file: &Path) -> Result<Table> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("reading the table from the standard input")?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?
    };
    Table::from_json(&text).with_context(|| format!("reading {}", file.display()))
}

fn examine(config: &Config, table: &Table) -> Result<Vec<Finding>> {
    let engine = match &config.global.php.program {
        Some(named) => named.clone(),
        None => serve::program(EngineKind::Php)?,
    };
    let machine = Machine::read(config, &engine);
    let mut findings = regent_doctor::examine(config, &machine, table);
    if let Err(error) = certificates::check(config) {
        findings.push(Finding::problem(
            "certificate_files",
            error.to_string().trim().to_owned(),
            "Sites with these files cannot be served.",
            "Name a certificate and the key that belongs to it in `tls`.",
        ));
    }
    Ok(findings)
}
