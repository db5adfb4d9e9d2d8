//! `regent doctor`: findings about real configurations, with a real PHP.
#![forbid(unsafe_code)]

use regent_tests::{own_address, php, regent_command};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

/// Of this Caddyfile in this directory.
fn doctor(directory: &Path, caddyfile: &str, arguments: &[&str]) -> Output {
    fs::write(directory.join("Caddyfile"), caddyfile).unwrap();
    regent_command(directory).arg("doctor").args(arguments).output().expect("regent can be run")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A site that has all it needs, with these lines in the `regent` block.
fn caddyfile(directory: &Path, options: &str) -> String {
    let root = directory.join("public");
    fs::create_dir_all(&root).unwrap();
    let address = own_address();
    format!(
        "{{\n\tadmin off\n\tregent {{\n\t\tphp_ini display_errors 0\n{options}\n\t}}\n}}\n\
         http://{address} {{\n\troot {}\n\tphp_server\n}}\n",
        root.display()
    )
}

#[test]
fn a_sound_configuration_has_no_problem() {
    let directory = tempfile::tempdir().unwrap();
    // That of the thread-safe PHP may be one with known holes, which is a problem of its own.
    fs::write(directory.path().join("table.json"), table("0")).unwrap();
    let output = doctor(directory.path(), &caddyfile(directory.path(), ""), &["--advisories", "table.json"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!text(&output).contains("PROBLEM"), "{}", text(&output));
}

/// A table in which each branch has its release of this number as the lowest without holes.
fn table(patch: &str) -> String {
    let branch =
        |branch| format!(r#"{{"branch": "{branch}", "floor": "{branch}.{patch}", "holes": ["CVE-2000-1"]}}"#);
    let branches = ["8.2", "8.3", "8.4", "8.5", "8.6"].map(branch).join(", ");
    format!(r#"{{"date": "2026-11-27", "branches": [{branches}]}}"#)
}

#[test]
fn a_php_with_known_holes_is_a_problem_by_whatever_table_says_so() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("table.json"), table("999")).unwrap();
    let output = doctor(directory.path(), &caddyfile(directory.path(), ""), &["--advisories", "table.json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(
        said.contains("has known critical holes (CVE-2000-1): the lowest version without is 8."),
        "{said}"
    );
    let remedy =
        if php::is_in_processes() { "apt install --only-upgrade libphp8." } else { "make build PHP=zts" };
    assert!(said.contains(remedy), "{said}");
}

#[test]
fn a_table_comes_by_the_standard_input_too() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Caddyfile"), caddyfile(directory.path(), "")).unwrap();
    let file = directory.path().join("table.json");
    fs::write(&file, table("999").replace("2026-11-27", "2020-02-02")).unwrap();
    let mut command = regent_command(directory.path());
    let output = command
        .args(["doctor", "--advisories", "-", "--json"])
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let checks: Vec<_> =
        report["findings"].as_array().unwrap().iter().filter_map(|of| of["check"].as_str()).collect();
    assert!(checks.contains(&"php_floor") && checks.contains(&"php_floor_date"), "{checks:?}");
}

#[test]
fn a_table_that_cannot_be_read_is_a_problem_and_the_one_that_is_built_in_takes_its_place() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("table.json"), "{\"date\": 1}").unwrap();
    for (file, expected) in
        [("table.json", "reading table.json: it is no table"), ("none.json", "reading none.json")]
    {
        let output = doctor(directory.path(), &caddyfile(directory.path(), ""), &["--advisories", file]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output);
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.contains("known critical holes"), php::has_known_holes(), "{said}");
    }
}

#[test]
fn settings_of_php_are_asked_of_php_and_overridden_by_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let options = "php_ini opcache.enable 0\n php_ini display_errors On\n php_ini memory_limit \"-1\"";
    let output = doctor(directory.path(), &caddyfile(directory.path(), options), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let findings = report["findings"].as_array().unwrap();
    let checks: Vec<_> = findings.iter().filter_map(|finding| finding["check"].as_str()).collect();
    for expected in ["opcache", "display_errors", "memory_limit"] {
        assert!(checks.contains(&expected), "{checks:?}");
    }
    assert!(findings.iter().all(|finding| !finding["remedy"].as_str().unwrap().is_empty()));
}

#[test]
fn an_address_that_is_taken_a_missing_root_and_a_whole_project_are_problems() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("app");
    fs::create_dir_all(project.join("public")).unwrap();
    fs::write(project.join("composer.json"), "{}").unwrap();
    fs::write(project.join("public/index.php"), "").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let text_of_it = format!(
        "{{\n\tadmin off\n}}\nhttp://{} {{\n\troot nowhere\n\troot /app/* app\n\tphp_server\n}}\n",
        taken.local_addr().unwrap()
    );
    let output = doctor(directory.path(), &text_of_it, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    for expected in [" listens on 127.0.0.1:", "the root nowhere is no directory", "Write `root app/public`"]
    {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_configuration_that_is_wrong_is_the_finding() {
    let directory = tempfile::tempdir().unwrap();
    let output = doctor(directory.path(), "http://:8080 {\n\tnonsense\n}\n", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("Caddyfile:2:2"), "{}", text(&output));
}

#[test]
fn an_engine_that_does_not_start_is_a_problem_beside_the_others() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Caddyfile"), caddyfile(directory.path(), "")).unwrap();
    let output =
        regent_command(directory.path()).env("REGENT_ENGINE", "/nonexistent").arg("doctor").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("/nonexistent cannot be started"), "{}", text(&output));
}
