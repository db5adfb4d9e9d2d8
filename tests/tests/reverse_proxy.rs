//! `reverse_proxy`: requests that other servers answer.
#![forbid(unsafe_code)]

use regent_tests::upstream::{ok, receive};
use regent_tests::{DEADLINE, Server, Setup, TlsClient, Upstream, heard, own_address};
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn site(directives: &str) -> Setup {
    Setup::new()
        .site(&format!("handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n{directives}\n}}"))
        .php_options("num_threads 1")
}

fn proxy_to(address: SocketAddr) -> Server {
    site(&format!("reverse_proxy {address}")).start()
}

/// What reading gives until the other side has closed.
fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn a_request_reaches_the_upstream_and_its_response_the_client() {
    let upstream = Upstream::answering(|_| ok("X-App: one\r\nServer: app/1\r\nX-App: two\r\n", "hello"));
    let server = proxy_to(upstream.address());
    let response = server.request("GET", "/a%20b/../c?x=<1>&y").header("X-Own", "mine").send().expect(200);
    assert_eq!(response.text(), "hello");
    assert_eq!(response.header_all("x-app"), ["one", "two"]);
    assert_eq!(response.header_all("server"), ["app/1"]);
    assert_eq!(response.header("via"), Some("1.1 Regent"));
    let request = upstream.last();
    assert_eq!(request.line(), "GET /a%20b/../c?x=%3C1%3E&y HTTP/1.1");
    assert_eq!(request.field("x-own"), "mine");
    assert_eq!(request.field("host"), server.address().to_string(), "the client's");
    assert_eq!(request.field("x-forwarded-for"), "127.0.0.1");
    assert_eq!(request.field("x-forwarded-proto"), "http");
    assert_eq!(request.field("x-forwarded-host"), server.address().to_string());
    assert_eq!(request.field("via"), "1.1 Regent");
    assert_eq!(request.field("content-length") + &request.field("transfer-encoding"), "");
    server.stop();
}

#[test]
fn what_is_between_two_neighbours_goes_no_further() {
    let upstream = Upstream::answering(|_| {
        ok(
            "Connection: X-Inner, keep-alive\r\nX-Inner: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\n",
            "",
        )
    });
    let server = proxy_to(upstream.address());
    let response = server
        .request("GET", "/")
        .header("Connection", "close, X-Secret")
        .header("X-Secret", "1")
        .header("Proxy-Authorization", "Basic eA==")
        .header("TE", "gzip, trailers")
        .header("X-Forwarded-For", "10.9.8.7")
        .header("X-Forwarded-Proto", "https")
        .send()
        .expect(200);
    for name in ["x-inner", "keep-alive", "proxy-authenticate"] {
        assert_eq!(response.header(name), None, "{name}");
    }
    let request = upstream.last();
    for name in ["connection", "x-secret", "proxy-authorization"] {
        assert_eq!(request.field(name), "", "{name}");
    }
    assert_eq!(request.field("te"), "trailers");
    assert_eq!(request.field("x-forwarded-for"), "127.0.0.1", "nobody trusts the client");
    assert_eq!(request.field("x-forwarded-proto"), "http");
    server.stop();
}

#[test]
fn a_trusted_proxy_is_believed() {
    let upstream = Upstream::answering(|_| ok("", ""));
    let proxy = format!("reverse_proxy {} {{\ntrusted_proxies 127.0.0.0/8\n}}", upstream.address());
    let server = site(&proxy).start();
    let request = server.request("GET", "/").header("X-Forwarded-For", "10.9.8.7");
    request.header("X-Forwarded-Proto", "https").send().expect(200);
    assert_eq!(upstream.last().field("x-forwarded-for"), "10.9.8.7, 127.0.0.1");
    assert_eq!(upstream.last().field("x-forwarded-proto"), "https");
    server.stop();
}

#[test]
fn bodies_are_framed_anew() {
    let upstream = Upstream::answering(|request| ok("", &String::from_utf8_lossy(&request.body)));
    let server = proxy_to(upstream.address());
    assert_eq!(server.post("/", "text/plain", "a body").expect(200).text(), "a body");
    assert_eq!((upstream.last().field("content-length").as_str(), upstream.last().body.len()), ("6", 6));
    let mut conn = server.connect();
    conn.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nin \r\n005\r\nparts\r\n0\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "in parts");
    assert_eq!(upstream.last().field("transfer-encoding"), "chunked");
    assert_eq!(upstream.last().field("content-length"), "");
    server.stop();
}

