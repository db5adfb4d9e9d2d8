//! `0` as a time-out means none, as in Caddy. It was a time-out of no time at all.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Setup, until};
use rustix::process::Signal;
use std::net::SocketAddr;

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
        .caddyfile("{\nadmin off\nauto_https off\ndefault_bind LOOPBACK\nhttps_port PORT\nfrankenphp {\nnum_threads 2\n}\n}\n:PORT {\nroot ROOT\nphp_server\n}")
        .file("index.php", "<?php echo $_SERVER['REQUEST_SCHEME'];")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "http");
    server.stop();
}

/// Whether the kernel will probe the client of this connection, by its timer in `/proc/net/tcp` (2: keepalive).
fn is_probed(server: SocketAddr, client: SocketAddr) -> bool {
    let hex = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            format!("{:08X}:{:04X}", u32::from_le_bytes(address.ip().octets()), address.port())
        }
        SocketAddr::V6(_) => panic!("the server of a test listens below 127.0.0.0"),
    };
    let (local, remote) = (hex(server), hex(client));
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let line = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut line = line.filter(|line| line.len() > 5 && line[1] == local && line[2] == remote);
    line.next().expect("the connection").get(5).expect("a timer").starts_with("02:")
}

#[test]
fn clients_that_say_nothing_are_probed_unless_they_are_not_to_be() {
    for (options, expected) in [
        ("", true),
        ("servers {\nkeepalive_idle 1m\nkeepalive_interval 5s\nkeepalive_count 3\n}", true),
        ("servers {\nkeepalive_interval -1\n}", false),
    ] {
        let server = Setup::new().global_options(options).site("respond ok").start();
        let mut conn = server.connect();
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.response().expect(200);
        // Once everything is acknowledged, no other timer runs.
        let (at, client) = (server.address(), conn.local_address());
        until(&format!("{options}: probed: {expected}"), || {
            (is_probed(at, client) == expected).then_some(())
        });
        server.stop();
    }
}
