//! `regent doctor`: findings about real configurations, with a real PHP.
#![forbid(unsafe_code)]

use regent_tests::{own_address, regent_command};
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
    let output = doctor(directory.path(), &caddyfile(directory.path(), ""), &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!text(&output).contains("PROBLEM"), "{}", text(&output));
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
