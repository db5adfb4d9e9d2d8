//! HTTP/3 and its UDP ports through configurations that change.
#![forbid(unsafe_code)]

use quinn::ConnectionError;
use regent_tests::h3::{Http3, block_on};
use regent_tests::{Server, Setup, TlsClient, regent_command, until};
use std::net::UdpSocket;
use std::process::Output;

/// A server that speaks these protocols, and responds with this text.
fn caddyfile(protocols: &str, text: &str) -> String {
    format!(
        "{{\n\tadmin ADMIN\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tservers {{\n\t\t{protocols}\n\t}}\n}}\n\
         localhost {{\n\tlog {{\n\t\toutput file DIRECTORY/access.log\n\t}}\n\trespond {text}\n}}\n"
    )
}

fn server_with(protocols: &str) -> Setup {
    Setup::new().caddyfile(&caddyfile(protocols, "first")).env("XDG_DATA_HOME", "DIRECTORY/data")
}

fn reload(server: &Server, protocols: &str, text: &str) {
    server.write_caddyfile(&caddyfile(protocols, text));
    server.admin().request("POST", "/regent/reload").send().expect(200);
}

async fn connect(server: &Server) -> Result<Http3, ConnectionError> {
    Http3::connect(&TlsClient::credulous(), server.tls_address(), "localhost").await
}

#[test]
fn connections_go_on_through_a_reload_until_http3_is_gone() {
    let server = server_with("protocols h1 h2").start();
    block_on(async {
        reload(&server, "protocols h1 h3", "second");
        let mut client = connect(&server).await.expect("a connection");
        assert_eq!(client.get("/").await.text(), "second");
        let log = server.directory().join("access.log");
        let is_logged =
            || std::fs::read_to_string(&log).is_ok_and(|text| text.contains(r#""proto":"HTTP/3.0""#));
        until("the request is logged", || is_logged().then_some(()));
        reload(&server, "protocols h1 h3", "third");
        assert_eq!(client.get("/").await.text(), "third");

        reload(&server, "protocols h1 h2", "fourth");
        assert_eq!(client.closed().await, 0x100, "in good order");
        let Err(ConnectionError::ConnectionClosed(refused)) = connect(&server).await else { panic!() };
        assert_eq!(u64::from(refused.error_code), 2, "the connection is refused");

        reload(&server, "protocols h1 h2 h3", "fifth");
        assert_eq!(connect(&server).await.expect("a connection").get("/").await.text(), "fifth");
    });
    server.stop();
}

#[test]
fn a_udp_port_that_is_taken_matters_only_where_http3_was_asked_for() {
    let taken = |setup: &Setup| UdpSocket::bind(setup.tls_address()).expect("the address is the test's own");
    let setup = server_with("name x");
    let _taken = taken(&setup);
    let server = setup.start();
    server.wait_for_log("no HTTP/3 at this address");
    let mut conn = TlsClient::credulous().connect(server.tls_address(), "localhost");
    conn.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(conn.response().expect(200).header("alt-svc"), None);
    server.stop();

    let setup = server_with("protocols h1 h2 h3");
    let _taken = taken(&setup);
    let text = caddyfile("protocols h1 h3", "x").replace("ADMIN", "off");
    std::fs::write(setup.directory().join("Caddyfile.taken"), setup.fill_in(&text))
        .expect("the directory is ours");
    let Output { status, stderr, .. } = regent_command(setup.directory())
        .args(["run", "--config", "Caddyfile.taken"])
        .env("XDG_DATA_HOME", setup.directory().join("data"))
        .output()
        .expect("the command runs");
    let error = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && error.contains("HTTP/3 on UDP"), "{error}");
}
