//! HTTP/1.x on the wire: what RFC 9110 and RFC 9112 ask of a server, well-meant and ill-meant.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Server, Setup, until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server whose `/` echoes the body, and whose `/smuggled.php` leaves a trace that it ran.
fn echo_server() -> Server {
    Setup::new()
        .file(
            "index.php",
            "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['REQUEST_URI'], ' [', file_get_contents('php://input'), ']';",
        )
        .file("smuggled.php", "<?php file_put_contents(__DIR__ . '/smuggled', '1');")
        .file("unread.php", "<?php echo 'unread';")
        .start()
}

/// The status of each response within raw bytes.
fn statuses(raw: &str) -> Vec<u16> {
    raw.split("HTTP/1.").skip(1).filter_map(|part| part.get(2..5)?.parse().ok()).collect()
}

// --- Connections ---------------------------------------------------------------------------------------------------

#[test]
fn a_connection_serves_many_requests() {
    let server = Setup::new().file("index.php", "<?php echo $_SERVER['REMOTE_PORT'];").start();
    let mut conn = server.connect();
    let port = conn.local_address().port().to_string();
    for _ in 0..20 {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), port);
    }
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(conn.response().expect(200).header("connection"), Some("close"));
    assert!(conn.is_closed());
    server.stop();
}

/// Lets a server open only a few files more than it has.
fn limit_open_files(server: &Server) {
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs").count();
    let limit = Some(open as u64 + 4);
    let pid = Pid::from_raw(server.pid() as i32);
    prlimit(pid, Resource::Nofile, Rlimit { current: limit, maximum: limit }).expect("it is ours");
}

