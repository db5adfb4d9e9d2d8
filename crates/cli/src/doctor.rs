//! `regent doctor`: what an experienced operator would say.

use crate::arguments::Doctor;
use crate::configuration::Origin;
use crate::{certificates, serve};
use anyhow::Result;
use regent_config::Config;
use regent_doctor::{Finding, Machine, Severity};
use regent_server::EngineKind;
use std::process::ExitCode;

/// The exit code is 1 if there is a problem.
pub fn doctor(options: &Doctor) -> Result<ExitCode> {
    let findings = match Origin::File(options.config.clone()).load() {
        Ok(config) => examine(&config)?,
        Err(error) => vec![Finding::problem(
            "configuration",
            format!("{error:#}").trim().to_owned(),
            "The server does not start with this configuration.",
            "Correct what is named; `regent validate` checks it again.",
        )],
    };
    let report = if options.json { regent_doctor::as_json } else { regent_doctor::as_text };
    print!("{}", report(&findings));
    let bad = findings.iter().any(|finding| finding.severity == Severity::Problem);
    Ok(ExitCode::from(u8::from(bad)))
}

fn examine(config: &Config) -> Result<Vec<Finding>> {
    let engine = match &config.global.php.program {
        Some(named) => named.clone(),
        None => serve::program(EngineKind::Php)?,
    };
    let machine = Machine::read(config, &engine);
    let mut findings = regent_doctor::examine(config, &machine);
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
