//! How a page ends whose script dies: what was printed is delivered, and the response ends as it should.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Gate, Response, STOP_AT_GATE, Server, Setup};

/// Ways to die when the page is complete, each with what PHP says of it.
const DEATHS: [(&str, &str); 5] = [
    ("undefined_function();", "Uncaught Error"),
    ("throw new LogicException('nobody catches this');", "nobody catches this"),
    ("trigger_error('fatal', E_USER_ERROR);", "fatal"),
    (
        "register_shutdown_function(function () { throw new LogicException('in a shutdown function'); });",
        "in a shutdown function",
    ),
    (
        "session_set_save_handler(new class extends SessionHandler {
            function open($path, $name): bool { return true; }
            function close(): bool { return true; }
            function read($id): string { return ''; }
            function write($id, $data): bool { throw new LogicException('database is locked'); }
         }, true);
         ini_set('session.use_cookies', '0'); session_start(); $_SESSION['n'] = 1;",
        "database is locked",
    ),
];

const PAGE: &str = "echo '<html>the whole'; ob_flush(); flush();";

fn classic(body: &str) -> Server {
    Setup::new().file("index.php", format!("<?php {body}")).start()
}

fn worker(body: &str) -> Server {
    Setup::new()
        .file("index.php", format!("<?php while (frankenphp_handle_request(function () {{ {body} }}));"))
        .php_options("num_threads 2\n\t\tworker ROOT/index.php 1")
        .start()
}

fn ask(conn: &mut Conn, target: &str) -> Response {
    conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    conn.response()
}

/// The page comes whole, on a connection that goes on.
#[track_caller]
fn expect_whole_pages(server: &Server, expected: &str, logged: &str) {
    let mut conn = server.connect();
    for _ in 0..3 {
        assert_eq!(ask(&mut conn, "/index.php").expect(200).text(), expected, "{}", server.log());
    }
    server.wait_for_log(logged);
}

#[test]
fn a_page_keeps_its_end_when_php_dies_after_output_began() {
    for (death, logged) in DEATHS {
        // A session has to be begun before the output.
        let is_early = death.starts_with("session") || death.starts_with("register");
        let (early, late) = if is_early { (death, "") } else { ("", death) };
        let server = classic(&format!("{early} {PAGE} echo ' page</html>'; {late}"));
        expect_whole_pages(&server, "<html>the whole page</html>", logged);
        server.stop();
        let server = worker(&format!("{early} {PAGE} echo ' page</html>'; {late}"));
        expect_whole_pages(&server, "<html>the whole page</html>", logged);
        server.stop();
    }
}

#[test]
fn a_page_that_was_not_begun_is_500_when_php_dies() {
    for (death, logged) in &DEATHS[..3] {
        for server in [classic(death), worker(death)] {
            let mut conn = server.connect();
            for _ in 0..3 {
                assert_eq!(ask(&mut conn, "/index.php").expect(500).text(), "");
            }
            server.wait_for_log(logged);
            server.stop();
        }
    }
}

#[test]
fn a_script_that_dies_in_the_middle_ends_its_page_there() {
    let body = format!("{PAGE} throw new LogicException('in the middle'); echo 'never';");
    for server in [classic(&body), worker(&body)] {
        expect_whole_pages(&server, "<html>the whole", "in the middle");
        server.stop();
    }
}

#[test]
fn a_page_of_a_known_length_that_php_leaves_short_ends_the_connection() {
    let script = format!("<?php header('Content-Length: 100'); {PAGE} {STOP_AT_GATE} undefined_function();");
    let setup = Setup::new().file("index.php", script);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conn = server.ask("/");
    let head = conn.head().expect("a whole head").expect("a head").expect(200);
    drop(gate.next());
    assert!(conn.rest_of(head).is_err(), "the client can tell that it is not all");
    server.stop();
}

#[test]
fn a_page_whose_engine_dies_breaks_off() {
    let setup = Setup::new().file(
        "index.php",
        format!("<?php {PAGE} {STOP_AT_GATE} posix_kill(getmypid(), SIGKILL); sleep(10);"),
    );
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conn = server.ask("/");
    let head = conn.head().expect("a whole head").expect("a head").expect(200);
    drop(gate.next());
    assert!(conn.rest_of(head).is_err(), "the client can tell that it is not all");
    server.stop();
}
