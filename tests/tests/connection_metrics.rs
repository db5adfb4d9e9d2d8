//! Figures of connections, by protocol, and of handshakes.
#![forbid(unsafe_code)]

use regent_tests::h3::{Http3, block_on, connect_quic};
use regent_tests::{Conn, Server, Setup, TlsClient, until};

fn start() -> Server {
    let text = "{\n\tadmin ADMIN\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {\n\t\tnum_threads 2\n\t}\n}\n\
                localhost {\n\trespond pong\n}\nhttp://:PORT {\n\trespond ready\n}\n";
    Setup::new().caddyfile(text).env("XDG_DATA_HOME", "DIRECTORY/data").start()
}

fn client(server: &Server) -> TlsClient {
    TlsClient::trusting(&server.directory().join("data/caddy/pki/authorities/local/root.crt"))
}

/// Waits for it: the client knows of the end of a handshake before the server has counted it.
fn expect(server: &Server, name: &str, labels: &[(&str, &str)], value: f64) {
    until(&format!("{name} {labels:?} is {value}"), || {
        (server.admin().metric(name, labels) == value).then_some(())
    });
}

#[test]
fn requests_and_connections_are_counted_by_protocol() {
    let server = start();
    let h1 = [("protocol", "h1")];
    let before = server.admin().metric("regent_http_requests_total", &h1);
    let client = client(&server);
    let mut conn = client.connect(server.tls_address(), "localhost");
    for _ in 0..3 {
        conn.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), "pong");
    }
    expect(&server, "regent_http_requests_total", &h1, before + 3.0);
    expect(&server, "regent_connections", &h1, 1.0);
    drop(conn);
    expect(&server, "regent_connections", &h1, 0.0);
    block_on(async {
        let mut http3 =
            Http3::connect(&client, server.tls_address(), "localhost").await.expect("a connection");
        assert_eq!(http3.get("/").await.text(), "pong");
        expect(&server, "regent_http_requests_total", &[("protocol", "h3")], 1.0);
        expect(&server, "regent_connections", &[("protocol", "h3")], 1.0);
        http3.close().await;
    });
    expect(&server, "regent_connections", &[("protocol", "h3")], 0.0);
    expect(&server, "regent_connections_total", &[("protocol", "h3")], 1.0);
    expect(&server, "regent_connections_total", &[("protocol", "h2")], 0.0);
    server.stop();
}

#[test]
fn handshakes_are_counted_by_how_they_end() {
    let server = start();
    let done = "regent_tls_handshakes_total";
    let failed = "regent_tls_handshake_failures_total";
    let client = client(&server);
    for kind in ["full", "resumed"] {
        let mut conn = client.connect(server.tls_address(), "localhost");
        conn.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), "pong");
        expect(&server, done, &[("kind", kind), ("transport", "tcp")], 1.0);
    }
    client.try_connect(server.tls_address(), "other.test").map(|_| ()).expect_err("no site has the name");
    expect(&server, failed, &[("reason", "unknown_name"), ("transport", "tcp")], 1.0);
    let mut plain = Conn::open(server.tls_address());
    plain.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    plain.response().expect(400);
    // Until then the server reads what else it may have sent.
    drop(plain);
    expect(&server, failed, &[("reason", "plain_http"), ("transport", "tcp")], 1.0);
    drop(Conn::open(server.tls_address()));
    expect(&server, failed, &[("reason", "client_left"), ("transport", "tcp")], 1.0);
    block_on(async {
        let refused = connect_quic(&client, server.tls_address(), "other.test").await;
        assert!(refused.is_err());
    });
    expect(&server, failed, &[("reason", "failed"), ("transport", "quic")], 1.0);
    expect(&server, failed, &[("transport", "tcp")], 3.0);
    expect(&server, "regent_quic_retries_total", &[], 0.0);
    server.stop();
}
