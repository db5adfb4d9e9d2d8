//! `reverse_proxy`: what stands between the server and its upstreams, and how many connections there may be.
#![forbid(unsafe_code)]

use regent_tests::upstream::{ok, receive};
use regent_tests::{Server, Setup, Upstream, heard, in_parallel, until};
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn site(directives: &str) -> Server {
    Setup::new()
        .site(&format!("handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n{directives}\n}}"))
        .php_options("num_threads 1")
        .start()
}

/// A proxy that leads to `target` whoever asks for whatever, unless the port is 1, and says with which head.
fn leading_to(target: SocketAddr) -> (Upstream, Receiver<String>) {
    let (says, said) = channel();
    let says = Mutex::new(says);
    let proxy = Upstream::talking(move |client: TcpStream, number| {
        let mut reader = BufReader::new(client.try_clone().expect("a descriptor"));
        let Some(request) = receive(&mut reader, number) else { return };
        says.lock().expect("one at a time").send(request.head.clone()).expect("the test listens");
        if request.line().contains(":1 ") {
            let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
            let _ = (&client).write_all(refusal.as_bytes());
            return;
        }
        let upstream = TcpStream::connect(target).expect("an upstream");
        (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").expect("the server reads");
        let (mut up, mut down) = (&upstream, &client);
        std::thread::scope(|scope| {
            scope.spawn(|| io::copy(&mut reader, &mut up));
            let _ = io::copy(&mut &upstream, &mut down);
            let _ = client.shutdown(std::net::Shutdown::Both);
        });
    });
    (proxy, said)
}

#[test]
fn a_proxy_hands_on_what_is_without_tls() {
    let proxy =
        Upstream::answering(|request| match request.line().starts_with("GET http://app.internal:8080/") {
            true => ok("", "by the proxy"),
            false => ok("", "not of a proxy"),
        });
    let server = site(&format!(
        "reverse_proxy app.internal:8080 {{\nhealth_uri /health\nhealth_interval 50ms\n\
         transport http {{\nnetwork_proxy url http://me:open%20sesame@{}\n}}\n}}",
        proxy.address()
    ));
    let response = server.request("GET", "/a?b=c").header("Proxy-Authorization", "Basic bGllOmxpZQ==").send();
    assert_eq!(response.expect(200).text(), "by the proxy");
    let about = |path: &str| proxy.requests().into_iter().find(|request| request.line().contains(path));
    let asked = about("/a?b=c").expect("a request");
    assert_eq!(asked.line(), "GET http://app.internal:8080/a?b=c HTTP/1.1");
    assert_eq!(asked.field("host"), "app.internal:8080");
    let health = until("a question about its health", || about("/health"));
    assert_eq!(health.line(), "GET http://app.internal:8080/health HTTP/1.1");
    for request in [asked, health] {
        assert_eq!(request.field("proxy-authorization"), "Basic bWU6b3BlbiBzZXNhbWU=");
    }
    server.stop();
}

#[test]
fn tls_goes_through_a_proxy_to_the_upstream_itself() {
    let text = "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n}\n\
                localhost {\n\trespond \"{http.request.proto} {host}\"\n}\n";
    let backend = Setup::new().caddyfile(text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let root = backend.directory().join("data/caddy/pki/authorities/local/root.crt");
    let (proxy, said) = leading_to(backend.tls_address());
    let port = backend.tls_address().port();
    let server = site(&format!(
        "handle /refused {{\nreverse_proxy https://localhost:1 {{\ntransport http {{\n\
         network_proxy url http://{proxy}\n}}\n}}\n}}\n\
         reverse_proxy https://localhost:{port} {{\ntransport http {{\ntls_trust_pool file {}\n\
         network_proxy url http://{proxy}\n}}\n}}",
        root.display(),
        proxy = proxy.address()
    ));
    assert_eq!(server.get("/").expect(200).text(), "HTTP/2.0 localhost");
    let head = heard(&said, "a question");
    assert!(head.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{head}");
    // The proxy is to know nothing of the request.
    assert!(!head.to_ascii_lowercase().contains("forwarded"), "{head}");
    server.get("/refused").expect(502);
    server.wait_for_log("the proxy 127.0.0.1");
    server.wait_for_log("says 407");
    server.stop();
    backend.stop();
}

#[test]
fn an_upstream_has_only_so_many_requests_at_once_and_all_are_served() {
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let noted = Arc::clone(&most);
    let upstream = Upstream::answering(move |_| {
        noted.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        now.fetch_sub(1, Ordering::SeqCst);
        ok("", "served")
    });
    let server = site(&format!(
        "reverse_proxy {} {{\ntransport http {{\nmax_conns_per_host 2\n}}\n}}",
        upstream.address()
    ));
    // Connections that one I/O thread has kept are of use to the others too.
    let barrier = Barrier::new(16);
    in_parallel(16, |_| {
        let mut conn = server.connect();
        barrier.wait();
        for _ in 0..25 {
            conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(conn.response().expect(200).text(), "served");
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} at once");
    server.stop();
}

#[test]
fn a_connection_that_is_held_keeps_others_waiting_until_it_ends() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let upstream = Upstream::answering(move |request| {
        if request.line().contains("/held") {
            heard(&released.lock().expect("one at a time"), "a word");
        }
        ok("", request.line())
    });
    let server = site(&format!(
        "reverse_proxy {} {{\ntransport http {{\nmax_conns_per_host 1\n}}\n}}",
        upstream.address()
    ));
    let mut held = server.ask("/held");
    until("the upstream has it", || (upstream.connections() == 1).then_some(()));
    // One waits and leaves, one waits and is served.
    let left = server.ask("/left");
    left.wait_until_read();
    let mut waiting = server.ask("/waiting");
    waiting.wait_until_read();
    drop(left);
    assert_eq!(upstream.requests().len(), 0, "none is served before the first");
    release.send(()).expect("the upstream waits");
    assert_eq!(held.response().expect(200).text(), "GET /held HTTP/1.1");
    assert_eq!(waiting.response().expect(200).text(), "GET /waiting HTTP/1.1");
    server.stop();
}
