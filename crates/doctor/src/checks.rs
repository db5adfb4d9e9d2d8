//! What is looked for. Each check is a function of plain data.

mod certificates;
mod confine;
mod directories;
mod floor;
mod machine;
mod memory;
mod opcache;
mod php;
mod ports;
mod sites;
mod user;

#[cfg(test)]
mod fixture;

use crate::{Finding, Machine};
use regent_config::Config;
use regent_php_floor::Table;

/// All findings, in the order of the checks. `table`: what is known of PHP's versions.
pub fn examine(config: &Config, machine: &Machine, table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    ports::check(config, machine, &mut findings);
    user::check(config, machine, &mut findings);
    confine::check(config, machine, &mut findings);
    directories::check(machine, &mut findings);
    certificates::check(machine, &mut findings);
    sites::check(config, machine, &mut findings);
    match &machine.php {
        Ok(php) => {
            floor::check(table, php, machine, &mut findings);
            opcache::check(php, machine, &mut findings);
            php::check(config, php, &mut findings);
            memory::check(config, php, machine, &mut findings);
        }
        Err(reason) => findings.push(Finding::problem(
            "php",
            format!("PHP cannot be asked for its settings: {reason}"),
            "A server whose engine does not start answers every request for PHP with an error.",
            "Install the engine beside `regent`, or name it in REGENT_ENGINE.",
        )),
    }
    machine::check(machine, &mut findings);
    findings
}
