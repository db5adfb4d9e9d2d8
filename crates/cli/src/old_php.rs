//! A PHP with known critical holes goes into no build that others are to run.

use anyhow::{Result, bail};
use regent_php_floor::{Build, Table, Verdict};

/// `yes`: the build is for tests alone.
const ALLOWED: &str = "REGENT_OLD_PHP";

/// `None`: no holes of this PHP are known. Otherwise what the build is to be marked with.
///
/// # Errors
/// If it has holes and the environment does not allow it.
pub fn allowed(version: &str) -> Result<Option<String>> {
    let build = Build { version: version.to_owned(), package: None };
    let Verdict::Below(floor) = Table::built_in().judge(&build) else { return Ok(None) };
    let holes = floor.holes.join(", ");
    if std::env::var_os(ALLOWED).is_none_or(|said| said != "yes") {
        bail!(
            "PHP {version} has holes that are known and run an attacker's code ({holes}): the lowest version without is {}\n\
             Use a newer engine: `make build PHP=zts` builds the newest PHP whose source can be had, and `make build PHP=system` \
             takes the distribution's. {ALLOWED}=yes makes an executable that is for tests alone, and marked so.",
            floor.version
        );
    }
    Ok(Some(format!("For tests alone: PHP {version} is below {} and has {holes}.\n", floor.version)))
}