/// Where two lengths could be read out of a message, both sides must see the same end of it.
#[test]
fn a_message_of_two_lengths_smuggles_nothing() {
    let upstream = Upstream::answering(|request| {
        match request.line().contains("/both") {
        true => b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n".to_vec(),
        false => ok("", "next"),
    }
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send("GET /both HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    let first = conn.response().expect(200);
    assert_eq!((first.text().as_str(), first.header("content-length")), ("whole", None));
    assert_eq!(conn.response().expect(200).text(), "next");
    let before = upstream.requests().len();
    let smuggling = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
                     0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let _ = server.raw(smuggling);
    let seen = upstream.requests();
    let lines: Vec<_> =
        seen[before..].iter().map(|request| (request.line().to_owned(), request.body.len())).collect();
    // Either both take it for a request of its own, behind an empty body, or nobody sees it.
    let as_own = [("POST /x HTTP/1.1".to_owned(), 0), ("GET /smuggled HTTP/1.1".to_owned(), 0)];
    assert!(as_own.starts_with(&lines), "{lines:?}");
    server.stop();
}

#[test]
fn connections_are_kept_and_one_that_was_closed_meanwhile_is_replaced() {
    let upstream = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        // The first connection answers two requests, and ends with the third unanswered.
        for count in 0.. {
            let Some(request) = receive(&mut reader, number) else { return };
            if number == 0 && count == 2 {
                return;
            }
            let text = format!("{number}.{count} {}", String::from_utf8_lossy(&request.body));
            (&stream).write_all(&ok("", &text)).expect("the server reads");
        }
    });
    let server = proxy_to(upstream.address());
    // Each I/O thread has its own: those of one client's connection.
    let mut client = server.connect();
    let mut get = || {
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        client.response().expect(200).text()
    };
    let texts: Vec<String> = (0..4).map(|_| get()).collect();
    assert_eq!(texts, ["0.0 ", "0.1 ", "1.0 ", "1.1 "]);
    server.stop();
}

#[test]
fn a_request_that_may_have_had_an_effect_is_not_sent_again() {
    let upstream = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        for count in 0.. {
            let received = receive(&mut reader, number);
            if received.is_none() || count == 1 {
                return;
            }
            (&stream).write_all(&ok("", "")).expect("the server reads");
        }
    });
    let server = proxy_to(upstream.address());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    client.response().expect(200);
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\norder");
    client.response().expect(502);
    assert_eq!(upstream.connections(), 1);
    server.stop();
}

#[test]
fn an_upstream_that_is_not_there_is_a_502_which_can_have_a_page() {
    let nobody = own_address();
    let server = site(&format!("reverse_proxy {nobody}")).start();
    assert_eq!(server.get("/").expect(502).text(), "502 Bad Gateway\n");
    server.wait_for_log(&format!("cannot connect to {nobody}"));
    server.stop();
    let page = format!(
        "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\nreverse_proxy {nobody}\n}}\n\
         handle_errors {{\nrespond \"sorry: {{err.status_code}}\"\n}}"
    );
    let server = Setup::new().site(&page).start();
    assert_eq!(server.get("/").expect(502).text(), "sorry: 502");
    server.stop();
}

#[test]
fn a_proxy_of_itself_ends() {
    let server = site("reverse_proxy ADDRESS").start();
    server.get("/").expect(508);
    server.stop();
}

#[test]
fn an_error_page_may_be_another_servers() {
    let upstream = Upstream::answering(|request| ok("", request.line()));
    let server = Setup::new()
        .site(&format!(
            "error /fail 500\nphp_server\nhandle_errors {{\nrewrite * /page\nreverse_proxy {}\n}}",
            upstream.address()
        ))
        .start();
    assert_eq!(
        server.get("/fail").expect(200).text(),
        "GET /page HTTP/1.1",
        "with its own status, as in Caddy"
    );
    server.stop();
}

