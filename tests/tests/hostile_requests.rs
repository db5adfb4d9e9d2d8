//! Requests that are not what they seem: two readers of the same bytes must not see two things. Each is answered with a
//! status that says no, and nothing behind it is served, or is taken as the one thing that it can be.
#![forbid(unsafe_code)]

use End::{Closed, Kept};
use regent_tests::{Server, Setup};

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Kept,
}

/// A server whose scripts say what they were asked.
fn server() -> Server {
    Setup::new()
        .file(
            "index.php",
            "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_HOST'] ?? '', ' ', $_SERVER['SERVER_NAME'], ' ',\n\
             $_SERVER['REQUEST_URI'], ' [', file_get_contents('php://input'), ']';",
        )
        .start()
}

/// Sends the request, and then, if it has not been refused, another.
#[track_caller]
fn assert_answered(server: &Server, request: impl AsRef<[u8]>, status: u16, end: End) {
    let request = request.as_ref();
    let shown = request.escape_ascii();
    let mut conn = server.connect();
    conn.send(request);
    let answer = conn.try_response("GET").unwrap_or_else(|error| panic!("{shown}: {error}"));
    let answer = answer.unwrap_or_else(|| panic!("{shown}: closed without an answer"));
    assert_eq!(answer.status, status, "{shown}: {}", answer.text());
    // What is refused says so before it is closed; and what was sent behind it is not served.
    let next = conn.try_send("GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let next = next.and_then(|()| conn.try_response("GET"));
    match end {
        Kept => {
            assert_eq!(next.expect("it is kept").expect("it is kept").text(), "GET x x /next []", "{shown}")
        }
        Closed => assert!(!matches!(next, Ok(Some(_))), "{shown}: served what came behind it"),
    }
}

#[track_caller]
fn assert_all_answered(server: &Server, requests: &[(&str, u16, End)]) {
    for (request, status, end) in requests {
        assert_answered(server, request, *status, *end);
    }
    server.get("/").expect(200);
}

// --- Where a body ends ---------------------------------------------------------------------------------------------

#[test]
fn a_transfer_coding_that_is_not_chunked_alone_is_refused() {
    let server = server();
    let coded = |fields: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n{fields}\r\n\r\n2\r\nab\r\n0\r\n\r\n"
        )
    };
    for (fields, status, end) in [
        ("Transfer-Encoding: chunked", 200, Kept),
        ("transfer-encoding:CHUNKED", 200, Kept),
        ("Transfer-Encoding: \t chunked \t", 200, Kept),
        ("Transfer-Encoding: gzip, chunked", 501, Closed),
        ("Transfer-Encoding: identity, chunked", 501, Closed),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 501, Closed),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity, chunked", 501, Closed),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400, Closed),
        ("Transfer-Encoding: chunked, chunked", 400, Closed),
        ("Transfer-Encoding: , chunked", 400, Closed),
        ("Transfer-Encoding: chunked,", 400, Closed),
        ("Transfer-Encoding: chunked, identity", 400, Closed),
        ("Transfer-Encoding: gzip", 400, Closed),
        ("Transfer-Encoding: xchunked", 400, Closed),
        ("Transfer-Encoding: chunked;x=1", 400, Closed),
        ("Transfer-Encoding: \"chunked\"", 400, Closed),
        ("Transfer-Encoding:", 400, Closed),
        ("Transfer-Encoding: \u{b}chunked", 400, Closed),
        ("Transfer-Encoding: chunked\u{b}", 400, Closed),
        ("Transfer-Encoding:\r\n chunked", 400, Closed),
        ("Transfer-Encoding : chunked", 400, Closed),
        ("Transfer-Encoding\t: chunked", 400, Closed),
        (" Transfer-Encoding: chunked", 400, Closed),
        ("X: y\r\n Transfer-Encoding: chunked", 400, Closed),
        ("X: y\rTransfer-Encoding: chunked", 400, Closed),
        // The coding counts, and it is the last request of the connection (RFC 9112 §6.3).
        ("Transfer-Encoding: chunked\r\nContent-Length: 3", 200, Closed),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", 200, Closed),
        ("Transfer-Encoding: gzip, chunked\r\nContent-Length: 3", 501, Closed),
    ] {
        assert_answered(&server, coded(fields), status, end);
    }
    let http_1_0 =
        coded("Transfer-Encoding: chunked\r\nConnection: keep-alive").replace("HTTP/1.1", "HTTP/1.0");
    assert_answered(&server, http_1_0, 400, Closed);
    server.stop();
}

