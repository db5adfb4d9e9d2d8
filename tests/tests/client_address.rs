//! Who the client is, behind proxies that are believed and those that are not.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, TlsClient, until};
use serde_json::Value;
use std::fs;

const VARIABLES: &str = "<?php echo json_encode($_SERVER);";
const TRUSTED: &str =
    "servers {\n\t\ttrusted_proxies static 127.0.0.0/8\n\t\tclient_ip_headers X-Real-IP X-Forwarded-For\n\t}";
const SHOW: &str = "@inner client_ip 192.0.2.0/24
    respond @inner \"inner {client_ip} {remote_host} {http.vars.trusted_proxy}\"
    respond \"outer {client_ip} {remote_host} {http.vars.trusted_proxy}\"";

fn shown(server: &Server, forwarded_for: &str) -> String {
    server.request("GET", "/").header("X-Forwarded-For", forwarded_for).send().expect(200).text()
}

#[test]
fn a_trusted_proxy_tells_the_client() {
    let site = format!("log {{\n\t\toutput file DIRECTORY/access.log\n\t\tformat json\n\t}}\n{SHOW}");
    let server = Setup::new().global_options(TRUSTED).site(&site).start();
    assert_eq!(shown(&server, "192.0.2.9, 10.0.0.1"), "inner 192.0.2.9 127.0.0.1 true");
    assert_eq!(shown(&server, "2001:db8::1"), "outer 2001:db8::1 127.0.0.1 true");
    assert_eq!(shown(&server, "nobody"), "outer 127.0.0.1 127.0.0.1 true");
    let log = server.directory().join("access.log");
    let client = until("the request is logged", || {
        let lines = fs::read_to_string(&log).ok()?;
        let line = lines.lines().find(|line| line.contains("192.0.2.9"))?;
        serde_json::from_str::<Value>(line).ok()
    });
    assert_eq!(client["request"]["client_ip"], "192.0.2.9");
    assert_eq!(client["request"]["remote_ip"], "127.0.0.1");
    server.stop();
}

#[test]
fn others_are_not_believed() {
    let untrusted = "servers {\n\t\ttrusted_proxies static 10.0.0.0/8\n\t}";
    for options in ["", untrusted] {
        let server = Setup::new().global_options(options).site(SHOW).start();
        assert_eq!(shown(&server, "192.0.2.9"), "outer 127.0.0.1 127.0.0.1 false");
        server.stop();
    }
}

#[test]
fn php_is_told_of_the_client_only_if_the_site_says_so() {
    let site = "handle /own/* {\n php_server {\n trust_client_address\n }\n }\n handle {\n php_server\n }";
    let server = Setup::new()
        .global_options(TRUSTED)
        .site(site)
        .file("index.php", VARIABLES)
        .file("own/index.php", VARIABLES)
        .start();
    let ask = |target: &str| -> Value {
        let request = server
            .request("GET", target)
            .header("Host", "example.com")
            .header("X-Forwarded-For", "192.0.2.9")
            .header("X-Forwarded-Proto", "https");
        request.send().expect(200).json()
    };
    let own = ask("/own/");
    assert_eq!(
        [&own["REMOTE_ADDR"], &own["REMOTE_HOST"], &own["REMOTE_PORT"], &own["HTTPS"]],
        ["192.0.2.9", "192.0.2.9", "", "on"]
    );
    assert_eq!(
        [&own["REQUEST_SCHEME"], &own["SERVER_PORT"], &own["SERVER_NAME"]],
        ["https", "443", "example.com"]
    );
    let plain = ask("/");
    assert_eq!([&plain["REMOTE_ADDR"], &plain["REQUEST_SCHEME"]], ["127.0.0.1", "http"]);
    assert!(plain.get("HTTPS").is_none());
    server.stop();
}

const BEHIND_BALANCER: &str = "servers {\n\t\tlistener_wrappers {\n\t\t\tproxy_protocol {\n\t\t\t\tallow 127.0.0.0/8\n\t\t\t}\n\t\t\ttls\n\t\t}\n\t}";

#[test]
fn a_proxy_header_comes_before_the_request() {
    let server = Setup::new().global_options(BEHIND_BALANCER).file("index.php", VARIABLES).start();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address());
    let answer = server.raw(format!("PROXY TCP4 192.0.2.9 198.51.100.2 4711 443\r\n{request}"));
    assert!(answer.contains("\"REMOTE_ADDR\":\"192.0.2.9\""), "{answer}");
    assert!(answer.contains("\"REMOTE_PORT\":\"4711\""), "{answer}");
    assert!(answer.contains("\"SERVER_ADDR\":\"198.51.100.2\""), "{answer}");
    let mut binary =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x0a\xc6\x33\x64\x02\x12\x67\x01\xbb".to_vec();
    binary.extend(request.as_bytes());
    let answer = server.raw(binary);
    assert!(answer.contains("\"REMOTE_ADDR\":\"192.0.2.10\""), "{answer}");
    let answer = server.raw(&request);
    assert!(answer.contains("\"REMOTE_ADDR\":\"127.0.0.1\""), "{answer}");
    assert_eq!(server.raw("PROXY TCP4 nonsense\r\nGET / HTTP/1.1\r\n\r\n"), "");
    server.stop();
}

#[test]
fn a_proxy_header_comes_before_tls() {
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\thttp_port PORT\n\t{BEHIND_BALANCER}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond x\n}}\n\
         https://localhost:TLSPORT {{\n\tbind LOOPBACK\n\ttls internal\n\trespond {{remote}}\n}}\n"
    );
    let server = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let header = b"PROXY TCP4 192.0.2.9 198.51.100.2 4711 443\r\n";
    let client = TlsClient::credulous();
    let mut conn = client.try_connect_behind(header, server.tls_address(), "localhost").unwrap();
    conn.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(conn.response().text(), "192.0.2.9:4711");
    server.stop();
}
