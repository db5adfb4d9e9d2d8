//! What PHP's modules forget at the end of a script, a worker forgets at the end of a request.
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_tree, fixture};
use regent_tests::{Server, Setup, percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where each module is gone through.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/design/worker-modules.md");

/// One thread, so that the next request meets what the one before has left.
fn start(worker: &str) -> Server {
    let setup = Setup::new()
        .php_options(&format!(
            "num_threads 2\n\t\tphp_ini session.save_path DIRECTORY/sessions\n\t\t{worker}"
        ))
        .site("php_server {\n\t\troot ROOT\n\t}")
        .file("plain.txt", "plain");
    copy_tree(&fixture("worker_modules"), &setup.root());
    fs::create_dir_all(setup.directory().join("sessions")).expect("the directory is the test's own");
    setup.start()
}

fn start_worker() -> Server {
    start("worker {\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t}")
}

fn names(server: &Server, page: &str, what: &str) -> Vec<String> {
    let all = server.get(page).expect(200).json();
    all[what]
        .as_array()
        .expect("a list")
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect()
}

/// What each probe sees after a request that has left something behind.
fn look(server: &Server, page: &str) -> BTreeMap<String, Value> {
    let ask = |what: &str, name: &str| {
        let answer = server.get(&format!("{page}?{what}={}", percent_encode(name)));
        assert_eq!(answer.status, 200, "{what} {name}: {}", answer.text());
        answer
    };
    let probes = names(server, page, "probes").into_iter();
    probes
        .map(|name| {
            ask("leave", &name);
            let seen = ask("look", &name).json();
            (name, seen)
        })
        .collect()
}

#[test]
fn a_worker_kept_what_the_modules_of_php_forget_after_a_script() {
    let server = start_worker();
    let (of_worker, of_classic) = (look(&server, "/worker.php"), look(&server, "/index.php"));
    assert_eq!(of_worker, of_classic);
    assert!(of_classic.len() > 15, "{of_classic:?}");
    server.stop();
}

#[test]
fn every_module_that_is_loaded_has_been_gone_through() {
    let server = start("");
    let page = fs::read_to_string(Path::new(PAGE)).expect("the page is there");
    let known: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|cell| cell.split(", "))
        .collect();
    for module in names(&server, "/index.php", "modules") {
        assert!(
            known.contains(&format!("`{module}`").as_str()),
            "docs/design/worker-modules.md knows no {module}"
        );
    }
    server.stop();
}

#[test]
fn a_page_was_compressed_for_who_had_not_asked_because_the_client_before_had() {
    let worker = "<?php while (frankenphp_handle_request(function () {
        ob_start('ob_gzhandler');
        echo str_repeat('a page that can be compressed ', 100);
    })) { }";
    check_coding(worker, "");
}

#[test]
fn zlib_output_compression_never_compressed_in_a_worker() {
    let worker = "<?php while (frankenphp_handle_request(function () {
        echo str_repeat('a page that can be compressed ', 100);
    })) { }";
    check_coding(worker, "php_ini zlib.output_compression On");
}

/// Gzip for those who ask for it, and for no other.
fn check_coding(worker: &str, settings: &str) {
    let server = Setup::new()
        .php_options(&format!(
            "num_threads 2\n\t\t{settings}\n\t\tworker {{\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}}"
        ))
        .file("index.php", worker)
        .start();
    for _ in 0..2 {
        let coded = server.request("GET", "/").header("Accept-Encoding", "gzip").send().expect(200);
        assert_eq!(coded.header("content-encoding"), Some("gzip"));
        assert!(coded.body.starts_with(&[0x1f, 0x8b]) && coded.body.len() < 1000);
        let plain = server.get("/").expect(200);
        assert_eq!(plain.header("content-encoding"), None);
        assert!(plain.text().starts_with("a page"));
    }
    server.stop();
}
