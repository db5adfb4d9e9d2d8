//! Whether PHP is known to have critical holes.

use crate::{Finding, Machine, PhpFacts};
use regent_php_floor::{Build, Floor, Table, Verdict};
use std::path::Path;

/// Where Regent's own package has its PHP.
const OF_REGENT: &str = "/usr/lib/regent/php";

pub(super) fn check(table: &Table, php: &PhpFacts, machine: &Machine, findings: &mut Vec<Finding>) {
    let build = Build { version: php.version.clone(), package: php.package.clone() };
    match table.judge(&build) {
        Verdict::Sound => {}
        Verdict::Below(floor) => findings.push(Finding::problem(
            "php_floor",
            format!("{} has {}: the lowest version without is {}", name(&build), holes(&floor), floor.version),
            "Attackers know these holes, and run their own code by them on a server that serves PHP.",
            remedy(php),
        )),
        Verdict::Unproven(floor) => findings.push(Finding::advice(
            "php_floor",
            format!("{} may have {}: PHP mended them in {}", name(&build), holes(&floor), floor.version),
            "This distribution mends PHP and leaves its number, and the table does not say which of its packages are mended.",
            how_to_find_out(&build, &floor),
        )),
        Verdict::Unlisted => findings.push(Finding::advice(
            "php_floor",
            format!("nothing is known of the holes of {}: the table of {} has no such branch", name(&build), table.date()),
            "A PHP before its first release gets no fixes but by the next build.",
            "Serve with a release, and give `--advisories` a table with a line for its branch.",
        )),
    }
    if table.is_outdated(machine.now) {
        findings.push(Finding::advice(
            "php_floor_date",
            format!("the table of PHP's versions is of {}, more than 90 days ago", table.date()),
            "Holes that were found since are in no line of it, so that a PHP with them passes for sound.",
            "Install a newer Regent, or give `regent doctor --advisories FILE` a newer table.",
        ));
    }
}

fn name(build: &Build) -> String {
    match &build.package {
        Some(package) => format!("PHP {} ({} {})", build.version, package.name, package.version),
        None => format!("PHP {}", build.version),
    }
}

fn holes(floor: &Floor) -> String {
    match floor.holes.as_slice() {
        [] => "known critical holes".to_owned(),
        holes => format!("known critical holes ({})", holes.join(", ")),
    }
}

/// By where the PHP is from.
fn remedy(php: &PhpFacts) -> String {
    let is_of_regent =
        php.library.as_deref().is_some_and(|library| library.starts_with(Path::new(OF_REGENT)));
    match &php.package {
        Some(package) => {
            format!("`apt update && apt install --only-upgrade {}`, then restart the server.", package.name)
        }
        None if is_of_regent => "Install a newer package of it (`make deb PHP=zts` makes one), or the engine of the distribution's PHP \
             (regent-php8.2); then restart the server."
            .to_owned(),
        None => "`make build PHP=zts` builds the newest PHP whose source can be had, and `make build PHP=system` takes the \
             distribution's; then restart the server."
            .to_owned(),
    }
}

fn how_to_find_out(build: &Build, floor: &Floor) -> String {
    let package = build.package.as_ref().map_or("libphp-embed", |package| package.name.as_str());
    let holes = floor.holes.first().map_or("CVE", String::as_str);
    format!(
        "`zgrep {holes} /usr/share/doc/{package}/changelog.Debian.gz` prints a line if it is mended; otherwise \
         `apt update && apt install --only-upgrade {package}`. A line in a table for `--advisories` says so for good."
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{machine, php, table, words};
    use super::*;
    use regent_php_floor::Package;
    use std::time::Duration;

    fn of(version: &str, package: Option<&str>, library: &str) -> String {
        let package = package
            .map(|version| Package { name: "libphp8.2-embed".to_owned(), version: version.to_owned() });
        let php = PhpFacts { version: version.to_owned(), package, library: Some(library.into()), ..php() };
        words(|found| check(&table(), &php, &machine(), found))
    }

    #[test]
    fn a_php_with_known_holes_is_a_problem_with_the_remedy_for_where_it_is_from() {
        let built = of("8.4.24", None, "/home/me/.cache/regent/php/8.4/lib/libphp.so");
        assert!(built.starts_with("Problem: PHP 8.4.24 has known critical holes (CVE-1, CVE-2)"), "{built}");
        assert!(built.contains("without is 8.4.28") && built.contains("make build PHP=zts"), "{built}");
        let of_regent = of("8.4.24", None, "/usr/lib/regent/php/lib/libphp.so");
        assert!(of_regent.contains("make deb"), "{of_regent}");
        let of_debian = of("8.2.35", Some("8.2.35-1~deb12u1"), "/usr/lib/libphp8.2.so");
        assert!(of_debian.contains("--only-upgrade libphp8.2-embed"), "{of_debian}");
    }

    #[test]
    fn a_php_that_is_mended_is_none() {
        assert_eq!(of("8.2.36", Some("8.2.36-1~deb12u1"), "/usr/lib/libphp8.2.so"), "");
        assert_eq!(of("8.4.28", None, "/opt/php/lib/libphp.so"), "");
    }

    #[test]
    fn of_what_the_table_does_not_know_there_is_advice() {
        let backport = of("8.2.10", Some("8.2.10-2ubuntu2.9"), "/usr/lib/libphp8.2.so");
        assert!(backport.starts_with("Advice: PHP 8.2.10"), "{backport}");
        assert!(backport.contains("zgrep CVE-1 /usr/share/doc/libphp8.2-embed/"), "{backport}");
        let candidate = of("8.6.0RC3", None, "/opt/php/lib/libphp.so");
        assert!(
            candidate.starts_with("Advice: nothing is known of the holes of PHP 8.6.0RC3"),
            "{candidate}"
        );
    }

    #[test]
    fn a_table_that_is_old_is_said() {
        let later = Machine { now: machine().now + Duration::from_secs(100 * 24 * 3600), ..machine() };
        let found = words(|found| check(&table(), &php(), &later, found));
        assert!(found.starts_with("Advice: the table of PHP's versions is of 2027-01-01"), "{found}");
    }
}
