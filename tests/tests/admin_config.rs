//! The configuration by the admin API: read, adapted, replaced, and kept for the next start.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, regent_command};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A site that responds with this, and an admin listener.
fn caddyfile(options: &str, text: &str) -> String {
    format!("{{\n\tadmin ADMIN\n\t{options}\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\trespond {text}\n}}\n")
}

fn filled_in(server: &Server, caddyfile: &str) -> String {
    caddyfile
        .replace("ADMIN", &server.admin().address().to_string())
        .replace("LOOPBACK", &server.address().ip().to_string())
        .replace("PORT", &server.address().port().to_string())
}

fn send(server: &Server, method: &str, target: &str, fields: &[(&str, &str)], caddyfile: &str) -> Response {
    let mut request = server.admin().request(method, target);
    for (name, value) in fields {
        request = request.header(name, *value);
    }
    request.body("text/caddyfile", filled_in(server, caddyfile)).send()
}

#[test]
fn a_caddyfile_is_adapted_and_nothing_changes() {
    let server = Setup::new().caddyfile(&caddyfile("", "first")).start();
    let other = caddyfile("", "other");
    let adapted = send(&server, "POST", "/adapt", &[], &other).expect(200).json();
    fs::write(server.directory().join("Other"), filled_in(&server, &other)).unwrap();
    let output = regent_command(server.directory()).args(["adapt", "--config", "Other"]).output().unwrap();
    let by_command: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(adapted, json!({ "result": by_command, "warnings": [] }));
    let wrong = send(&server, "POST", "/adapt", &[], "http://:PORT {\n\tnonsense\n}\n").expect(400).json();
    assert!(wrong["error"].as_str().unwrap().contains("Caddyfile (body):2:2"), "{wrong}");
    assert_eq!(server.get("/").text(), "first");
    server.stop();
}

#[test]
fn the_admin_api_tells_no_text_of_the_files_that_it_is_told_to_read() {
    let server = Setup::new().caddyfile(&caddyfile("", "first")).start();
    fs::write(server.directory().join("imported"), "open:x:sesame !\n").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, "open:x:sesame !\n").unwrap();
    let outside = format!("import {}\n", secret.display());
    let placeholder = format!("{{\ndefault_sni {{file.{}}}\n}}\n", secret.display());
    // Written so that no line has the placeholder.
    let behind_a_line = format!("{{\ndefault_sni \"\n{{file.{}}}\"\n}}\n", secret.display());
    let made = format!("{{\ndefault_sni {{{{$NOPE}}file.{}}}\n}}\n", secret.display());
    let elsewhere_in_it = format!("{{\ndefault_sni {{file.{}}}\nhttp_port many\n}}\n", secret.display());
    for (target, body, place) in [
        ("/adapt", outside.as_str(), "Caddyfile (body):1:8"),
        ("/load", &outside, "Caddyfile (body):1:8"),
        ("/config/", &outside, "Caddyfile (body):1:8"),
        ("/adapt", &placeholder, "Caddyfile (body):2:13"),
        ("/load", &placeholder, "Caddyfile (body):2:13"),
        ("/load", &behind_a_line, "Caddyfile (body):2:13"),
        ("/load", &made, "Caddyfile (body):2:13"),
        ("/load", &elsewhere_in_it, "Caddyfile (body):2:13"),
        ("/adapt", "http://:1 {\n\timport imported\n}\n", "imported:1:1"),
        ("/load", "http://:1 {\n\timport imported\n}\n", "imported:1:1"),
        (&format!("/regent/reload?config={}", secret.display()), "", "secret:1:"),
        (&format!("/regent/reload?adapter=json&config={}", secret.display()), "", "secret:1:1"),
    ] {
        let response = send(&server, "POST", target, &[], body).expect(400).text();
        assert!(response.contains(place) && !response.contains("sesame"), "{target} {body}: {response}");
    }
    let origins = format!("{{\nadmin localhost:1 {{\norigins {{file.{}}}\n}}\n}}\n", secret.display());
    let response = send(&server, "POST", "/adapt", &[], &origins).expect(400).text();
    assert!(response.contains("configuration's directory") && !response.contains("sesame"), "{response}");
    assert_eq!(server.get("/").text(), "first");
    // Who may read the file is told by the command.
    let address = server.admin().address().to_string();
    let mut command = regent_command(server.directory());
    let output = command.args(["reload", "--address", &address, "--config"]).arg(&secret).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("open:x:sesame"), "{told}");
    server.stop();
}

