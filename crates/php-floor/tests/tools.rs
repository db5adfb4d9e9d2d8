//! What the tools say of a version, by the same table.

use regent_php_floor::{Build, Table};
use std::process::Command;

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/php-floor.sh");

#[test]
fn the_tools_judge_a_version_as_the_server_does() {
    for version in [
        "7.4.33",
        "8.1.34",
        "8.2.35",
        "8.2.36",
        "8.3.6",
        "8.3.37",
        "8.4.9",
        "8.4.24",
        "8.4.28",
        "8.4.28RC1",
        "8.4.28-dev",
        "8.4.29RC1",
        "8.4.100",
        "8.5.7",
        "8.5.13",
        "8.5.0alpha4",
        "8.6.0RC3",
        "8.6.0-dev",
        "9.0.0",
    ] {
        let script = format!(". {TOOLS}; php_is_below_floor {version}");
        let status = Command::new("bash").args(["-euc", &script]).status().expect("bash can be run");
        let build = Build { version: version.to_owned(), package: None };
        assert_eq!(status.success(), Table::built_in().judge(&build).is_below(), "{version}");
    }
}
