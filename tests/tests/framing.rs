//! Where one response ends and the next begins: bytes of a script must never be taken for a response of the server's.
#![forbid(unsafe_code)]

use regent_tests::native::fixture;
use regent_tests::{Conn, Gate, Response, STOP_AT_GATE, Server, Setup, percent_encode, until};
use std::io;

/// What a script would have the client take for the next response.
const FORGED: &str = "HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nforged";

fn server(script: &str) -> Server {
    Setup::new()
        .file("index.php", script)
        .file("next.php", "<?php header('X-Next: yes'); echo 'the next response';")
        .start()
}

/// A server whose `/` sends what `begin` printed, and goes on with `rest` when the test lets it.
fn streaming(begin: &str, rest: &str) -> (Server, Gate) {
    let script = format!("<?php {begin} ob_flush(); flush(); {STOP_AT_GATE} {rest}");
    let setup = Setup::new()
        .file("index.php", script)
        .file("next.php", "<?php header('X-Next: yes'); echo 'the next response';");
    let gate = Gate::of(&setup);
    (setup.start(), gate)
}

/// The response of a script that goes on when its head has come.
fn ask_streaming(conn: &mut Conn, gate: &Gate, target: &str) -> io::Result<Response> {
    conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = conn.head()?.expect("a head");
    drop(gate.next());
    conn.rest_of(head)
}

