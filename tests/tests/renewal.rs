//! Threads whose scripts start anew of their own accord: after so many requests, so much memory, so long a time.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};

/// Counts its requests, and keeps four megabytes for each that asks for it.
const WORKER: &str = "<?php $kept = []; $count = 0; \
    while (frankenphp_handle_request(function () use (&$kept, &$count) { \
        if (isset($_GET['leak'])) { $kept[] = str_repeat('x', 4 << 20); } \
        echo ++$count; \
    })) {}";

fn started(limit: &str) -> Server {
    Setup::new()
        .php_options(&format!(
            "num_threads 2\n\t\tmax_wait_time off\n\t\t{limit}\n\t\tworker ROOT/worker.php 1"
        ))
        .file("worker.php", WORKER)
        .file("index.php", "<?php echo strlen(str_repeat('x', 64 << 20)), ' ', getmypid();")
        .start()
}

fn counts(server: &Server, target: &str, requests: usize) -> Vec<String> {
    (0..requests).map(|_| server.get(target).expect(200).text()).collect()
}

#[test]
fn a_worker_that_keeps_too_much_memory_starts_anew_and_no_request_is_lost() {
    let server = started("max_memory 18MiB");
    let engine = server.engine();
    assert_eq!(counts(&server, "/worker.php?leak", 10), ["1", "2", "3", "4", "5", "1", "2", "3", "4", "5"]);
    assert_eq!(counts(&server, "/worker.php", 3), ["1", "2", "3"]);
    assert_eq!(server.engine(), engine, "only the script is another");
    server.stop();
}

#[test]
fn what_a_classic_script_has_allocated_is_given_back_by_php_itself() {
    let server = started("max_memory 18MiB");
    let first = server.get("/index.php").expect(200).text().to_owned();
    assert!(first.starts_with(&format!("{} ", 64 << 20)), "{first}");
    for _ in 0..3 {
        assert_eq!(server.get("/index.php").expect(200).text(), first, "it is the same process");
    }
    server.stop();
}

#[test]
fn a_worker_starts_anew_after_its_requests() {
    let server = started("max_requests 3");
    assert_eq!(counts(&server, "/worker.php", 7), ["1", "2", "3", "1", "2", "3", "1"]);
    server.stop();
}

#[test]
fn a_worker_that_is_too_old_starts_anew() {
    let server = started("max_age 200ms");
    assert_eq!(server.get("/worker.php").text(), "1");
    let mut last = 1;
    until("the script is another", || {
        let count: u64 = server.get("/worker.php").expect(200).text().parse().expect("a number");
        let is_new = count <= last;
        last = count;
        is_new.then_some(())
    });
    server.stop();
}