#[test]
fn a_length_that_is_not_one_number_is_refused() {
    let server = server();
    let long = |fields: &str| {
        format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n{fields}\r\n\r\nabcde")
    };
    for (fields, status, end) in [
        ("Content-Length: 5", 200, Kept),
        ("Content-Length: 0005", 200, Kept),
        // The same twice says one thing (RFC 9110 §8.6).
        ("Content-Length: 5\r\nContent-Length: 5", 200, Kept),
        ("Content-Length: 5\r\nContent-Length: 6", 400, Closed),
        ("Content-Length: 5, 5", 400, Closed),
        ("Content-Length: +5", 400, Closed),
        ("Content-Length: -5", 400, Closed),
        ("Content-Length: 5.0", 400, Closed),
        ("Content-Length: 0x5", 400, Closed),
        ("Content-Length: 5 5", 400, Closed),
        ("Content-Length: 5e0", 400, Closed),
        ("Content-Length:", 400, Closed),
        ("Content-Length: 18446744073709551621", 400, Closed),
        ("Content-Length : 5", 400, Closed),
        ("Content-Length: \u{b}5", 400, Closed),
        ("Content-Length:\r\n 5", 400, Closed),
    ] {
        assert_answered(&server, long(fields), status, end);
    }
    server.stop();
}

