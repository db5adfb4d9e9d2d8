//! What `reverse_proxy` keeps for whoever is slower, and for how long it keeps connections that have left HTTP.
#![forbid(unsafe_code)]

use regent_tests::upstream::{ok, receive};
use regent_tests::{Conn, Server, Setup, Upstream, until};
use std::io::{BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn caddyfile(directives: &str) -> String {
    format!(
        "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 1\n\t\tspool {{\n\t\t\tmemory 128KiB\n\t\t}}\n\t}}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\thandle /is-it-ready.txt {{\n\t\tfile_server\n\t}}\n\
         \thandle {{\n{directives}\n\t}}\n}}\n"
    )
}

fn site(directives: &str) -> Server {
    Setup::new().caddyfile(&caddyfile(directives)).start()
}

fn post_in_chunks(conn: &mut Conn, chunks: &[&str]) {
    for chunk in chunks {
        conn.send(format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    }
}

const CHUNKED_HEAD: &str =
    "POST /a HTTP/1.1\r\nHost: x\r\nTrailer: X-Last\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn an_upstream_is_asked_when_the_body_is_there_and_told_its_length() {
    let upstream = Upstream::answering(|request| ok("", &request.field("content-length")));
    let server = site(&format!("reverse_proxy {} {{\nrequest_buffers 1MiB\n}}", upstream.address()));
    let mut conn = server.connect();
    conn.send(CHUNKED_HEAD);
    post_in_chunks(&mut conn, &["hello ", "world"]);
    conn.wait_until_read();
    assert_eq!(upstream.connections(), 0, "a slow client costs the upstream nothing");
    conn.send("0\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "11");
    assert_eq!(upstream.last().body, b"hello world");
    server.stop();
}

#[test]
fn what_is_beyond_the_buffer_or_the_spool_goes_on_as_it_comes() {
    let upstream = Upstream::answering(|request| ok("", &request.field("transfer-encoding")));
    for size in ["8", "unlimited"] {
        let server = site(&format!("reverse_proxy {} {{\nrequest_buffers {size}\n}}", upstream.address()));
        let mut conn = server.connect();
        conn.send(CHUNKED_HEAD);
        let chunk = "x".repeat(100_000);
        // A gigabyte would be in a file; this is beyond the first bound and within the second.
        post_in_chunks(&mut conn, &[chunk.as_str(); 5]);
        conn.send("2\r\nab\r\n0\r\nX-Last: yes\r\n\r\n");
        let answer = conn.response().expect(200).text();
        assert_eq!(upstream.last().body.len(), 500_002);
        // With trailers nobody says a length.
        assert_eq!((answer.as_str(), upstream.last().trailers.trim()), ("chunked", "x-last: yes"), "{size}");
        drop(conn);
        server.stop();
    }
}

#[test]
fn a_body_that_is_too_large_or_breaks_off_reaches_no_upstream() {
    let upstream = Upstream::answering(|_| ok("", ""));
    let server = site(&format!(
        "request_body {{\nmax_size 20\n}}\nreverse_proxy {} {{\nrequest_buffers 1MiB\n}}",
        upstream.address()
    ));
    let mut conn = server.connect();
    conn.send(CHUNKED_HEAD);
    post_in_chunks(&mut conn, &["0123456789", "0123456789", "0"]);
    conn.response().expect(413);
    let mut conn = server.connect();
    conn.send(CHUNKED_HEAD);
    post_in_chunks(&mut conn, &["hello"]);
    conn.finish_sending();
    drop(conn.try_response("POST"));
    assert_eq!(upstream.connections(), 0);
    server.stop();
}

#[test]
fn an_upstream_does_not_wait_for_a_slow_client() {
    const BODY: usize = 8 << 20;
    let (done, is_done) = mpsc::channel();
    let done = std::sync::Mutex::new(done);
    let upstream = Upstream::talking(move |stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n");
        (&stream).write_all(head.as_bytes()).expect("the server reads");
        let block = [7; 64 * 1024];
        (0..BODY / block.len()).for_each(|_| (&stream).write_all(&block).expect("the server reads"));
        done.lock().unwrap().send(()).unwrap();
    });
    let server = site(&format!("reverse_proxy {} {{\nresponse_buffers 16MiB\n}}", upstream.address()));
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = conn.head().expect("a head").expect("a response").expect(200);
    is_done.recv_timeout(regent_tests::DEADLINE).expect("the upstream has sent all of it");
    assert_eq!(head.header("content-length"), Some(BODY.to_string().as_str()));
    let response = conn.rest_of(head).expect("the rest");
    assert!(response.body.len() == BODY && response.body.iter().all(|byte| *byte == 7));
    server.stop();
}

#[test]
fn only_so_much_of_a_response_waits_and_nothing_when_the_client_has_gone() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let upstream = Upstream::talking(move |stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        (&stream)
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            .expect("the server reads");
        while (&stream).write_all(&[7; 64 * 1024]).is_ok() {}
        cut.store(true, Ordering::SeqCst);
    });
    let server = site(&format!("reverse_proxy {} {{\nresponse_buffers 256KiB\n}}", upstream.address()));
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    conn.head().expect("a head").expect("a response").expect(200);
    drop(conn);
    until("the upstream is cut off", || is_cut.load(Ordering::SeqCst).then_some(()));
    server.stop();
}

#[test]
fn a_response_that_breaks_off_is_not_taken_for_a_whole_one() {
    let upstream = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").expect("the server reads");
    });
    let server = site(&format!("reverse_proxy {} {{\nresponse_buffers 1MiB\n}}", upstream.address()));
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = conn.head().expect("a head").expect("a response").expect(200);
    conn.read_until("hello");
    assert_eq!(head.header("content-length"), Some("10"));
    assert!(conn.is_closed());
    server.stop();
}

/// An upstream that agrees to change the protocol, and sends back what it gets.
fn echoing() -> Upstream {
    Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello ";
        (&stream).write_all(head.as_bytes()).expect("the server reads");
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let _ = (&stream).write_all(&buffer[..count]);
        }
    })
}

fn tunnel(server: &Server) -> Conn {
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    conn.read_until("hello ");
    conn
}

#[test]
fn a_tunnel_ends_when_its_directive_has_gone_if_it_is_to() {
    let upstream = echoing();
    let address = upstream.address();
    let proxy = |options: &str, after: &str| {
        caddyfile(&format!("reverse_proxy {address} {{\nstream_buffer_size 2KiB\n{options}\n}}\n{after}"))
    };
    let reload = |server: &Server, text: &str| {
        server.write_caddyfile(text);
        server.admin().request("POST", "/regent/reload").send().expect(200);
    };
    let server = Setup::new().caddyfile(&proxy("stream_close_delay 0", "")).start();
    let mut conn = tunnel(&server);
    reload(&server, &proxy("stream_close_delay 0", "header X-Other 1"));
    conn.send("still ");
    conn.read_until("still ");
    reload(&server, &proxy("stream_close_delay 1h", ""));
    assert!(conn.is_closed(), "the directive is another one");
    let mut conn = tunnel(&server);
    reload(&server, &proxy("", ""));
    conn.send("within an hour ");
    conn.read_until("within an hour ");
    let mut other = tunnel(&server);
    reload(&server, &caddyfile("respond gone"));
    other.send("to the end ");
    other.read_until("to the end ");
    drop((conn, other));
    server.stop();
}