#[test]
fn an_upstream_that_says_nothing_is_a_504() {
    let (done, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::talking(move |stream, _| {
        let _ = wait.lock().map(|wait| wait.recv_timeout(DEADLINE));
        drop(stream);
    });
    let proxy = format!(
        "reverse_proxy {} {{\ntransport http {{\nresponse_header_timeout 50ms\n}}\n}}",
        upstream.address()
    );
    let server = site(&proxy).start();
    server.get("/").expect(504);
    server.post("/", "text/plain", "a body").expect(504);
    drop(done);
    server.stop();
}

#[test]
fn a_response_that_is_no_http_is_a_502() {
    let upstream = Upstream::talking(|mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n");
    });
    let server = proxy_to(upstream.address());
    server.get("/").expect(502);
    server.stop();
}

#[test]
fn a_response_that_breaks_off_does_not_look_whole() {
    let upstream = Upstream::talking(|mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    });
    let server = proxy_to(upstream.address());
    let received = server.raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(received.contains("half") && !received.ends_with("0\r\n\r\n"), "{received}");
    server.stop();
}

#[test]
fn an_upstream_hears_that_the_client_has_left() {
    let ((came, has_come), (left, has_left)) = (mpsc::channel(), mpsc::channel());
    let upstream = Upstream::talking(move |stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let request = receive(&mut reader, number).expect("a request");
        came.send(()).expect("the test waits");
        if request.line().contains("/begun") {
            (&stream)
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
                .expect("the server reads");
        }
        assert!(rest(&stream).is_empty());
        left.send(()).expect("the test waits");
    });
    let server = proxy_to(upstream.address());
    for target in ["/silent", "/begun"] {
        let mut conn = server.ask(target);
        heard(&has_come, "the upstream has the request");
        if target == "/begun" {
            conn.read_until("begun");
        }
        drop(conn);
        heard(&has_left, "the upstream hears it");
    }
    server.stop();
}

