//! How the server stops: nothing that runs is lost, and an impatient operator is heard.
#![forbid(unsafe_code)]

use regent_tests::process::runs;
use regent_tests::{Conn, Server, Setup, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A script that says when it has started and runs until the file `go` is there.
const UNTIL_GO: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
                        while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'finished';";

/// A server with a request that runs.
fn busy_server(setup: Setup) -> (Server, Conn) {
    let server = setup.file("busy.php", UNTIL_GO).file("index.php", "<?php echo 'ok';").start();
    let mut conn = server.connect();
    conn.send("GET /busy.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    (server, conn)
}

/// Waits until the server has begun to stop: it takes no more connections.
fn wait_until_it_stops_listening(server: &Server) {
    until("new connections are refused", || Conn::try_open(server.address()).is_err().then_some(()));
}

fn engine_is_gone(engine: u32) {
    until("the engine has ended", || (!runs(engine, "regent-php")).then_some(()));
}

#[test]
fn sigterm_lets_running_requests_finish() {
    let (mut server, mut conn) = busy_server(Setup::new());
    let engine = server.engine();
    server.signal(Signal::TERM);
    wait_until_it_stops_listening(&server);
    server.write("go", "now");
    assert_eq!(conn.response().expect(200).text(), "finished");
    assert!(conn.is_closed());
    assert!(server.wait().success());
    engine_is_gone(engine);
}

#[test]
fn the_last_words_of_workers_are_logged() {
    const WORKER: &str =
        "<?php while (frankenphp_handle_request(fn () => print 'ok')) {} error_log('my last words');";
    let setup = Setup::new().file("worker.php", WORKER).php_options("worker ROOT/worker.php 2");
    let mut server = setup.start();
    server.get("/worker.php").expect(200);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert_eq!(server.log().matches("my last words").count(), 2, "{}", server.log());
}

#[test]
fn sigterm_lets_waiting_requests_run() {
    let (mut server, mut busy) = busy_server(Setup::new().php_options("num_threads 1"));
    let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for conn in &mut waiting {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.wait_until_read();
    }
    server.signal(Signal::TERM);
    wait_until_it_stops_listening(&server);
    server.write("go", "now");
    busy.response().expect(200);
    for mut conn in waiting {
        assert_eq!(conn.response().expect(200).text(), "ok");
    }
    assert!(server.wait().success());
}

#[test]
fn a_second_signal_stops_at_once() {
    for second in [Signal::TERM, Signal::INT] {
        let (mut server, _conn) = busy_server(Setup::new().global_options("grace_period 1h"));
        let engine = server.engine();
        server.signal(Signal::TERM);
        wait_until_it_stops_listening(&server);
        server.signal(second);
        server.wait();
        engine_is_gone(engine);
    }
}

#[test]
fn the_grace_period_bounds_the_wait() {
    let (mut server, mut conn) = busy_server(Setup::new().global_options("grace_period 300ms"));
    let engine = server.engine();
    let begin = Instant::now();
    server.signal(Signal::TERM);
    server.wait();
    assert!(begin.elapsed() < Duration::from_secs(8), "it took {:?}", begin.elapsed());
    engine_is_gone(engine);
    if let Ok(Some(answer)) = conn.try_response("GET") {
        assert!(answer.status >= 500, "{answer:?}");
    }
}

#[test]
fn idle_connections_do_not_hold_the_server() {
    let mut server =
        Setup::new().file("index.php", "<?php echo 'ok';").global_options("grace_period 1h").start();
    let mut used = server.connect();
    used.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    used.response().expect(200);
    let mut fresh = server.connect();
    server.signal(Signal::INT);
    assert!(server.wait().success());
    assert!(used.is_closed());
    assert!(fresh.is_closed());
}

#[test]
fn a_worker_finishes_its_request_too() {
    let script = "<?php while (frankenphp_handle_request(function () { if ($_SERVER['REQUEST_URI'] !== '/busy') { return; } \
                  file_put_contents($_SERVER['DOCUMENT_ROOT'] . '/started', '1'); \
                  while (!file_exists($_SERVER['DOCUMENT_ROOT'] . '/go')) { usleep(1000); clearstatcache(); } echo 'finished'; })) { } \
                  file_put_contents(__DIR__ . '/ended', 'after the loop');";
    let mut server = Setup::new()
        .php_options("num_threads 2\n\t\tworker ROOT/index.php 1")
        .file("index.php", script)
        .start();
    let mut conn = server.connect();
    conn.send("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    server.signal(Signal::TERM);
    wait_until_it_stops_listening(&server);
    server.write("go", "now");
    assert_eq!(conn.response().expect(200).text(), "finished");
    assert!(server.wait().success());
    assert_eq!(server.wait_for_file("ended"), "after the loop", "a worker's own clean-up runs");
}
