//! The cache of compiled scripts, and that of paths.

use crate::{Finding, Machine, PhpFacts};

const LEAST_MEMORY_MIB: i64 = 128;
const LEAST_STRINGS_MIB: i64 = 16;
/// PHP's own default; that of a framework has thousands of paths.
const LEAST_REALPATH_CACHE: i64 = 4 << 20;
/// Fewer scripts than that fit into any cache.
const FEW_SCRIPTS: u64 = 500;

pub(super) fn check(php: &PhpFacts, machine: &Machine, findings: &mut Vec<Finding>) {
    let scripts = machine.applications.iter().map(|application| application.scripts).sum();
    if !php.has("Zend OPcache") || !php.is_on("opcache.enable") {
        findings.push(Finding::problem(
            "opcache",
            "opcache is off",
            "Every request compiles every script that it includes, which takes most of its time.",
            "Set `zend_extension = opcache` (before PHP 8.5) and `opcache.enable = 1` in php.ini.",
        ));
    } else {
        check_sizes(php, scripts, findings);
    }
    let realpath_cache = php.number("realpath_cache_size").unwrap_or(0);
    if realpath_cache < LEAST_REALPATH_CACHE && scripts > FEW_SCRIPTS {
        findings.push(Finding::advice(
            "realpath_cache",
            format!("realpath_cache_size is {} KiB for {scripts} scripts", realpath_cache >> 10),
            "A path that the cache has no room for is looked up in the file system at each request.",
            "Set `realpath_cache_size = 4096K` and `realpath_cache_ttl = 600` in php.ini.",
        ));
    }
}

fn check_sizes(php: &PhpFacts, scripts: u64, findings: &mut Vec<Finding>) {
    let most_scripts = php.number("opcache.max_accelerated_files").unwrap_or(0);
    if scripts > u64::try_from(most_scripts).unwrap_or(0) {
        findings.push(Finding::problem(
            "opcache_files",
            format!(
                "opcache.max_accelerated_files is {most_scripts}, and the applications have {scripts} scripts"
            ),
            "Scripts beyond that number are compiled at each request; a full cache starts a new engine.",
            format!(
                "Set `opcache.max_accelerated_files = {}` in php.ini.",
                rounded_up(scripts + scripts / 2)
            ),
        ));
    }
    let memory = php.number("opcache.memory_consumption").unwrap_or(0);
    if memory < LEAST_MEMORY_MIB && scripts > FEW_SCRIPTS {
        findings.push(Finding::advice(
            "opcache_memory",
            format!("opcache.memory_consumption is {memory} MiB for {scripts} scripts"),
            "A full cache starts a new engine, which begins with an empty one.",
            "Set `opcache.memory_consumption = 192` in php.ini; for very large applications 256 or more.",
        ));
    }
    let strings = php.number("opcache.interned_strings_buffer").unwrap_or(0);
    if strings < LEAST_STRINGS_MIB && scripts > FEW_SCRIPTS {
        findings.push(Finding::advice(
            "opcache_strings",
            format!("opcache.interned_strings_buffer is {strings} MiB for {scripts} scripts"),
            "Strings beyond it are kept once for each script instead of once for all.",
            "Set `opcache.interned_strings_buffer = 16` in php.ini.",
        ));
    }
}

fn rounded_up(number: u64) -> u64 {
    number.next_multiple_of(10_000)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{machine, php, php_with, words};
    use super::*;
    use crate::machine::Application;

    fn with_scripts(scripts: u64) -> Machine {
        Machine { applications: vec![Application { scripts, ..Default::default() }], ..machine() }
    }

    #[test]
    fn a_cache_that_is_off_or_not_loaded_is_a_problem() {
        let off = words(|found| check(&php_with("opcache.enable", "0"), &machine(), found));
        assert!(off.starts_with("Problem: opcache is off"), "{off}");
        let mut php = php();
        php.extensions.retain(|name| name != "Zend OPcache");
        assert!(words(|found| check(&php, &machine(), found)).contains("opcache is off"));
    }

    #[test]
    fn a_cache_has_to_have_room_for_all_scripts() {
        assert_eq!(words(|found| check(&php(), &with_scripts(20_000), found)), "");
        let small = words(|found| check(&php(), &with_scripts(25_000), found));
        assert!(small.contains("max_accelerated_files = 40000"), "{small}");
    }

    #[test]
    fn small_caches_matter_to_large_applications_only() {
        for (name, value) in [
            ("opcache.memory_consumption", "64"),
            ("opcache.interned_strings_buffer", "8"),
            ("realpath_cache_size", "16K"),
        ] {
            let php = php_with(name, value);
            assert_eq!(words(|found| check(&php, &with_scripts(20), found)), "", "{name}");
            let large = words(|found| check(&php, &with_scripts(3000), found));
            assert!(large.starts_with("Advice") && large.contains(name), "{large}");
        }
    }
}