#[test]
fn a_response_is_passed_on_as_it_comes() {
    let (go, may_go) = mpsc::channel::<()>();
    let may_go = std::sync::Mutex::new(may_go);
    let upstream = Upstream::talking(move |mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n";
        stream.write_all(head).expect("the server reads");
        heard(&may_go.lock().expect("one connection"), "the test goes on");
        stream.write_all(b"data: second\n\n").expect("the server reads");
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.ask("/");
    conn.read_until("data: first\n\n");
    go.send(()).expect("the upstream waits");
    conn.read_until("data: second\n\n");
    conn.read_until("0\r\n\r\n");
    server.stop();
}

#[test]
fn a_request_body_is_passed_on_as_it_comes() {
    let (came, has_come) = mpsc::channel();
    let upstream = Upstream::talking(move |mut stream, _| {
        let mut seen = Vec::new();
        while !seen.ends_with(b"first") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the server sends");
            seen.push(byte[0]);
        }
        came.send(()).expect("the test waits");
        stream.read_exact(&mut [0; 6]).expect("the rest");
        stream.write_all(&ok("", "thanks")).expect("the server reads");
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nfirst");
    heard(&has_come, "it has come");
    conn.send("second");
    assert_eq!(conn.response().expect(200).text(), "thanks");
    server.stop();
}

#[test]
fn an_upstream_may_answer_before_it_has_the_whole_request() {
    let upstream = Upstream::talking(|mut stream, _| {
        stream.read_exact(&mut [0; 64]).expect("a head");
        let early = b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!";
        stream.write_all(early).expect("the server reads");
        let _ = stream.shutdown(Shutdown::Write);
        drop(rest(&stream));
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nonly the beginning");
    assert_eq!(conn.response().expect(413).text(), "no!");
    server.stop();
}

#[test]
fn a_body_that_is_too_large_reaches_nobody() {
    let upstream = Upstream::answering(|_| ok("", ""));
    let proxy = format!("request_body {{\nmax_size 10\n}}\nreverse_proxy {}", upstream.address());
    let server = site(&proxy).start();
    server.post("/", "text/plain", "longer than ten").expect(413);
    assert_eq!(upstream.connections(), 0);
    let mut conn = server.connect();
    conn.send(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nf\r\nlonger than ten\r\n0\r\n\r\n",
    );
    conn.response().expect(413);
    assert!(upstream.requests().is_empty());
    server.stop();
}

#[test]
fn responses_without_a_body_keep_the_length_that_they_tell_of() {
    let upstream = Upstream::answering(|request| match request.line().split(' ').nth(1) {
        Some("/304") => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 9\r\n\r\n".to_vec(),
        Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n".to_vec(),
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    for _ in 0..2 {
        conn.send("HEAD /head HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response_to_head().expect(200).header("content-length"), Some("1234"));
        conn.send("GET /304 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response().expect(304).header("etag"), Some("\"x\""));
        conn.send("GET /204 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response().expect(204).header("content-length"), None);
    }
    assert_eq!(upstream.connections(), 1);
    server.stop();
}

#[test]
fn informational_responses_and_trailers_pass() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n\
          HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 42\r\n\r\n"
            .to_vec()
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n");
    let hint = conn.head().expect("a head").expect("a response").expect(103);
    assert_eq!((hint.header("link"), hint.header("x-hop")), (Some("</a.css>; rel=preload"), None));
    let text = conn.read_until("X-Sum: 42\r\n\r\n".to_lowercase().as_str());
    assert!(text.contains("trailer: X-Sum\r\n") && text.contains("4\r\nbody\r\n0\r\n"), "{text}");
    let response = server.get("/").expect(200);
    assert_eq!(
        (response.text().as_str(), response.header("trailer")),
        ("body", None),
        "nobody asked for them"
    );
    server.stop();
}

/// An upstream that agrees to change the protocol, and then sends back in capitals what it gets.
fn shouting() -> Upstream {
    Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let request = receive(&mut reader, number).expect("a request");
        let protocol = request.field("upgrade");
        if protocol.is_empty() {
            let _ = (&stream).write_all(&ok("", "plain"));
            return;
        }
        let switched = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\
             Sec-WebSocket-Accept: yes\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nConnection: X-Own\r\n\
             X-Own: 1\r\n\r\nhello "
        );
        (&stream).write_all(switched.as_bytes()).expect("the server reads");
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let _ = (&stream).write_all(&buffer[..count].to_ascii_uppercase());
        }
        let _ = (&stream).write_all(b" bye");
    })
}

fn upgrade(protocol: &str) -> String {
    format!(
        "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Key: x\r\n\r\n"
    )
}

#[test]
fn a_connection_that_leaves_http_is_joined_with_the_upstreams() {
    let upstream = shouting();
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send(upgrade("websocket"));
    let switched = conn.head().expect("a head").expect("a response").expect(101);
    assert_eq!(switched.header("upgrade"), Some("websocket"));
    assert_eq!(switched.header("connection"), Some("Upgrade"));
    assert_eq!(switched.header("sec-websocket-accept"), Some("yes"));
    let of_connection = ["keep-alive", "proxy-authenticate", "x-own"].map(|name| switched.header(name));
    assert_eq!(of_connection, [None; 3], "those are for the upstream's connection alone");
    conn.read_until("hello ");
    for word in ["GET <a> HTTP/1.1", "two", "three"] {
        conn.send(word);
        conn.read_until(&word.to_uppercase());
    }
    conn.finish_sending();
    conn.read_until(" bye");
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn the_server_stops_though_a_tunnel_is_open() {
    let upstream = shouting();
    let server = proxy_to(upstream.address());
    let mut conn = server.connect();
    conn.send(upgrade("websocket"));
    conn.read_until("hello ");
    server.stop();
    assert!(conn.is_closed());
}

#[test]
fn a_connection_with_tls_leaves_http_and_ends_with_a_word() {
    let upstream = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        (&stream).write_all(head.as_bytes()).expect("the server reads");
        let mut word = [0; 5];
        reader.read_exact(&mut word).expect("a word");
        (&stream).write_all(&word.to_ascii_uppercase()).expect("the server reads");
        let _ = stream.shutdown(Shutdown::Write);
        drop(rest(&stream));
    });
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {{\n\t\tnum_threads 1\n\t}}\n}}\n\
         localhost {{\n\treverse_proxy {}\n}}\n",
        upstream.address()
    );
    let server = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
    let mut conn = TlsClient::trusting(&root).connect(server.tls_address(), "localhost");
    conn.send(upgrade("websocket").replace("Host: x", "Host: localhost"));
    assert_eq!(conn.head().expect("a head").expect("a response").status, 101);
    conn.send("hello");
    conn.read_until("HELLO");
    assert_eq!(conn.read_some(&mut [0; 1]).expect("close_notify"), 0);
    drop(conn);
    server.stop();
}