#[test]
fn the_configuration_is_replaced_as_a_whole_unless_it_is_another_by_then() {
    let server = Setup::new().caddyfile(&caddyfile("", "first")).start();
    let tag = |path| server.admin().get(path).expect(200).header("etag").expect("a tag").to_owned();
    let read = tag("/config/");
    send(&server, "POST", "/config/", &[("If-Match", &read)], &caddyfile("", "second")).expect(200);
    assert_eq!(server.get("/").text(), "second");
    let late = send(&server, "PATCH", "/config/", &[("If-Match", &read)], &caddyfile("", "third"));
    assert!(late.expect(412).json()["error"].as_str().unwrap().contains("has changed"));
    assert_eq!(server.get("/").text(), "second");
    // A part that is still the same is no obstacle.
    let part = tag("/config/admin");
    send(&server, "PATCH", "/config/", &[("If-Match", &part)], &caddyfile("", "third")).expect(200);
    assert_eq!(server.get("/").text(), "third");
    send(&server, "PUT", "/config/", &[], &caddyfile("", "fourth")).expect(409);
    send(&server, "POST", "/config/apps/http", &[], &caddyfile("", "fourth")).expect(415);
    server.admin().request("DELETE", "/config/").send().expect(200);
    assert!(regent_tests::Conn::try_open(server.address()).is_err(), "nothing is served");
    assert_eq!(server.admin().get("/config/").expect(200).text().trim(), "null");
    send(&server, "PUT", "/config/", &[], &caddyfile("", "fourth")).expect(200);
    assert_eq!(server.get("/").text(), "fourth");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert_eq!(server.get("/").text(), "first");
    server.stop();
}

/// `run`, with this option or without it.
fn run(directory: &Path, options: &[&str]) -> Command {
    let mut command = regent_command(directory);
    command.args(["run", "--config"]).arg(directory.join("Caddyfile")).args(options);
    command
}

#[test]
fn what_was_loaded_last_is_resumed() {
    let server = Setup::new().caddyfile(&caddyfile("", "first")).file("is-it-ready.txt", "").start();
    send(&server, "POST", "/load", &[], &caddyfile("", "second")).expect(200);
    let server = server.restart(|directory| run(directory, &["--resume"]));
    assert_eq!(server.get("/").text(), "second");
    let server = server.restart(|directory| run(directory, &[]));
    assert_eq!(server.get("/").text(), "first", "only where it is asked for");

    let other = server.directory().join("Other");
    fs::write(&other, filled_in(&server, &caddyfile("", "third"))).unwrap();
    let target = format!("/regent/reload?config={}", other.display());
    server.admin().request("POST", &target).send().expect(200);
    let server = server.restart(|directory| run(directory, &["--resume"]));
    assert_eq!(server.get("/").text(), "third");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    let server = server.restart(|directory| run(directory, &["--resume"]));
    assert_eq!(server.get("/").text(), "first", "its own file was loaded last");
    server.stop();
}

#[test]
fn nothing_is_kept_where_that_is_off() {
    let server = Setup::new().caddyfile(&caddyfile("", "first")).start();
    send(&server, "POST", "/load", &[], &caddyfile("persist_config off", "second")).expect(200);
    assert_eq!(server.get("/").text(), "second");
    assert!(!server.directory().join(".config/regent/autosave.json").exists());
    let server = server.restart(|directory| run(directory, &["--resume"]));
    assert_eq!(server.get("/").text(), "first");
    server.stop();
}