fn ask(conn: &mut Conn, method: &str, target: &str) -> Response {
    conn.send(format!("{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    match method {
        "HEAD" => conn.response_to_head(),
        _ => conn.response(),
    }
}

/// Whatever came before on this connection, the next response is the right one.
#[track_caller]
fn expect_next(conn: &mut Conn) {
    let next = ask(conn, "GET", "/next.php").expect(200);
    assert_eq!((next.header("x-next"), next.text().as_str()), (Some("yes"), "the next response"));
}

const INVALID: [&str; 9] = ["abc", "-1", "3,3", "+5", "0x4", "4 4", "", "4;", "99999999999999999999999999"];

fn of_length(length: &str) -> String {
    format!("/?length={}", percent_encode(length))
}

#[test]
fn a_whole_page_has_its_true_length_whatever_the_script_says() {
    let server =
        server(&format!("<?php header('Content-Length: ' . $_GET['length']); echo \"page{FORGED}\";"));
    let mut conn = server.connect();
    for length in ["4", "0", "4000", "0004"].iter().chain(&INVALID) {
        let page = ask(&mut conn, "GET", &of_length(length)).expect(200);
        assert_eq!(page.header_all("content-length"), [page.body.len().to_string()], "{length}");
        assert!(page.text().starts_with("pageHTTP/1.1") && page.text().ends_with("forged"), "{length}");
        expect_next(&mut conn);
    }
    server.stop();
}

#[test]
fn two_lengths_that_differ_are_neither() {
    const LENGTHS: &str = "header('Content-Length: 4'); header('Content-Length: 6', false); echo 'page';";
    let server = server(&format!("<?php {LENGTHS}"));
    let mut conn = server.connect();
    assert_eq!(ask(&mut conn, "GET", "/").expect(200).header_all("content-length"), ["4"]);
    expect_next(&mut conn);
    assert_eq!(ask(&mut conn, "HEAD", "/").expect(200).header("content-length"), None);
    expect_next(&mut conn);
    server.stop();
    let (server, gate) = streaming(LENGTHS, "echo ' and more';");
    let mut conn = server.connect();
    let page = ask_streaming(&mut conn, &gate, "/").expect("it is whole").expect(200);
    assert_eq!((page.header("content-length"), page.text().as_str()), (None, "page and more"));
    expect_next(&mut conn);
    server.stop();
}

#[test]
fn a_streamed_page_is_cut_at_its_length_and_the_script_runs_on() {
    let (server, gate) = streaming(
        "header('Content-Length: 6'); echo 'page';",
        &format!(
            "echo \"s!{FORGED}\"; ob_flush(); flush(); echo str_repeat('x', 3000000);
             file_put_contents(__DIR__ . '/ended', connection_status() . ' ' . $_GET['n']);"
        ),
    );
    let mut conn = server.connect();
    for n in 0..5 {
        let page = ask_streaming(&mut conn, &gate, &format!("/?n={n}")).expect("it is whole").expect(200);
        assert_eq!((page.header_all("content-length"), page.text().as_str()), (vec!["6"], "pages!"));
        expect_next(&mut conn);
        until("the script has run to its end", || {
            (server.wait_for_file("ended") == format!("0 {n}")).then_some(())
        });
    }
    server.stop();
}

#[test]
fn a_file_with_a_newline_behind_the_script_is_sent_as_long_as_it_is() {
    let server = server(
        "<?php header('Content-Length: ' . filesize(__DIR__ . '/file')); readfile(__DIR__ . '/file'); ?>\n\n",
    );
    let mut conn = server.connect();
    for size in [10, 5_000, 40_000, 1_000_000] {
        let content = "0123456789".repeat(size / 10);
        server.write("file", &content);
        let page = ask(&mut conn, "GET", "/").expect(200);
        // Small pages are whole before they are sent; of large ones the length is known before their end.
        let rest = page.text().strip_prefix(&content).map(str::to_owned);
        assert!(rest.as_deref().is_some_and(|rest| "\n".starts_with(rest)), "{size}: {rest:?}");
        assert_eq!(page.header_all("content-length"), [page.body.len().to_string()], "{size}");
        expect_next(&mut conn);
    }
    server.stop();
}

#[test]
fn a_streamed_page_that_falls_short_of_its_length_ends_the_connection() {
    let (server, gate) = streaming("header('Content-Length: 4000'); echo 'page';", "echo '!';");
    for _ in 0..5 {
        let mut conn = server.connect();
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next.php HTTP/1.1\r\nHost: x\r\n\r\n");
        let head = conn.head().expect("a whole head").expect("a head").expect(200);
        assert_eq!(head.header("content-length"), Some("4000"));
        assert_eq!(conn.read_until("page"), "page");
        drop(gate.next());
        assert_eq!(conn.read_until("!"), "!");
        assert!(conn.is_closed(), "nothing is taken for the rest of it");
    }
    expect_next(&mut server.connect());
    server.stop();
}

#[test]
fn the_answer_to_head_has_one_plain_length_or_none() {
    let server = server(
        "<?php header($_GET['line']); echo 'page'; if (isset($_GET['flush'])) { ob_flush(); flush(); }",
    );
    let mut conn = server.connect();
    for (line, expected) in [
        ("Content-Length: 10", Some("10")),
        ("Content-Length: 3,3", None),
        ("Content-Length: -1", None),
        ("X-Y: z", None),
    ] {
        for flush in ["", "&flush"] {
            let target = format!("/?line={}{flush}", percent_encode(line));
            let head = ask(&mut conn, "HEAD", &target).expect(200);
            assert_eq!(
                head.header_all("content-length"),
                expected.into_iter().collect::<Vec<_>>(),
                "{line}{flush}"
            );
            expect_next(&mut conn);
        }
    }
    server.stop();
}

#[test]
fn a_status_without_content_has_no_body_and_its_script_runs_on() {
    let begin = format!(
        "http_response_code((int) $_GET['code']); header('Content-Length: 4'); echo \"page{FORGED}\";
         if (isset($_GET['whole'])) return;"
    );
    let rest = format!(
        "echo \"{FORGED}\"; ob_flush(); flush(); file_put_contents(__DIR__ . '/ended' . $_GET['code'], '1');"
    );
    let (server, gate) = streaming(&begin, &rest);
    let mut conn = server.connect();
    for code in [204, 205, 304] {
        for target in [format!("/?code={code}&whole"), format!("/?code={code}")] {
            let page = ask(&mut conn, "GET", &target).expect(code);
            assert!(page.body.is_empty() && page.header("transfer-encoding").is_none(), "{target}");
            assert_eq!(page.header("content-length"), (code == 205).then_some("0"), "{target}");
            expect_next(&mut conn);
        }
        drop(gate.next());
        server.wait_for_file(&format!("ended{code}"));
    }
    server.stop();
}

#[test]
fn a_script_runs_on_when_the_answer_to_head_is_whole() {
    let script = format!(
        "<?php while (frankenphp_handle_request(function () {{
            header('Content-Length: 9'); echo 'page'; ob_flush(); flush();
            {STOP_AT_GATE}
            echo ' end'; ob_flush(); flush();
            file_put_contents(__DIR__ . '/ended', '1');
         }}));"
    );
    let setup = Setup::new()
        .file("index.php", script)
        .file("next.php", "<?php header('X-Next: yes'); echo 'the next response';")
        .php_options("num_threads 2\n\t\tmax_wait_time off\n\t\tworker ROOT/index.php 1");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conn = server.connect();
    conn.send("HEAD /index.php HTTP/1.1\r\nHost: x\r\n\r\n");
    let running = gate.next();
    let head = conn.response_to_head().expect(200);
    assert_eq!(head.header("content-length"), Some("9"));
    expect_next(&mut conn);
    drop(running);
    server.wait_for_file("ended");
    server.stop();
}