#[test]
fn a_tunnel_may_have_its_time() {
    let upstream = shouting();
    let proxy =
        format!("reverse_proxy {} {{\nstream_timeout 1s\nstream_buffer_size 1KiB\n}}", upstream.address());
    let server = site(&proxy).start();
    let mut conn = server.connect();
    conn.send(upgrade("websocket"));
    conn.read_until("hello ");
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn requests_are_not_smuggled_through_an_upgrade() {
    let upstream = shouting();
    let server = proxy_to(upstream.address());
    for protocols in ["h2c", "websocket, h2c", "H2C"] {
        let mut conn = server.connect();
        conn.send(upgrade(protocols));
        assert_eq!(conn.response().expect(200).text(), "plain", "{protocols}");
    }
    server.stop();
}

#[test]
fn a_change_of_protocol_that_nobody_asked_for_is_a_502() {
    let switching =
        |_: &_| b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n".to_vec();
    let upstream = Upstream::answering(switching);
    let server = proxy_to(upstream.address());
    server.get("/").expect(502);
    let mut conn = server.connect();
    conn.send(upgrade("websocket"));
    conn.response().expect(502);
    server.stop();
}

#[test]
fn an_upstream_may_be_a_socket_file_or_come_with_the_request() {
    let upstream = Upstream::answering(|_| ok("", "by name"));
    let port = upstream.address().port();
    let proxy = "@named header X-Backend *\nreverse_proxy @named {header.X-Backend}\n\
                 reverse_proxy unix/DIRECTORY/app.sock";
    let setup = site(proxy);
    let listener =
        std::os::unix::net::UnixListener::bind(setup.directory().join("app.sock")).expect("a socket");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the server connects");
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(&ok("Connection: close\r\n", "by file")).expect("the server reads");
    });
    let server = setup.start();
    assert_eq!(server.get("/").expect(200).text(), "by file");
    answering.join().expect("no panic");
    let named = |backend: &str| server.request("GET", "/").header("X-Backend", backend).send();
    assert_eq!(named(&format!("localhost:{port}")).expect(200).text(), "by name");
    assert_eq!(named(&format!("127.0.0.1:{port}")).expect(200).text(), "by name");
    named("no/address").expect(502);
    named("nowhere.invalid:80").expect(502);
    server.stop();
}

#[test]
fn many_requests_at_once_are_told_apart() {
    let upstream = Upstream::answering(|request| ok("", request.line()));
    let server = proxy_to(upstream.address());
    let answers =
        regent_tests::in_parallel(40, |number| server.get(&format!("/{number}")).expect(200).text());
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("GET /{number} HTTP/1.1"));
    }
    server.stop();
}

#[test]
fn a_client_that_reads_nothing_holds_the_upstream_back() {
    const BYTES: usize = 256 << 20;
    let is_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&is_done);
    let upstream = Upstream::talking(move |mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the server reads");
        let block = vec![b'x'; 1 << 20];
        let sent = (0..BYTES >> 20).all(|_| stream.write_all(&block).is_ok());
        done.store(sent, Ordering::SeqCst);
    });
    let server = proxy_to(upstream.address());
    let mut conn = server.ask("/");
    let head = conn.head().expect("a head").expect("a response").expect(200);
    assert_eq!(head.header("content-length"), Some(BYTES.to_string().as_str()));
    let mut buffer = vec![0; 1 << 20];
    let mut read = 0;
    while read < BYTES {
        read += conn.read_some(&mut buffer).expect("the rest");
        // More than half of it cannot be anywhere while the client has less than a quarter.
        assert!(read > BYTES / 4 || !is_done.load(Ordering::SeqCst), "it was all taken after {read} bytes");
    }
    let (memory, _) = server.memory();
    assert!(memory.written < 64 << 20, "{memory:?}");
    server.stop();
}

