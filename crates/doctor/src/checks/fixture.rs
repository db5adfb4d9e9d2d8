//! A machine, a PHP and a configuration with which nothing is wrong, for tests to change.

use crate::machine::{Kernel, Machine};
use crate::{Finding, PhpFacts};
use regent_config::{Config, Environment};
use regent_engines::ThreadCounts;
use regent_php_floor::Table;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

pub const GIB: u64 = 1 << 30;

pub fn php() -> PhpFacts {
    let settings = [
        ("display_errors", "0"),
        ("expose_php", "0"),
        ("memory_limit", "128M"),
        ("opcache.enable", "1"),
        ("opcache.interned_strings_buffer", "16"),
        ("opcache.max_accelerated_files", "20000"),
        ("opcache.memory_consumption", "192"),
        ("post_max_size", "8M"),
        ("realpath_cache_size", "4096K"),
        ("upload_max_filesize", "2M"),
        ("zend.assertions", "-1"),
    ];
    let setting = |(name, value): (&str, &str)| (name.to_owned(), Some(value.to_owned()));
    PhpFacts {
        threads: true,
        version: "8.4.28".into(),
        ini: Some("/etc/php.ini".into()),
        settings: settings.into_iter().map(setting).collect(),
        extensions: vec!["Core".into(), "Zend OPcache".into()],
        ..PhpFacts::default()
    }
}

/// The same with one setting changed.
pub fn php_with(name: &str, value: &str) -> PhpFacts {
    let mut php = php();
    php.settings.insert(name.into(), Some(value.into()));
    php
}

pub fn machine() -> Machine {
    Machine {
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        uid: 33,
        php: Ok(php()),
        threads: Ok(ThreadCounts { least: 8, most: 8 }),
        memory_limit: Some(8 * GIB),
        open_files: 1 << 20,
        somaxconn: Some(4096),
        transparent_hugepages: Some("madvise".into()),
        overcommit: Some(0),
        kernel: Kernel {
            limits_files: true,
            limits_truncation: true,
            limits_signals: true,
            filters_calls: true,
        },
        set_id_mailers: Vec::new(),
        temporary_files: "/tmp".into(),
        ports: Vec::new(),
        directories: Vec::new(),
        certificates: Vec::new(),
        keys: Vec::new(),
        applications: Vec::new(),
        passed_over: Vec::new(),
    }
}

/// Of a fortnight before the machine's time.
pub fn table() -> Table {
    let text = r#"{"date": "2027-01-01", "branches": [
        {"branch": "8.2", "floor": "8.2.36", "holes": ["CVE-1", "CVE-2"]},
        {"branch": "8.4", "floor": "8.4.28", "holes": ["CVE-1", "CVE-2"]}
    ]}"#;
    Table::from_json(text).expect("it is valid")
}

pub fn config(text: &str) -> Config {
    let environment = Environment { variables: BTreeMap::new(), current_dir: "/srv".into() };
    regent_config::parse("Caddyfile", text, Path::new("/srv"), &environment).expect("it is valid").config
}

/// What a check finds.
pub fn found(check: impl FnOnce(&mut Vec<Finding>)) -> Vec<Finding> {
    let mut findings = Vec::new();
    check(&mut findings);
    findings
}

/// The same as one text, empty if nothing is found.
pub fn words(check: impl FnOnce(&mut Vec<Finding>)) -> String {
    let lines = found(check)
        .into_iter()
        .map(|finding| format!("{:?}: {} {}", finding.severity, finding.what, finding.remedy));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn with_which_nothing_is_wrong() {
    let config = config(
        "{\n\tregent {\n\t\trequest_timeout 60s\n\t}\n}\nhttp://:8080 {\n\troot /srv\n\tphp_server\n}\n",
    );
    assert_eq!(super::examine(&config, &machine(), &table()), []);
}

#[test]
fn without_an_engine_the_rest_is_checked_all_the_same() {
    let config = config("http://:8080 {\n\tphp_server\n}\n");
    let machine = Machine { php: Err("no such file".into()), somaxconn: Some(128), ..machine() };
    let checks: Vec<_> =
        super::examine(&config, &machine, &table()).iter().map(|finding| finding.check).collect();
    assert_eq!(checks, ["php", "somaxconn"]);
}