#[test]
fn a_chunk_has_one_length_and_one_end() {
    let server = server();
    let chunked = |body: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        )
    };
    for (body, status, end) in [
        ("5\r\nabcde\r\n0\r\n\r\n", 200, Kept),
        ("005;x=y\r\nabcde\r\n000\r\n\r\n", 200, Kept),
        ("5;a=\"b\"\r\nabcde\r\n0\r\n\r\n", 200, Kept),
        ("5\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("5\r\nabcde\n0\r\n\r\n", 400, Closed),
        ("5;x\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("5\rXabcde\r\n0\r\n\r\n", 400, Closed),
        ("5\r\nabcdefg\r\n0\r\n\r\n", 400, Closed),
        ("0x5\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("+5\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        (" 5\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("5 5\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("ffffffffffffffff5\r\nabcde\r\n0\r\n\r\n", 400, Closed),
        ("5\r\nabcde\r\n0\r\nX: y\nGET /smuggled HTTP/1.1\r\n\r\n", 400, Closed),
        ("5\r\nabcde\r\n0\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", 400, Closed),
    ] {
        assert_answered(&server, chunked(body), status, end);
    }
    server.stop();
}

/// hyper takes a bare LF for the end of trailers, and throws away what came with it: whoever forwards requests may see one
/// there, and would give its client the answer to the next.
#[test]
fn nothing_is_served_behind_trailers() {
    let server = Setup::new()
        .file("index.php", "<?php echo file_get_contents('php://input');")
        .site("respond /said \"a text\"\n\tphp_server")
        .start();
    let hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    for target in ["/", "/said"] {
        for body in ["5\r\nabcde\r\n0\r\n", "0\r\n"] {
            for trailers in
                ["X: y\r\n\r\n".to_owned(), format!("X: y\n\n{hidden}"), format!("X: y\r\n\n{hidden}")]
            {
                let request = format!(
                    "POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\
                     Transfer-Encoding: chunked\r\n\r\n{body}{trailers}"
                );
                assert_answered(&server, request, 200, Closed);
            }
        }
    }
    server.stop();
}

// --- Heads ---------------------------------------------------------------------------------------------------------

#[test]
fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let server = server();
    assert_all_answered(
        &server,
        &[
            ("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, Kept),
            ("GET / HTTP/1.1\nHost: x\n\n", 200, Kept),
            ("GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\n\r\n", 400, Closed),
            (" GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, Closed),
            ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400, Closed),
            ("GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400, Closed),
            ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400, Closed),
            ("GET / http/1.1\r\nHost: x\r\n\r\n", 400, Closed),
            ("GET / HTTP/1.1\rHost: x\r\n\r\n", 400, Closed),
        ],
    );
    server.stop();
}

#[test]
fn a_method_is_a_token_of_bounded_length() {
    let server = server();
    let method = |method: &str| format!("{method} / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_answered(&server, method("PROPFIND"), 200, Kept);
    assert_answered(&server, method(&"M".repeat(32)), 200, Kept);
    assert_answered(&server, method(&"M".repeat(33)), 501, Closed);
    assert_answered(&server, method(&"M".repeat(7000)), 501, Closed);
    for bad in ["G<T", "G{T}", "GET\u{e9}", "G\"T", "(GET)", "G,T", "G/T", "G:T", "G\0T"] {
        assert_answered(&server, method(bad), 400, Closed);
    }
    server.stop();
}

#[test]
fn a_host_is_a_name_and_perhaps_a_port() {
    let server = server();
    let host = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for good in ["x", "x.test.", "x:8080", "x:", "[::1]", "[::1]:80", "127.0.0.1:1", "a_b-c.test", ""] {
        assert_answered(&server, host(good), 200, Kept);
    }
    for bad in [
        "user@x",
        "user:secret@x",
        "x@y@z",
        "x:abc",
        "x:-1",
        "x:+1",
        "x:65536",
        "x:80:80",
        "x: 80",
        ":80",
        ":",
        "x y",
        "x/y",
        "x\\y",
        "x?y",
        "x#y",
        "x,y",
        "x;",
        "<x>",
        "[::1",
        "::1",
        "[x]",
        "[::1]x",
        "\u{e9}",
        "http://x",
    ] {
        // A comma and a semicolon may be in a `reg-name` (RFC 3986 §3.2.2).
        let status = if matches!(bad, "x,y" | "x;") { (200, Kept) } else { (400, Closed) };
        assert_answered(&server, host(bad), status.0, status.1);
    }
    assert_answered(&server, "OPTIONS * HTTP/1.1\r\nHost: user@x\r\n\r\n", 400, Closed);
    assert_answered(&server, "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, Closed);
    assert_answered(&server, "GET / HTTP/1.1\r\n\r\n", 400, Closed);
    server.stop();
}

#[test]
fn the_host_of_a_target_counts_and_must_be_one() {
    let server = server();
    let answer =
        server.raw("GET http://B.test:8080/p?q HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with("GET B.test:8080 b.test /p?q []"), "{answer}");
    let target = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    for bad in [
        "http://user@x/",
        "http://user:secret@x/",
        "http://x:abc/",
        "http://x:65536/",
        "http://:80/",
        "http:///",
        "http://",
        "http://x y/",
        "http://<x>/",
        "ftp://x/",
        "file:///etc/passwd",
        "x",
        "x:80",
        "x/y",
        "?q",
        "*",
        "//",
        "\\",
    ] {
        // An empty segment before the path is no host (RFC 9112 §3.2.1).
        let expected = if bad == "//" { (200, Kept) } else { (400, Closed) };
        assert_answered(&server, target(bad), expected.0, expected.1);
    }
    assert_answered(&server, "GET http://x/ HTTP/1.1\r\nHost: user@x\r\n\r\n", 400, Closed);
    assert_answered(&server, "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n", 405, Closed);
    server.stop();
}

// --- Targets -------------------------------------------------------------------------------------------------------

#[test]
fn targets_with_bytes_that_no_uri_may_have_are_answered() {
    let server = server();
    server.write("a<b>\".txt", "found");
    let uri = |target: &[u8]| {
        let request = [b"GET ", target, b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"].concat();
        let answer = server.raw(request);
        answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
    };
    for (target, encoded) in [
        (&b"/<script>?a=<\">"[..], "/%3Cscript%3E?a=%3C%22%3E"),
        (b"/{a}|b\\c^d`e\"?{a}|b\\c^d`e", "/{a}|b\\c^d%60e\"?{a}|b\\c^d`e"),
        (b"/\xe9t\xe9?n=M\xfcller", "/%E9t%E9?n=M%FCller"),
        ("/été?n=Müller".as_bytes(), "/été?n=Müller"),
        (b"/%3C<%3c", "/%3C%3C%3c"),
        (b"http://x/<>", "/%3C%3E"),
    ] {
        let target_text = target.escape_ascii();
        assert_eq!(uri(target), format!("GET x x {encoded} []"), "{target_text}");
    }
    assert_eq!(uri(b"/a<b>\".txt"), "found");
    for bad in [&b"/\0"[..], b"/\x01", b"/\x1b", b"/\x7f", b"/a b", b"/\t", b"/\x0b", b"/%", b"/%zz", b"/%00"]
    {
        let request = [b"GET ", bad, b" HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
        assert_answered(&server, request, 400, Closed);
    }
    server.stop();
}

/// The bytes of a target are changed in the stream: a body must not be taken for one, wherever packets end.
#[test]
fn nothing_but_a_target_is_changed_on_its_way() {
    let server = server();
    let body = "GET /<x> HTTP/1.1\r\nHost: x\r\n\r\n";
    let stream = format!(
        "POST /<a> HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {0}\r\n\r\n{body}\
         POST /<b> HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {0}\r\n\r\n{body}\
         GET /<c> HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let expected = [
        format!("POST x x /%3Ca%3E [{body}]"),
        format!("POST x x /%3Cb%3E [{body}]"),
        "GET x x /%3Cc%3E []".into(),
    ];
    for part in [1, 7, 50, 100, stream.len()] {
        let mut conn = server.connect();
        for part in stream.as_bytes().chunks(part) {
            conn.send(part);
        }
        for text in &expected {
            assert_eq!(conn.response().expect(200).text(), *text, "in parts of {part}");
        }
        assert!(conn.is_closed());
    }
    server.stop();
}
