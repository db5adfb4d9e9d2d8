//! `reverse_proxy`: how connections to upstreams are made, and what upstreams are asked.
#![forbid(unsafe_code)]

use regent_tests::upstream::{ok, receive};
use regent_tests::{Server, Setup, Upstream, heard, until};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn site(directives: &str) -> Server {
    Setup::new()
        .site(&format!("handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n{directives}\n}}"))
        .php_options("num_threads 1")
        .start()
}

/// Answers one request after the other, and says what each connection begins with.
fn announced() -> (Upstream, Receiver<String>) {
    let (says, said) = mpsc::channel();
    let says = Mutex::new(says);
    let upstream = Upstream::talking(move |stream: TcpStream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        says.lock().expect("one at a time").send(line).expect("the test listens");
        while receive(&mut reader, number).is_some() {
            if (&stream).write_all(&ok("", "served")).is_err() {
                return;
            }
        }
    });
    (upstream, said)
}

#[test]
fn an_upstream_is_told_whose_connection_it_is_and_serves_nobody_else_over_it() {
    let (upstream, said) = announced();
    let server = site(&format!(
        "reverse_proxy {} {{\ntransport http {{\nproxy_protocol v1\n}}\n}}",
        upstream.address()
    ));
    let mut one = server.connect();
    let mut other = server.connect();
    for conn in [&mut one, &mut other] {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), "served");
    }
    one.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    one.response().expect(200);
    let lines: Vec<String> = (0..3).map(|_| heard(&said, "a line")).collect();
    let (ip, port) = (server.address().ip(), server.address().port());
    for (line, conn) in lines.iter().zip([&one, &other, &one]) {
        let client = conn.local_address();
        assert_eq!(*line, format!("PROXY TCP4 127.0.0.1 {ip} {} {port}\r\n", client.port()));
    }
    assert_eq!(upstream.connections(), 3);
    server.stop();
}

#[test]
fn a_trusted_proxy_of_this_server_is_believed_by_the_next() {
    let inner = Upstream::answering(|request| ok("", &request.field("x-peer")));
    let backend = Setup::new()
        .site(&format!(
            "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n\
             reverse_proxy {} {{\nheader_up X-Peer {{remote_host}}\n}}\n}}",
            inner.address()
        ))
        .global_options("servers {\nlistener_wrappers {\nproxy_protocol {\nallow 127.0.0.0/8\n}\n}\n}")
        .php_options("num_threads 1")
        .start();
    let front = Setup::new()
        .site(&format!(
            "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n\
             reverse_proxy {} {{\ntransport http {{\nproxy_protocol v2\n}}\n}}\n}}",
            backend.address()
        ))
        .global_options("servers {\ntrusted_proxies static 127.0.0.0/8\n}")
        .php_options("num_threads 1")
        .start();
    let answer = front.request("GET", "/").header("X-Forwarded-For", "10.9.8.7").send();
    assert_eq!(answer.expect(200).text(), "10.9.8.7");
    front.stop();
    backend.stop();
}

#[test]
fn connections_come_from_the_address_that_is_named() {
    let (says, said) = mpsc::channel();
    let says = Mutex::new(says);
    let upstream = Upstream::talking(move |stream: TcpStream, number| {
        let peer = stream.peer_addr().expect("a peer").ip().to_string();
        says.lock().expect("one at a time").send(peer).expect("the test listens");
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        while receive(&mut reader, number).is_some() {
            if (&stream).write_all(&ok("", "served")).is_err() {
                return;
            }
        }
    });
    let port = upstream.address().port();
    let proxy = |address: &str| {
        // A name with addresses of both families: only those of one can be reached from there.
        format!("reverse_proxy localhost:{port} {{\ntransport http {{\nlocal_address {address}\n}}\n}}")
    };
    let server = site(&proxy("127.0.0.9"));
    server.get("/").expect(200);
    assert_eq!(heard(&said, "a peer"), "127.0.0.9");
    server.stop();
    let server =
        site(&format!("reverse_proxy 127.0.0.1:{port} {{\ntransport http {{\nlocal_address ::1\n}}\n}}"));
    server.get("/").expect(502);
    server.wait_for_log("no address of the family of `local_address`");
    server.stop();
}

#[test]
fn only_so_many_connections_of_all_upstreams_wait_for_their_next_request() {
    let upstreams: Vec<_> = (0..3).map(|_| Upstream::answering(|_| ok("", "served"))).collect();
    let to = upstreams.iter().map(|upstream| upstream.address().to_string()).collect::<Vec<_>>().join(" ");
    let server = Setup::new()
        .site(&format!(
            "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\nreverse_proxy {to} {{\nlb_policy round_robin\n\
             transport http {{\nkeepalive_idle_conns 2\n}}\n}}\n}}"
        ))
        .php_options("num_threads 1")
        .start();
    // All on one connection, so on one I/O thread.
    let mut conn = server.connect();
    for _ in 0..9 {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.response().expect(200);
    }
    // The one that has waited longest is always the next one's.
    let connections: Vec<_> = upstreams.iter().map(Upstream::connections).collect();
    assert_eq!(connections, [3, 3, 3]);
    server.stop();
}

#[test]
fn some_ports_are_without_tls() {
    let upstream = Upstream::answering(|request| ok("", &request.field("host")));
    let port = upstream.address().port();
    let server = site(&format!(
        "reverse_proxy 127.0.0.1:{port} {{\ntransport http {{\ntls\ntls_curves x25519\ntls_except_ports {port}\n}}\n}}"
    ));
    let answer = server.request("GET", "/").header("Host", "a.example").send();
    assert_eq!(answer.expect(200).text(), "a.example");
    server.stop();
}

#[test]
fn another_server_is_asked_about_an_upstream_and_its_redirect_is_followed() {
    let upstream = Upstream::answering(|_| ok("", "served"));
    let about = upstream.address().to_string();
    let judge = Upstream::answering(move |request| match request.line() {
        "POST /deep?now HTTP/1.1" if request.body == b"{\"of\":1}" && request.field("x-of") == about => {
            b"HTTP/1.1 303 See Other\r\nLocation: verdict\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "GET /verdict HTTP/1.1" if request.body.is_empty() => ok("", "well"),
        _ => b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_vec(),
    });
    let proxy = |more: &str| {
        format!(
            "reverse_proxy {} {{\nhealth_uri /deep?now\nhealth_upstream {}\nhealth_interval 20ms\nhealth_method POST\n\
             health_request_body `{{\"of\":1}}`\nhealth_body ^well$\n{more}\n\
             health_headers {{\nX-Of {{http.reverse_proxy.active.target_upstream}}\n}}\n}}",
            upstream.address(),
            judge.address()
        )
    };
    let server = site(&proxy("health_follow_redirects"));
    until("a question was answered", || judge.requests().get(3).map(drop));
    server.get("/").expect(200);
    server.stop();
    // Unfollowed, a redirect is no good answer.
    let server = site(&proxy(""));
    until("it is known to be down", || (server.get("/").status == 503).then_some(()));
    server.stop();
}
