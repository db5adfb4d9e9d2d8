//! Workers start anew when the files that they watch change.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use std::fs;

/// Loads its text once, at boot.
const WORKER: &str = "<?php $text = include __DIR__ . '/text.php'; \
                      while (frankenphp_handle_request(function () use ($text) { echo $text; })) {}";

fn text(text: &str) -> String {
    format!("<?php return '{text}';")
}

fn started(watch: &str) -> Server {
    Setup::new()
        .php_options(&format!(
            "num_threads 2\n\t\tmax_wait_time off\n\t\tworker {{\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t\t{watch}\n\t\t}}"
        ))
        .file("worker.php", WORKER)
        .file("text.php", text("first"))
        .start()
}

fn answers(server: &Server, wanted: &str) {
    until("the workers have loaded what has changed", || {
        (server.get("/worker.php").text() == wanted).then_some(())
    });
}

#[test]
fn a_changed_file_is_loaded_by_the_workers_and_others_change_nothing() {
    let server = started("watch ROOT/**/*.php");
    let engine = server.engine();
    assert_eq!(server.get("/worker.php").text(), "first");
    server.write("notes.txt", "nothing that is watched");
    server.write("text.php", text("second"));
    answers(&server, "second");
    server.wait_for_log("text.php: the workers start anew");
    assert!(!server.log().contains("notes.txt"), "{}", server.log());
    assert_ne!(server.engine(), engine, "it is another process");
    // As many editors save: a new file takes the place of the old one.
    server.write("text.php.tmp", text("third"));
    fs::rename(server.root().join("text.php.tmp"), server.root().join("text.php")).unwrap();
    answers(&server, "third");
    server.stop();
}

#[test]
fn watch_alone_watches_the_php_files_below_the_working_directory() {
    // Which is the one above the site's root.
    let server = started("watch");
    server.write("text.php", text("second"));
    answers(&server, "second");
    server.stop();
}

#[test]
fn a_change_that_breaks_the_worker_leaves_the_one_before_until_it_is_mended() {
    let server = started("watch ROOT/*.php\n\t\t\tmax_consecutive_failures 1");
    assert_eq!(server.get("/worker.php").text(), "first");
    server.write("text.php", "<?php this is wrong");
    server.wait_for_log("the workers were not started anew, and those before go on");
    assert_eq!(server.get("/worker.php").text(), "first");
    server.write("text.php", text("mended"));
    answers(&server, "mended");
    server.stop();
}

#[test]
fn a_reload_begins_and_ends_the_watching() {
    let caddyfile = |watch: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 2\n\t\tmax_wait_time off\n\t\tworker {{\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t\t{watch}\n\t\t}}\n\t}}\n}}\n\
             http://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\tphp_server\n}}\n"
        )
    };
    let setup = Setup::new().caddyfile(&caddyfile("name w"));
    let server = setup.file("worker.php", WORKER).file("text.php", text("first")).start();
    let engine = server.engine();
    server.write_caddyfile(&caddyfile("name w\n\t\t\twatch ROOT"));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert_eq!(server.engine(), engine, "an engine does not care");
    server.write("text.php", text("second"));
    answers(&server, "second");
    server.stop();
}

#[test]
fn a_server_without_a_caddyfile_watches_too() {
    let arguments = [
        "php-server",
        "-r",
        "ROOT",
        "-l",
        "ADDRESS",
        "-w",
        "ROOT/worker.php,1",
        "--watch",
        "www/*.{php,twig}",
    ];
    let setup = Setup::new().arguments(&arguments);
    let server = setup.file("worker.php", WORKER).file("text.php", text("first")).start();
    assert_eq!(server.get("/worker.php").text(), "first");
    server.write("text.php", text("second"));
    answers(&server, "second");
    server.stop();
}