/// A server that answers with TLS, with a certificate of its own CA, and says what it was asked for.
fn secure_backend(options: &str) -> (Server, Upstream) {
    let upstream = Upstream::answering(|request| {
        ok("", &format!("{}, {}", request.field("host"), request.field("via")))
    });
    let text = format!(
        "{{\n\tadmin off\n\t{options}\n\tskip_install_trust\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {{\n\t\tnum_threads 1\n\t}}\n}}\n\
         localhost, 127.0.0.1 {{\n\treverse_proxy {}\n}}\n",
        upstream.address()
    );
    let server = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    (server, upstream)
}

#[test]
fn an_upstream_without_http_2_was_a_502_where_only_that_was_asked_for() {
    let (backend, upstream) = secure_backend("servers {\nprotocols h1\n}");
    let root = backend.directory().join("data/caddy/pki/authorities/local/root.crt");
    let proxy = format!(
        "reverse_proxy https://localhost:{} {{\ntransport http {{\ntls_trust_pool file {}\nversions 2\n}}\n}}",
        backend.tls_address().port(),
        root.display()
    );
    let server = site(&proxy).start();
    let answer = server.get("/").expect(200).text();
    assert!(answer.contains("1.1 Regent"), "{answer}");
    server.stop();
    backend.stop();
    drop(upstream);
}

#[test]
fn an_upstream_with_tls_is_verified_and_called_by_its_own_name() {
    let (backend, upstream) = secure_backend("");
    let root = backend.directory().join("data/caddy/pki/authorities/local/root.crt");
    let port = backend.tls_address().port();
    let trusting = |name: &str, more: &str| {
        let proxy = format!(
            "reverse_proxy https://{name}:{port} {{\ntransport http {{\ntls_trust_pool file {}\n{more}\n}}\n}}",
            root.display()
        );
        site(&proxy).start()
    };
    let server = trusting("localhost", "");
    let via = "1.1 Regent|2.0 Regent";
    assert_eq!(server.get("/").expect(200).text(), format!("localhost:{port}, {via}"));
    assert_eq!(server.post("/", "text/plain", "x").expect(200).text(), format!("localhost:{port}, {via}"));
    server.stop();
    let server = trusting("127.0.0.1", "versions 1.1");
    let via = "1.1 Regent|1.1 Regent";
    assert_eq!(server.get("/").expect(200).text(), format!("127.0.0.1:{port}, {via}"));
    server.stop();
    let server = trusting("127.0.0.1", "tls_server_name another.example");
    server.get("/").expect(502);
    server.stop();
    let server = site(&format!("reverse_proxy https://localhost:{port}")).start();
    server.get("/").expect(502);
    server.wait_for_log("invalid peer certificate");
    server.stop();
    let unverified = format!(
        "reverse_proxy https://localhost:{port} {{\ntransport http {{\ntls_insecure_skip_verify\n}}\n}}"
    );
    let server = site(&unverified).start();
    server.get("/").expect(200);
    server.stop();
    assert_eq!(upstream.requests().len(), 4);
    backend.stop();
}

#[test]
fn an_upstream_may_speak_http_2_without_tls() {
    let upstream = Upstream::answering(|request| {
        match request.line().contains("/trailers") {
        true => b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 42\r\n\r\n"
            .to_vec(),
        false => ok("", &format!("{} {}", request.field("host"), String::from_utf8_lossy(&request.body))),
    }
    });
    let backend = site(&format!("reverse_proxy {}", upstream.address()))
        .global_options("servers {\nprotocols h1 h2c\n}")
        .start();
    let server = site(&format!("reverse_proxy h2c://{}", backend.address())).start();
    let post = || server.request("POST", "/").header("Host", "a.example").body("text/plain", "hello").send();
    let answers = regent_tests::in_parallel(20, |_| post().expect(200).text());
    assert!(answers.iter().all(|answer| answer == "a.example hello"), "{answers:?}");
    assert_eq!(upstream.last().field("via"), "1.1 Regent|2.0 Regent");
    let mut conn = server.connect();
    conn.send("GET /trailers HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n");
    conn.read_until("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n");
    server.stop();
    backend.stop();
}
