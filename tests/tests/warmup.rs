//! `warmup`: what a worker's threads do before they take clients' requests.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, Thread, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// A worker script. Requests of the warm-up are noted in `$warmed` and handled by this PHP code; a client is told of
/// them, of the thread, and how many clients `$n` the script had.
fn worker(in_warm_up: &str) -> String {
    format!(
        "<?php $n = 0; $warmed = []; $handler = function () use (&$n, &$warmed) {{
            if (isset($_SERVER['REGENT_WARMUP'])) {{ $warmed[] = $_SERVER['REQUEST_URI']; {in_warm_up} return; }}
            $n++;
            echo json_encode(['warmed' => $warmed, 'thread' => $_SERVER['REGENT_THREAD'], 'n' => $n]);
        }};
        while (frankenphp_handle_request($handler)) {{ }}"
    )
}

/// A site whose requests all go to one worker, `app`; `options` are more lines of its block.
fn site(threads: u16, options: &str, in_warm_up: &str) -> Setup {
    site_with("", threads, options, in_warm_up)
}

/// With more lines of the `frankenphp` block.
fn site_with(lines: &str, threads: u16, options: &str, in_warm_up: &str) -> Setup {
    let block = format!("file ROOT/index.php\n\t\t\tname app\n\t\t\tnum {threads}\n\t\t\t{options}");
    let all = threads + 1;
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!(
            "num_threads {all}\n\t\tmax_threads 8\n\t\t{lines}\n\t\tworker {{\n\t\t\t{block}\n\t\t}}"
        ))
        .file("index.php", worker(in_warm_up))
}

/// Asks until so many threads have answered, and gives all answers.
fn answers_of(server: &Server, threads: usize) -> Vec<Value> {
    let mut answers = Vec::new();
    let mut seen = BTreeSet::new();
    until(&format!("{threads} threads answer"), || {
        let answer = server.get("/").expect(200).json();
        seen.insert(answer["thread"].as_str().expect("a number").to_owned());
        answers.push(answer);
        (seen.len() == threads).then_some(())
    });
    answers
}

fn add_thread(server: &Server) -> Response {
    server.admin().request("PUT", "/regent/threads?worker=app").send()
}

#[test]
fn every_thread_has_done_its_warm_up_before_it_serves() {
    let server = site(2, "warmup /up /health?deep=1", "").start();
    let expect_warm = |threads| {
        for answer in answers_of(&server, threads) {
            assert_eq!(answer["warmed"], json!(["/up", "/health?deep=1"]), "{answer}");
        }
    };
    expect_warm(2);
    add_thread(&server).expect(200);
    expect_warm(3);
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    expect_warm(3);
    server.stop();
}

