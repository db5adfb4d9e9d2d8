//! Where a server listens, and what the addresses of a connection look like.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Request, Server, Setup, own_address, until};
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

#[test]
fn an_ipv4_client_of_a_socket_for_both_families_has_an_ipv4_address() {
    let server = Setup::new()
        .file("index.php", "<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['SERVER_ADDR'];")
        .caddyfile(
            "{\n\tadmin off\n\tfrankenphp {\n\t\tnum_threads 1\n\t}\n}\nhttp://:PORT {\n\troot ROOT\n\
             \tlog {\n\t\toutput file DIRECTORY/access.log\n\t}\n\
             \t@here remote_ip 127.0.0.0/8\n\thandle /here {\n\t\trespond @here \"yes\"\n\t\trespond \"no\"\n\t}\n\
             \thandle /shown {\n\t\trespond \"{remote_host} {client_ip} {http.request.local.host} {remote}\"\n\t}\n\
             \tphp_server\n}\n",
        )
        .start();
    let ip = server.address().ip();
    assert_eq!(server.get("/").expect(200).text(), format!("127.0.0.1 {ip}"));
    assert_eq!(server.get("/here").expect(200).text(), "yes");
    let shown = server.get("/shown").expect(200).text();
    assert!(shown.starts_with(&format!("127.0.0.1 127.0.0.1 {ip} 127.0.0.1:")), "{shown}");
    let log = until("the requests are in the access log", || {
        let log = fs::read_to_string(server.directory().join("access.log")).ok()?;
        log.contains("/shown").then_some(log)
    });
    assert!(log.contains(r#""remote_ip":"127.0.0.1""#) && !log.contains("::ffff"), "{log}");
    server.stop();
}

/// Starts a server with one site of this address.
fn with_site(address: &str) -> Server {
    Setup::new()
        .caddyfile(&format!("{{\n\tadmin off\n}}\n{address} {{\n\troot ROOT\n\tfile_server\n}}\n"))
        .start()
}

/// Whether the server listens on this address of this machine, too.
fn listens_at(server: &Server, ip: IpAddr) -> bool {
    match Conn::try_open(SocketAddr::new(ip, server.address().port())) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => false,
        Err(error) => panic!("connecting: {error}"),
    }
}

#[test]
fn a_site_of_a_loopback_address_listens_there_only_and_says_so() {
    let elsewhere = own_address().ip();
    let server = with_site("http://ADDRESS");
    server.wait_for_log(&format!("serving http://{}", server.address()));
    assert!(!listens_at(&server, elsewhere));
    server.stop();
    let server = with_site("http://ADDRESS, http://localhost:PORT");
    assert!(listens_at(&server, elsewhere), "another site is open to all");
    server.stop();
}

#[test]
fn a_default_says_where_sites_without_bind_listen() {
    let elsewhere = own_address().ip();
    let server = Setup::new()
        .caddyfile("{\n\tadmin off\n\tdefault_bind LOOPBACK\n}\nhttp://:PORT {\n\trespond here\n}\n")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "here");
    assert!(!listens_at(&server, elsewhere));
    server.stop();
    let server = Setup::new()
        .caddyfile(&format!(
            "{{\n\tadmin off\n\tdefault_bind 127.0.0.3\n}}\nhttp://:PORT {{\n\tbind LOOPBACK {elsewhere}\n\trespond here\n}}\n"
        ))
        .start();
    assert_eq!(server.get("/").expect(200).text(), "here");
    assert!(listens_at(&server, elsewhere), "what the site says goes before the default");
    server.stop();
}

#[test]
fn sites_of_a_host_are_told_apart_by_their_paths() {
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n}\nhttp://:PORT {\n\tbind LOOPBACK\n\trespond \"all {path}\"\n\thandle_errors {\n\t\trespond \"mine\"\n\t}\n}\n\
             http://:PORT/health {\n\tbind LOOPBACK\n\trespond \"OK\"\n}\n\
             http://:PORT/api* {\n\tbind LOOPBACK\n\trespond \"api {path}\"\n}\n\
             http://:PORT/api/none* {\n\tbind LOOPBACK\n\terror 410\n\thandle_errors {\n\t\trespond \"theirs\"\n\t}\n}\n\
             http://a.test:PORT/a {\n\tbind LOOPBACK\n\trespond \"a\"\n}\n",
        )
        .start();
    let ask = |host: &str, target: &str| server.request("GET", target).header("Host", host).send().text();
    for (target, expected) in [
        ("/", "all /"),
        ("/health", "OK"),
        ("/healthy", "all /healthy"),
        ("/api/x", "api /api/x"),
        ("/api/none", "theirs"),
    ] {
        assert_eq!(ask("b.test", target), expected, "{target}");
    }
    // What is not for the path of a host is for whom it would be for without that site.
    assert_eq!(ask("a.test", "/a"), "a");
    assert_eq!(ask("a.test", "/b"), "all /b");
    server.stop();
}

/// What is answered at this address of this machine.
fn at(server: &Server, ip: IpAddr) -> String {
    Request::new(SocketAddr::new(ip, server.address().port()), "GET", "/").send().expect(200).text()
}

#[test]
fn a_site_of_one_address_beside_one_of_all_on_the_same_port_did_not_start() {
    let elsewhere = own_address().ip();
    const ALL: &str = "http://:PORT {\n\trespond all\n}\n";
    const ONE: &str = "http://inner.test:PORT, http://LOOPBACK:PORT {\n\tbind LOOPBACK\n\trespond inner\n}\n";
    for sites in [format!("{ALL}{ONE}"), format!("{ONE}{ALL}")] {
        let server = Setup::new().caddyfile(&format!("{{\n\tadmin off\n}}\n{sites}")).start();
        assert_eq!(at(&server, server.address().ip()), "inner");
        assert_eq!(at(&server, elsewhere), "all");
        server.stop();
    }
    // All three are new in a reload.
    let server = Setup::new()
        .caddyfile("{\n\tadmin ADMIN\n}\nhttp://:TLSPORT {\n\tbind LOOPBACK\n\trespond other\n}\nhttp://LOOPBACK:PORT {\n\trespond before\n}\n")
        .start();
    server.write_caddyfile(&format!(
        "{{\n\tadmin ADMIN\n}}\n{ALL}{ONE}http://:PORT {{\n\tbind {elsewhere}\n\trespond third\n}}\n"
    ));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert_eq!(at(&server, server.address().ip()), "inner");
    assert_eq!(at(&server, elsewhere), "third");
    assert_eq!(at(&server, own_address().ip()), "all");
    server.stop();
}

/// Datagrams have sockets of their own, and a site without one is served without HTTP/3.
#[test]
fn both_of_such_addresses_have_http_3() {
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\nhttp://:PORT {\n\tbind LOOPBACK\n\trespond ready\n}\n\
             https://all.test:TLSPORT {\n\ttls internal\n\trespond all\n}\n\
             https://inner.test:TLSPORT {\n\tbind LOOPBACK\n\ttls internal\n\trespond inner\n}\n",
        )
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .start();
    assert!(!server.log().contains("no HTTP/3 at this address"), "{}", server.log());
    server.stop();
}
