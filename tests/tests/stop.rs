//! How the server stops: nothing that runs is lost, and an impatient operator is heard.
#![forbid(unsafe_code)]

use regent_tests::h2::Http2;
use regent_tests::h3::block_on;
use regent_tests::process::{runs, write_program};
use regent_tests::{Conn, Server, Setup, TlsClient, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// A script that says when it has started and runs until the file `go` is there.
const UNTIL_GO: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
                        while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'finished';";

/// Bytes that no client is sent before it reads some.
const LARGE: usize = 32 << 20;

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
    const WORKER: &str = "<?php error_log('my first words');
        while (frankenphp_handle_request(fn () => print 'ok')) {}
        error_log('my last words');";
    let setup = Setup::new().file("worker.php", WORKER).php_options("worker ROOT/worker.php 2");
    let mut server = setup.start();
    // A thread that is told to stop before its script runs has no words at all.
    until("both threads run the script", || {
        (server.log().matches("my first words").count() == 2).then_some(())
    });
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

/// PHP does not run before the file `php-may-start` is there.
fn setup_with_late_php() -> Setup {
    let setup = Setup::new();
    let directory = setup.directory();
    let engine = Path::new(regent_command(directory).get_program()).with_file_name("regent-php");
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", directory.join("php-may-start").display());
    let program = directory.join("late-php");
    write_program(&program, &format!("#!/bin/sh\n{wait}\nexec {} \"$@\"\n", engine.display()));
    setup.env("REGENT_ENGINE", "DIRECTORY/late-php")
}

#[test]
fn what_is_served_before_php_runs_is_served_to_its_end() {
    let mut server = setup_with_late_php().file("large.bin", vec![b'x'; LARGE]).start();
    let mut conn = server.ask("/large.bin");
    let head = conn.read_until("\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    fs::write(server.directory().join("php-may-start"), "").unwrap();
    let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
    while received < LARGE {
        let length = conn.read_some(&mut buffer).unwrap();
        assert!(length > 0, "it was cut off after {received} bytes");
        received += length;
    }
    assert!(server.wait().success());
}

#[test]
fn a_second_signal_stops_a_start() {
    let mut server = setup_with_late_php().start();
    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    server.signal(Signal::TERM);
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
    server.signal(Signal::TERM);
    server.wait();
    server.wait_for_log("they had not ended within the grace period");
    // The default would have ended it too.
    assert!(server.log().contains("\"grace_period\":\"300ms\""), "{}", server.log());
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

/// It is within one call of C, and only the end of its process ends it.
#[test]
fn a_thread_that_does_not_come_back_is_not_waited_for() {
    const ENDLESS: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
        hash_pbkdf2('sha512', 'password', 'salt', 2_000_000_000);";
    let mut server = Setup::new()
        .php_options(
            "num_threads 2\n\t\tmax_threads 2\n\t\trequest_timeout 300ms\n\t\tphp_ini max_execution_time 0",
        )
        .global_options("grace_period 1h")
        .file("index.php", ENDLESS)
        .start();
    let engine = server.engine();
    let mut conn = server.ask("/");
    server.wait_for_file("started");
    server.signal(Signal::TERM);
    conn.response().expect(504);
    assert!(server.wait().success());
    engine_is_gone(engine);
}

/// Of many, some are in the accept queue, some on their way to a thread, some with it.
fn fresh(server: &Server) -> Vec<Conn> {
    (0..40).map(|_| server.connect()).collect()
}

fn assert_served(conns: Vec<Conn>, rest: &str, expected: &str) {
    for mut conn in conns {
        conn.send(rest);
        let answer = conn.response().expect(200);
        assert_eq!((answer.text(), answer.header("connection")), (expected.into(), Some("close")));
    }
}

/// Clients may take as long as a busy machine makes them.
fn patient(more: &str) -> String {
    format!("servers {{\n\t\ttimeouts {{\n\t\t\tlast_request 1m\n\t\t}}{more}\n\t}}")
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn connections_that_had_just_been_made_were_reset() {
    for more in ["", "\n\t\tprotocols h1 h2c"] {
        let mut server =
            Setup::new().global_options(&patient(more)).file("index.php", "<?php echo 'ok';").start();
        let conns = fresh(&server);
        server.signal(Signal::TERM);
        wait_until_it_stops_listening(&server);
        assert_served(conns, REQUEST, "ok");
        assert!(server.wait().success());
    }
}

#[test]
fn a_request_whose_head_was_on_its_way_was_reset() {
    let mut server = Setup::new().global_options(&patient("")).file("index.php", "<?php echo 'ok';").start();
    let mut conns = fresh(&server);
    for conn in &mut conns {
        conn.send(&REQUEST[..20]);
    }
    // One that has had an answer before.
    let mut used = server.connect();
    used.send(REQUEST);
    used.response().expect(200);
    used.send(&REQUEST[..20]);
    used.wait_until_read();
    conns.push(used);
    server.signal(Signal::TERM);
    wait_until_it_stops_listening(&server);
    assert_served(conns, &REQUEST[20..], "ok");
    assert!(server.wait().success());
}

#[test]
fn connections_to_an_address_that_a_reload_drops_were_reset() {
    let site = |port: &str, text: &str| format!("http://:{port} {{\n\tbind LOOPBACK\n\trespond {text}\n}}\n");
    let options = format!("{{\n\tadmin ADMIN\n\t{}\n}}\n", patient(""));
    let server = Setup::new()
        .caddyfile(&format!("{options}{}{}", site("TLSPORT", "kept"), site("PORT", "dropped")))
        .start();
    let conns = fresh(&server);
    server.write_caddyfile(&format!("{options}{}", site("TLSPORT", "kept")));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert!(Conn::try_open(server.address()).is_err());
    assert_served(conns, REQUEST, "dropped");
    server.stop();
}

fn is_not_listening(address: SocketAddr) {
    until("new connections are refused", || TcpStream::connect(address).is_err().then_some(()));
}

#[test]
fn connections_whose_handshake_was_to_come_were_reset() {
    let mut server = Setup::new()
        .caddyfile(&format!(
            "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\t\
             https_port TLSPORT\n\t{}\n}}\nlocalhost {{\n\trespond ok\n}}\n",
            patient("")
        ))
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .start();
    let client = TlsClient::trusting(&server.directory().join("data/caddy/pki/authorities/local/root.crt"));
    let address = server.tls_address();
    let [first, second] = [(); 2].map(|()| TcpStream::connect(address).expect("it listens"));
    server.signal(Signal::TERM);
    is_not_listening(address);
    let mut conn = client.try_connect_over(first, "localhost").expect("a handshake");
    conn.send(REQUEST.replace('x', "localhost"));
    assert_eq!(conn.response().expect(200).text(), "ok");
    block_on(async {
        second.set_nonblocking(true).expect("a socket");
        let second = tokio::net::TcpStream::from_std(second).expect("a runtime");
        let client = Http2::connect_over(&client, second, "localhost").await.expect("a handshake");
        assert_eq!(client.ask("/", None).await.expect("a response").expect(200).text(), "ok");
    });
    assert!(server.wait().success());
}

/// Its first request, as it had come to that before the server began to leave.
#[test]
fn a_connection_of_http_2_that_has_sent_nothing_is_served_its_first_request() {
    let mut server = Setup::new()
        .global_options(&patient("\n\t\tprotocols h1 h2c"))
        .file("index.php", "<?php echo 'ok';")
        .start();
    let socket = TcpStream::connect(server.address()).expect("it listens");
    server.signal(Signal::TERM);
    is_not_listening(server.address());
    block_on(async {
        socket.set_nonblocking(true).expect("a socket");
        let socket = tokio::net::TcpStream::from_std(socket).expect("a runtime");
        let client = Http2::over_plain(socket).await.expect("a connection");
        assert_eq!(client.ask("/", None).await.expect("a response").expect(200).text(), "ok");
    });
    assert!(server.wait().success());
}
