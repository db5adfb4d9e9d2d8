//! `0` as a time-out means none, as in Caddy. It was a time-out of no time at all.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Setup, until};
use rustix::process::Signal;

const ECHO: &str = "<?php echo file_get_contents('php://input');";
/// 8 MiB, more than the buffers of a connection hold.
const LARGE: &str = "<?php for ($i = 0; $i < 128; $i++) { echo str_repeat('x', 65536); }";

#[test]
fn connections_without_time_outs_were_closed_at_once() {
    let server = Setup::new()
        .global_options("servers {\ntimeouts {\nread_header 0\nread_body 0s\nwrite 0\nidle 0\n}\n}")
        .file("echo.php", ECHO)
        .file("large.php", LARGE)
        .start();
    let mut conn = server.connect();
    let quick = || drop(server.get("/echo.php").expect(200));
    quick();
    for part in ["POST /echo.php HTTP/1.1\r\nHo", "st: x\r\nContent-Length: 6\r\n\r\n", "abc", "def"] {
        conn.send(part);
        conn.wait_until_read();
        quick();
    }
    assert_eq!(conn.response().expect(200).text(), "abcdef");
    quick();
    conn.send("GET /large.php HTTP/1.1\r\nHost: x\r\n\r\n");
    conn.wait_until_read();
    quick();
    assert_eq!(conn.response().expect(200).body.len(), 8 << 20);
    server.stop();
}

#[test]
fn bodies_without_a_time_out_of_their_own_were_refused() {
    let server = Setup::new().site("php_server {\nrequest_body_timeout 0\n}").file("echo.php", ECHO).start();
    let mut conn = server.connect();
    for part in ["POST /echo.php HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n", "abc", "def"] {
        conn.send(part);
        conn.wait_until_read();
        server.get("/echo.php").expect(200);
    }
    assert_eq!(conn.response().expect(200).text(), "abcdef");
    server.stop();
}

#[test]
fn without_a_grace_period_running_requests_were_cut_off() {
    let script = "<?php file_put_contents(__DIR__ . '/started', '1'); \
                  while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'finished';";
    let mut server = Setup::new().global_options("grace_period 0").file("busy.php", script).start();
    let mut conn = server.connect();
    conn.send("GET /busy.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    server.signal(Signal::TERM);
    until("new connections are refused", || Conn::try_open(server.address()).is_err().then_some(()));
    server.write("go", "now");
    assert_eq!(conn.response().expect(200).text(), "finished");
    assert!(server.wait().success());
}

#[test]
fn the_port_of_https_is_plain_http_with_auto_https_off() {
    let server = Setup::new()
        .caddyfile("{\nadmin off\nauto_https off\nhttps_port PORT\nfrankenphp {\nnum_threads 2\n}\n}\n:PORT {\nroot ROOT\nphp_server\n}")
        .file("index.php", "<?php echo $_SERVER['REQUEST_SCHEME'];")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "http");
    server.stop();
}
