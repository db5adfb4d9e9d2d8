//! What is measured of a request counts from the first byte of its head.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use std::time::{Duration, Instant};

/// What clients that are slow take for their heads.
const SLOW: Duration = Duration::from_millis(600);

fn site() -> Server {
    let server = Setup::new()
        .admin("ADMIN")
        .site("deadline /strict.php 500ms\n\tdeadline /patient.php 5m\n\tphp_server")
        .file("strict.php", "<?php echo 'ok';")
        .file("patient.php", "<?php echo 'ok';")
        .start();
    until("PHP serves", || (server.admin().get("/regent/ready").status == 200).then_some(()));
    server
}

#[expect(clippy::disallowed_methods, reason = "the least that is measured; more does no harm")]
fn be_slow() {
    std::thread::sleep(SLOW);
}

/// Asks with a head that comes in two parts, which takes [`SLOW`] at least. `before` went out on the connection earlier.
fn ask_slowly(server: &Server, before: &[&str], path: &str) {
    let mut conn = server.connect();
    for path in before {
        conn.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        conn.response().expect(200);
    }
    conn.send(format!("GET {path} HTTP/1.1\r\nHo"));
    conn.wait_until_read();
    be_slow();
    conn.send("st: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "ok");
}

fn wait_for_requests(server: &Server, route: &str, count: f64) {
    let counted = || server.admin().metric("regent_deadline_requests_total", &[("route", route)]);
    until("the figures have come", || (counted() == count).then_some(()));
}

#[test]
fn a_client_that_is_slow_with_its_head_is_answered_and_counted_as_late() {
    let server = site();
    ask_slowly(&server, &[], "/strict.php");
    wait_for_requests(&server, "/strict.php", 1.0);
    let value = |name| server.admin().metric(name, &[("route", "/strict.php")]);
    assert_eq!(value("regent_deadline_misses_total"), 1.0);
    assert!(value("regent_request_duration_seconds_sum") >= SLOW.as_secs_f64());
    assert!(value("regent_time_to_first_byte_seconds_sum") >= SLOW.as_secs_f64());
    assert_eq!(server.admin().metric("regent_shed_total", &[]), 0.0);
    server.stop();
}

#[test]
fn the_time_between_two_requests_is_nobodys() {
    let server = site();
    let started = Instant::now();
    let mut conn = server.connect();
    for _ in 0..2 {
        conn.send("GET /patient.php HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.response().expect(200);
        be_slow();
    }
    ask_slowly(&server, &["/patient.php", "/patient.php"], "/patient.php");
    #[expect(clippy::disallowed_methods, reason = "what the server measures is within what its client does")]
    let elapsed = started.elapsed();
    wait_for_requests(&server, "/patient.php", 5.0);
    let seconds = server.admin().metric("regent_request_duration_seconds_sum", &[("route", "/patient.php")]);
    // Half a pause is left to a server that counts the end of a response late. One that counted the pauses would have one more.
    let most = elapsed - 3 * SLOW / 2;
    assert!(seconds >= SLOW.as_secs_f64() && seconds <= most.as_secs_f64(), "{seconds} of {most:?}");
    server.stop();
}