#[test]
fn the_connection_is_not_the_scripts_but_for_its_end() {
    let server = server(
        "<?php header('Transfer-Encoding: chunked'); header('Keep-Alive: timeout=1'); header('Upgrade: x');
         header('Proxy-Connection: close'); header('TE: trailers'); header('Connection: ' . $_GET['connection']);
         echo \"5\\r\\nhello\\r\\n0\\r\\n\\r\\n\";",
    );
    let mut conn = server.connect();
    for connection in ["keep-alive", "Upgrade", "x-own"] {
        let page = ask(&mut conn, "GET", &format!("/?connection={connection}")).expect(200);
        assert_eq!(page.text(), "5\r\nhello\r\n0\r\n\r\n");
        for name in ["transfer-encoding", "keep-alive", "upgrade", "proxy-connection", "te", "connection"] {
            assert_eq!(page.header(name), None, "{name}");
        }
        expect_next(&mut conn);
    }
    let last = ask(&mut conn, "GET", "/?connection=x-own,%20Close").expect(200);
    assert_eq!(last.header("connection"), Some("close"));
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn an_http_1_0_client_gets_the_true_length_or_the_end_of_the_connection() {
    let (server, gate) = streaming(
        "header('Content-Length: 3,3'); echo 'page'; if (isset($_GET['whole'])) return;",
        "echo '!';",
    );
    let whole = server.raw("GET /?whole HTTP/1.0\r\n\r\n");
    assert!(whole.contains("content-length: 4\r\n") && whole.ends_with("\r\n\r\npage"), "{whole}");
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = conn.head().expect("a whole head").expect("a head").expect(200);
    drop(gate.next());
    assert_eq!((head.header("content-length"), head.header("transfer-encoding")), (None, None));
    assert_eq!(conn.rest_of(head).expect("it ends with the connection").text(), "page!");
    server.stop();
}

#[test]
fn a_native_module_is_held_to_the_same() {
    let server = Setup::new()
        .module("server", &fixture("server.c"), &[])
        .file("next.php", "<?php header('X-Next: yes'); echo 'the next response';")
        .site(
            "handle_path /m/* {\n\t\tnative DIRECTORY/libserver.so {\n\t\t\tinline\n\t\t}\n\t}\n\tphp_server",
        )
        .start();
    let mut conn = server.connect();
    // What the module interface takes for a mistake is an error of the handler's.
    for (length, status) in [("17", 200), ("abc", 200), ("3,3", 200), ("-1", 200), ("4", 500), ("4000", 500)]
    {
        for route in ["length", "here/length"] {
            let answer = ask(&mut conn, "GET", &format!("/m/{route}/{length}")).expect(status);
            assert_eq!(
                answer.header_all("content-length"),
                [answer.body.len().to_string()],
                "{route} {length}"
            );
            expect_next(&mut conn);
        }
    }
    let streamed = ask(&mut conn, "GET", "/m/stream/length/abc").expect(200);
    assert_eq!(streamed.text(), "bodyHTTP/1.1 200 OK\r\n\r\n");
    expect_next(&mut conn);
    conn.send("GET /m/stream/length/4000 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(conn.try_response("GET").is_err(), "nothing is taken for the rest of it");
    server.stop();
}

#[test]
fn early_hints_that_come_with_the_response_come_before_it() {
    let server = server("<?php header('Link: </style.css>; rel=preload'); headers_send(103); echo 'page';");
    let mut conn = server.connect();
    for _ in 0..20 {
        let page = ask(&mut conn, "GET", "/").expect(200);
        assert_eq!(page.text(), "page");
        let hints: Vec<_> =
            page.informational.iter().map(|hint| (hint.status, hint.header("link"))).collect();
        assert_eq!(hints, [(103, Some("</style.css>; rel=preload"))]);
        expect_next(&mut conn);
    }
    server.stop();
}