#[test]
fn connections_beyond_the_limit_of_open_files_wait_for_their_turn() {
    let server = Setup::new().file("index.php", "<?php echo 'quick';").start();
    assert_eq!(server.get("/").expect(200).text(), "quick");
    limit_open_files(&server);
    let mut connections: Vec<Conn> = (0..64).map(|_| server.connect()).collect();
    server.wait_for_log("a connection could not be accepted");
    for connection in &mut connections {
        connection.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
    for connection in &mut connections {
        assert_eq!(connection.response().expect(200).text(), "quick");
    }
    server.stop();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = echo_server();
    let mut conn = server.connect();
    let requests: String = (0..10)
        .map(|i| {
            format!(
                "POST /{i} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n{i}"
            )
        })
        .collect();
    conn.send(requests);
    for i in 0..10 {
        assert_eq!(conn.response().expect(200).text(), format!("POST /{i} [{i}]"));
    }
    server.stop();
}

#[test]
fn an_http_1_0_client_gets_a_plain_answer() {
    let server = Setup::new()
        .file("index.php", "<?php echo $_SERVER['SERVER_PROTOCOL'], '.'; ob_flush(); flush(); echo 'more';")
        .start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    let answer = conn.response().expect(200);
    assert_eq!(answer.text(), "HTTP/1.0.more");
    assert_eq!(answer.header("transfer-encoding"), None);
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let server = echo_server();
    server.write("file.txt", "0123456789");
    let mut conn = server.connect();
    conn.send("HEAD /file.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response_to_head().expect(200).header("content-length"), Some("10"));
    conn.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    conn.response_to_head().expect(200);
    conn.send("GET /after HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "GET /after []", "no byte of a body came in between");
    server.stop();
}

#[test]
fn an_absolute_target_names_host_and_path() {
    let server = Setup::new()
        .file("index.php", "<?php echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['SERVER_NAME'];")
        .start();
    let mut conn = server.connect();
    conn.send("GET http://other.test/path?x=1 HTTP/1.1\r\nHost: other.test\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "/path?x=1 other.test");
    server.stop();
}

#[test]
fn odd_targets_are_answered() {
    let server = echo_server();
    for request in ["OPTIONS * HTTP/1.1", "CONNECT x:80 HTTP/1.1", "TRACE / HTTP/1.1"] {
        let raw = server.raw(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let answered = statuses(&raw);
        assert!(answered.len() == 1 && answered[0] < 500, "{request}: {raw}");
    }
    server.get("/").expect(200);
    server.stop();
}

// --- Bodies --------------------------------------------------------------------------------------------------------

#[test]
fn a_chunked_body_reaches_the_script_whole() {
    let server = echo_server();
    let mut conn = server.connect();
    conn.send(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
         4\r\nWiki\r\n7;name=value\r\npedia i\r\nB\r\nn \r\nchunks.\r\n0\r\n\r\n",
    );
    assert_eq!(conn.response().expect(200).text(), "POST / [Wikipedia in \r\nchunks.]");
    conn.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "GET /next []");
    server.stop();
}

#[test]
fn a_chunked_form_is_parsed() {
    let server = Setup::new().file("index.php", "<?php echo json_encode($_POST);").start();
    let raw = server.raw(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n5\r\na=1&b\r\n2\r\n=2\r\n0\r\n\r\n",
    );
    assert!(raw.contains(r#"{"a":"1","b":"2"}"#), "{raw}");
    server.stop();
}

#[test]
fn expect_100_continue_is_answered_when_the_script_reads() {
    let server = echo_server();
    let mut conn = server.connect();
    conn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let interim = conn.head().expect("a response").expect("a response, not the end");
    assert_eq!(interim.status, 100);
    conn.send("hello");
    assert_eq!(conn.response().expect(200).text(), "POST / [hello]");
    server.stop();
}

#[test]
fn expect_100_continue_with_a_script_that_never_reads_gets_the_answer() {
    let server = echo_server();
    let mut conn = server.connect();
    conn.send(
        "POST /unread.php HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    );
    // RFC 9110, 10.1.1: the server may ask for the body whether the script wants it or not, or answer without.
    let first = conn.head().expect("a response").expect("a response, not the end");
    if first.status == 100 {
        conn.send("hello");
        assert_eq!(conn.response().expect(200).text(), "unread");
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), "GET / []", "the body is not taken for a request");
    } else {
        assert_eq!(first.status, 200);
        conn.read_until("unread");
    }
    server.stop();
}

#[test]
fn a_body_that_the_script_leaves_unread_is_not_the_next_request() {
    let server = echo_server();
    let mut conn = server.connect();
    let body = "GET /smuggled.php HTTP/1.1\r\nHost: x\r\n\r\n";
    conn.send(format!(
        "POST /unread.php HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(conn.response().expect(200).text(), "unread");
    let sent = conn.try_send("GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    if let (Ok(()), Ok(Some(next))) = (sent, conn.try_response("GET")) {
        assert_eq!(next.expect(200).text(), "GET /next []");
    }
    assert!(!server.root().join("smuggled").exists());
    server.stop();
}

#[test]
fn a_body_above_the_limit_is_413() {
    let server = Setup::new()
        .site("request_body {\n\t\tmax_size 1KB\n\t}\n\tphp_server")
        .file("index.php", "<?php echo strlen(file_get_contents('php://input'));")
        .start();
    assert_eq!(server.post("/", "text/plain", vec![b'x'; 1000]).expect(200).text(), "1000");
    server.post("/", "text/plain", vec![b'x'; 1001]).expect(413);
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         800\r\n{}\r\n0\r\n\r\n",
        "x".repeat(0x800)
    );
    let raw = server.raw(chunked);
    assert_eq!(statuses(&raw), [413], "{raw}");
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn a_broken_chunked_body_never_reaches_the_script_as_a_whole_one() {
    let server = echo_server();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "5\r\nhel",
        "5\r\nhello\r\n",
        "5\r\nhello",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "zz\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nbroken",
    ] {
        // Whether the server answers 400 or hangs up depends on how far it has come.
        let raw = server.raw_cut_off(format!("{head}{body}"));
        assert!(statuses(&raw).iter().all(|status| *status >= 400), "{body:?}: {raw}");
    }
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn a_body_that_breaks_off_never_reaches_the_script_as_a_whole_one() {
    let server = echo_server();
    let raw = server.raw_cut_off(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc",
    );
    assert!(statuses(&raw).iter().all(|status| *status >= 400), "{raw}");
    server.get("/").expect(200);
    server.stop();
}

// --- Limits --------------------------------------------------------------------------------------------------------

#[test]
fn a_head_above_the_limit_is_431() {
    let server = echo_server();
    let raw = server.raw(format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(200_000)));
    assert_eq!(statuses(&raw), [431], "{}", &raw[..raw.len().min(500)]);
    let large = server.request("GET", "/").header("X-Large", "x".repeat(30_000)).send();
    large.expect(200);
    server.stop();
}

#[test]
fn too_many_fields_are_431() {
    let server = Setup::new().file("index.php", "<?php echo $_SERVER['HTTP_X_FIELD_89'];").start();
    let fields = |count: u32| (0..count).map(|i| format!("X-Field-{i}: {i}\r\n")).collect::<String>();
    let ask = |count| {
        server.raw(format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", fields(count)))
    };
    assert!(ask(90).ends_with("89"), "ninety are fine");
    assert_eq!(statuses(&ask(2000)), [431]);
    server.stop();
}

#[test]
fn a_slow_head_times_out() {
    let server = Setup::new()
        .global_options("servers {\n\t\ttimeouts {\n\t\t\tread_header 1s\n\t\t}\n\t}")
        .file("index.php", "<?php echo 'ok';")
        .start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nX-Never: ends");
    match conn.try_response("GET") {
        Ok(None) => {}
        Ok(Some(answer)) => drop(answer.expect(408)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the server must hang up: {error}")
        }
    }
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Setup::new()
        .global_options("servers {\n\t\ttimeouts {\n\t\t\tidle 1s\n\t\t}\n\t}")
        .file("index.php", "<?php echo 'ok';")
        .start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    conn.response().expect(200);
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn a_silent_body_times_out_and_frees_its_thread() {
    let server = Setup::new()
        .php_options("num_threads 1")
        .site("php_server {\n\t\trequest_body_timeout 300ms\n\t}")
        .file("index.php", "<?php echo strlen(file_get_contents('php://input'));")
        .start();
    let mut slow = server.connect();
    slow.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc");
    assert_eq!(server.get("/").expect(200).text(), "0", "the only thread serves others");
    match slow.try_response("POST") {
        Ok(Some(answer)) => assert!(answer.status >= 400, "{answer:?}"),
        Ok(None) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    server.stop();
}

/// Sends a byte every 20 ms or so until the server answers, and gives the answer.
fn drip(server: &Server) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    // clock: the pace of the bytes, which come until the server answers.
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("that is a time-out");
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut answer = [0; 1024];
    until("the server answers", || {
        stream.write_all(b"x").expect("it reads");
        let count = stream.read(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer[..count]).into_owned())
    })
}

#[test]
fn a_body_that_drips_is_not_waited_for_for_ever() {
    let server = Setup::new()
        .global_options(
            "servers {\n\t\tmin_body_rate 1KiB\n\t\ttimeouts {\n\t\t\tread_body 400ms\n\t\t}\n\t}",
        )
        .file("index.php", "<?php echo strlen(file_get_contents('php://input'));")
        .start();
    let answer = drip(&server);
    assert!(answer.starts_with("HTTP/1.1 408 "), "no byte is late by itself: {answer}");
    assert_eq!(server.post("/", "text/plain", "0123456789").expect(200).text(), "10");
    server.stop();
}

// --- Bad requests --------------------------------------------------------------------------------------------------

#[test]
fn bad_requests_are_400_and_end_the_connection() {
    let server = echo_server();
    for request in [
        "GARBAGE\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.1 extra\r\nHost: x\r\n\r\n",
        "GET / HTTP/9.1\r\nHost: x\r\n\r\n",
        "GET / HTTQ/1.1\r\nHost: x\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nSpace : 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nNul: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nFolded: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1 1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\na",
    ] {
        let mut conn = server.connect();
        // The server may hang up while we are still sending.
        let _ = conn.try_send(request);
        let answer = conn.try_response("GET").unwrap_or_else(|error| panic!("{request:?}: {error}"));
        let answer = answer.unwrap_or_else(|| panic!("{request:?}: no answer"));
        assert!([400, 505].contains(&answer.status), "{request:?}: {answer:?}");
        assert!(conn.is_closed(), "{request:?}: still open");
    }
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn a_request_cannot_be_smuggled_within_another() {
    let server = echo_server();
    let smuggled = "GET /smuggled.php HTTP/1.1\r\nHost: x\r\n\r\n";
    for request in [
        // Both lengths: RFC 9112, 6.3 lets the coding win, or the request be refused; never the length.
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!(
            "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        ),
    ] {
        let raw = server.raw(&request);
        assert!(statuses(&raw).len() <= 1, "two answers to {request:?}: {raw}");
        assert!(!server.root().join("smuggled").exists(), "the second request ran: {request:?}: {raw}");
    }
    server.stop();
}

#[test]
fn garbage_after_a_request_hurts_no_one_else() {
    let server = echo_server();
    let mut good: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    for seed in 0..50_u32 {
        let noise: Vec<u8> = (0..400_u32)
            .map(|i| (seed.wrapping_mul(2_654_435_761).wrapping_add(i * i * 31) >> 7) as u8)
            .collect();
        server.raw_cut_off(noise);
    }
    for conn in &mut good {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.response().expect(200);
    }
    server.stop();
}
