//! Which PHP the server under test has: the thread-safe one of tools/build-php, or with `REGENT_TEST_PHP=system` the
//! distribution's, whose engine answers requests in processes.

use regent_php_floor::{Build, Package, Table};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Its settings, of which the distribution makes the loading of opcache its own.
const SETTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/php.ini");

/// Whether each thread of PHP is a process.
pub fn is_in_processes() -> bool {
    std::env::var_os("REGENT_TEST_PHP").is_some_and(|php| php == "system")
}

/// Whether the server and `regent doctor` have to warn of this PHP.
pub fn has_known_holes() -> bool {
    let version = php_config("--version");
    let branch = version.rsplit_once('.').map_or("", |(branch, _)| branch);
    let package =
        Package::of(Path::new(&format!("/usr/lib/libphp{branch}.so"))).filter(|_| is_in_processes());
    Table::built_in().judge(&Build { version, package }).is_below()
}

/// What `php-config` of the engine's PHP answers to this option.
pub fn php_config(option: &str) -> String {
    let config =
        std::env::var_os("PHP_CONFIG").expect("PHP_CONFIG is set: make does it, see CONTRIBUTING.md");
    let output =
        Command::new(config).arg(option).output().expect("the php-config of PHP_CONFIG can be started");
    String::from_utf8(output.stdout).expect("it answers in UTF-8").trim().to_owned()
}

/// Nothing of the machine's configuration but the distribution's extensions, without which its PHP has little.
pub(crate) fn configure(command: &mut Command, directory: &Path) {
    if !is_in_processes() {
        // Otherwise the machine's own conf.d directory would be read.
        command.env("PHP_INI_SCAN_DIR", "");
        return;
    }
    let file = directory.join("php-of-the-test.ini");
    fs::write(&file, settings_without_opcache()).expect("the directory is ours");
    command.env("PHPRC", file);
}

/// The settings for a PHP that finds nothing by itself, with opcache from this file if it is there.
pub(crate) fn settings(opcache: &Path) -> String {
    let settings = settings_without_opcache();
    if opcache.is_file() { format!("{settings}zend_extension = {}\n", opcache.display()) } else { settings }
}

fn settings_without_opcache() -> String {
    let settings = fs::read_to_string(SETTINGS).expect("the settings belong to the source tree");
    let lines = settings.lines().filter(|line| !line.starts_with("zend_extension"));
    lines.map(|line| format!("{line}\n")).collect()
}
