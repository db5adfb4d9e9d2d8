//! The Caddyfile and the start of the container image: the variables of FrankenPHP's image mean the same.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};
use std::fs;
use std::path::Path;
use std::process::Command;

const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/image");

/// With the image's Caddyfile, on an address of the test's own.
fn container(setup: Setup, variables: &[(&str, &str)]) -> Server {
    // By its own name: Setup would fill in words that occur in it.
    fs::copy(Path::new(IMAGE).join("Caddyfile"), setup.directory().join("image.caddyfile")).unwrap();
    let setup = setup
        .arguments(&["run", "--config", "DIRECTORY/image.caddyfile"])
        .env("SERVER_NAME", "http://ADDRESS")
        .env("CADDY_GLOBAL_OPTIONS", "admin off")
        .env("SERVER_ROOT", "ROOT");
    variables.iter().fold(setup, |setup, (name, value)| setup.env(name, value)).start()
}

#[test]
fn the_variables_of_the_image_fill_in_its_caddyfile() {
    let setup = Setup::new()
        .file("index.php", "<?php echo ini_get('precision'), ' ', getenv('SERVER_ROOT') !== false;");
    let server = container(
        setup,
        &[
            ("FRANKENPHP_CONFIG", "num_threads 2\nphp_ini precision 9"),
            ("CADDY_SERVER_EXTRA_DIRECTIVES", "header X-Extra yes\nrespond /health ok"),
            ("CADDY_EXTRA_CONFIG", "(snippet) {\n\trespond snippet\n}"),
        ],
    );
    let response = server.get("/").expect(200);
    assert_eq!((response.text().as_str(), response.header("X-Extra")), ("9 1", Some("yes")));
    assert_eq!(server.get("/health").text(), "ok");
    server.stop();
}

#[test]
fn a_worker_is_named_by_a_variable() {
    let loop_of_worker =
        "<?php $n = 0; while (frankenphp_handle_request(function () use (&$n) { echo ++$n; }));";
    let setup = Setup::new().file("index.php", loop_of_worker);
    let worker = format!("worker {} 1", setup.root().join("index.php").display());
    let server = container(setup, &[("FRANKENPHP_CONFIG", &worker)]);
    assert_eq!([server.get("/").text(), server.get("/").text()], ["1", "2"]);
    server.stop();
}

#[test]
fn options_alone_are_the_servers_and_a_command_is_run_instead() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("regent"), "#!/bin/sh\necho \"regent $*\"\n").unwrap();
    let made = Command::new("chmod").arg("755").arg(directory.path().join("regent")).status().unwrap();
    assert!(made.success());
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let said = |arguments: &[&str]| {
        let entrypoint = Path::new(IMAGE).join("docker-php-entrypoint");
        let output = Command::new(entrypoint).args(arguments).env("PATH", &path).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(
        said(&["--config", "/etc/frankenphp/Caddyfile"]),
        "regent run --config /etc/frankenphp/Caddyfile\n"
    );
    assert_eq!(said(&["echo", "a command"]), "a command\n");
}