#[test]
fn a_warm_up_request_looks_like_a_client_s() {
    let note = "file_put_contents($_SERVER['DOCUMENT_ROOT'] . '/warm', json_encode($_SERVER));";
    let server = site(1, "warmup /up?a=b", note).start();
    let script =
        "<?php $handler = function () { echo json_encode($_SERVER); }; frankenphp_handle_request($handler);";
    let warm: Value = serde_json::from_str(&server.wait_for_file("warm")).expect("whole JSON");
    server.write("index.php", script);
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    let mut conn = server.connect();
    conn.send("GET /up?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut of_client = conn.response().expect(200).json();
    assert_eq!(of_client["SERVER_ADDR"], json!(server.address().ip().to_string()));
    assert_eq!(warm["SERVER_ADDR"], json!("127.0.0.1"));
    // What is not the request's, and what no two requests have in common.
    let own =
        ["REMOTE_PORT", "SERVER_ADDR", "SERVER_PORT", "REQUEST_TIME", "REQUEST_TIME_FLOAT", "REGENT_THREAD"];
    own.iter().for_each(|name| of_client[*name] = warm[*name].clone());
    of_client["REGENT_WARMUP"] = json!("1");
    assert_eq!(warm, of_client);
    server.stop();
}

#[test]
fn a_thread_in_its_warm_up_takes_no_request_and_is_not_ready() {
    let hold = "$root = $_SERVER['DOCUMENT_ROOT']; if (!file_exists(\"$root/hold\")) { return; } \
                file_put_contents(\"$root/held\", '1'); \
                while (file_exists(\"$root/hold\")) { usleep(1000); clearstatcache(); }";
    let server = site(1, "warmup /up", hold).start();
    let only = answers_of(&server, 1).remove(0)["thread"].clone();
    server.write("hold", "1");
    add_thread(&server).expect(200);
    server.wait_for_file("held");
    for _ in 0..20 {
        assert_eq!(server.get("/").expect(200).json()["thread"], only);
    }
    let threads = &server.admin().pool("app")["threads"];
    assert_eq!((&threads["starting"], &threads["idle"]), (&json!(1), &json!(1)), "{threads}");
    fs::remove_file(server.root().join("hold")).expect("the file is ours");
    server.admin().wait_for_size("app", 2);
    answers_of(&server, 2);
    server.stop();
}

#[test]
fn a_thread_that_is_removed_leaves_its_warm_up_after_the_request_that_runs() {
    let script = "<?php $handler = function () { $root = $_SERVER['DOCUMENT_ROOT']; \
                  file_put_contents(\"$root/seen\", $_SERVER['REQUEST_URI'] . ' ', FILE_APPEND); \
                  while (file_exists(\"$root/hold\")) { usleep(1000); clearstatcache(); } }; \
                  while (frankenphp_handle_request($handler)) { }";
    let server = site(1, "warmup /a /b", "").file("index.php", script).start();
    let wait_for = |seen: &str| until(seen, || (server.wait_for_file("seen") == seen).then_some(()));
    wait_for("/a /b ");
    server.write("hold", "1");
    // A thread with a client is the last to be removed.
    let mut client = server.ask("/client");
    wait_for("/a /b /client ");
    add_thread(&server).expect(200);
    wait_for("/a /b /client /a ");
    server.admin().request("DELETE", "/regent/threads?worker=app").send().expect(200);
    let is_leaving = |thread: &Thread| thread.pool == "app" && thread.activity == "leaving";
    until("the thread is told to end", || server.admin().threads().iter().any(is_leaving).then_some(()));
    fs::remove_file(server.root().join("hold")).expect("the file is ours");
    client.response().expect(200);
    server.admin().wait_for_size("app", 1);
    wait_for("/a /b /client /a ");
    server.stop();
}

#[test]
fn a_warm_up_that_throws_is_logged_and_the_thread_serves() {
    let server = site(1, "warmup /up", "throw new LogicException('cold');").start();
    for n in 1..=3 {
        let answer = server.get("/").expect(200).json();
        assert_eq!((&answer["n"], &answer["warmed"]), (&json!(n), &json!([])), "a script without a warm-up");
    }
    server.wait_for_log("Uncaught LogicException: cold");
    server.wait_for_log("worker app: the warm-up request /up got 500");
    server.wait_for_log("worker app: its script ended in the warm-up");
    server.stop();
}

#[test]
fn a_warm_up_that_answers_with_an_error_is_logged_and_the_next_one_runs() {
    let fail = "http_response_code(count($warmed) === 1 ? 503 : 404); echo str_repeat('x', 1 << 20);";
    let server = site(1, "warmup /database\n\t\t\twarmup /nowhere", fail).start();
    assert_eq!(server.get("/").expect(200).json()["warmed"], json!(["/database", "/nowhere"]));
    server.wait_for_log("worker app: the warm-up request /database got 503");
    assert!(!server.log().contains("/nowhere"), "404 is no failure");
    server.stop();
}

#[test]
fn a_warm_up_that_takes_too_long_is_ended() {
    let limit = "php_ini max_execution_time 1";
    let server = site_with(limit, 1, "warmup /up", "while (true) { }").start();
    assert_eq!(server.get("/").expect(200).json()["n"], 1);
    server.wait_for_log("Maximum execution time of 1 second exceeded");
    server.stop();
}

#[test]
fn warm_up_is_not_counted_among_the_requests_of_clients() {
    let server = site_with("max_requests 2", 1, "warmup /a /b /c", "").start();
    for n in [1, 2, 1, 2, 1] {
        let answer = server.get("/").expect(200).json();
        assert_eq!((&answer["n"], &answer["warmed"]), (&json!(n), &json!(["/a", "/b", "/c"])));
    }
    let metrics = server.admin().get("/metrics").expect(200).text();
    assert!(!metrics.contains("\"/a\""), "{metrics}");
    let threads = server.admin().threads();
    assert_eq!(threads.iter().map(|thread| thread.requests).sum::<u64>(), 5, "{threads:?}");
    server.stop();
}
