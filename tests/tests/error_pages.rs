//! `handle_errors`: the pages of a site for errors, wherever they come from.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Response, Server, Setup};

/// A page for each status, from a file.
const STATIC_PAGES: &str = "handle_errors {
	rewrite /errors/{err.status_code}.html
	file_server
}";

/// A script as the page of every error.
const SCRIPT_PAGE: &str = "handle_errors {
	rewrite /error.php
	php {
		env ERROR {err.status_code}
		env WHY {err.message}
	}
}";

/// Waits in its request until the file `go` is there.
const BUSY: &str = "<?php file_put_contents(__DIR__ . '/started', '1');
	while (!file_exists(__DIR__ . '/go')) { usleep(10000); clearstatcache(); } echo 'done';";

fn setup(site: &str) -> Setup {
    Setup::new()
        .site(site)
        .file("index.php", "<?php echo 'home';")
        .file("errors/404.html", "<h1>nothing here</h1>")
        .file("errors/413.html", "<h1>too much</h1>")
        .file("errors/502.html", "<h1>broken</h1>")
        .file("errors/503.html", "<h1>come back later</h1>")
        .file("error.php", "<?php echo \"$_SERVER[ERROR] $_SERVER[WHY] for $_SERVER[REQUEST_METHOD] $_SERVER[REQUEST_URI]\";")
}

fn page(answer: Response, status: u16) -> String {
    let answer = answer.expect(status);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    answer.text()
}

/// A connection whose request holds the only thread.
fn hold_the_thread(server: &Server) -> Conn {
    let mut busy = server.connect();
    busy.send("GET /busy.php HTTP/1.1\r\nHost: a\r\n\r\n");
    server.wait_for_file("started");
    busy
}

#[test]
fn a_file_is_the_page_of_what_is_not_there() {
    let server = setup(&format!("{STATIC_PAGES}\n\tphp_server {{\n\t\ttry_files {{path}}\n\t}}")).start();
    assert_eq!(page(server.get("/none.txt"), 404), "<h1>nothing here</h1>");
    assert_eq!(page(server.get("/none.php"), 404), "<h1>nothing here</h1>");
    assert_eq!(page(server.post("/none.txt", "text/plain", "x"), 404), "<h1>nothing here</h1>");
    assert_eq!(server.get("/index.php").expect(200).text(), "home");
    server.stop();
}

#[test]
fn the_block_for_the_status_goes_before_the_one_for_all() {
    let site = "handle_errors {\n\t\trespond \"{err.status_code} {err.status_text}: {err.message}\"\n\t}\n\t\
                handle_errors 404 5xx {\n\t\trespond `{\"missing\": true}`\n\t}\n\t\
                error /private/* \"not for you\" 403\n\tfile_server";
    let server = setup(site).start();
    assert_eq!(server.get("/private/x").expect(403).text(), "403 Forbidden: not for you");
    let missing = server.get("/none").expect(404);
    assert_eq!(
        (missing.header("content-type"), missing.text()),
        (Some("application/json"), "{\"missing\": true}".into())
    );
    server.stop();
}

#[test]
fn a_script_is_the_page_of_what_is_not_there_and_answers_with_its_status() {
    // The script is written anew.
    let server = setup(&format!("{SCRIPT_PAGE}\n\tfile_server"))
        .php_options("php_ini opcache.revalidate_freq 0")
        .start();
    assert_eq!(server.get("/none?x=1").expect(404).text(), "404 Not Found for GET /none?x=1");
    assert_eq!(server.post("/none", "text/plain", "body").expect(404).text(), "404 Not Found for POST /none");
    assert_eq!(server.get("/index.php").expect(404).text(), "404 Not Found for GET /index.php");
    server.write("error.php", "<?php http_response_code(410); echo 'gone for ', $_SERVER['ERROR'];");
    assert_eq!(server.get("/none").expect(410).text(), "gone for 404");
    server.stop();
}

#[test]
fn what_a_script_answers_is_no_error_of_the_server() {
    let server = setup(&format!("{STATIC_PAGES}\n\tphp_server"))
        .file("own.php", "<?php http_response_code(404); echo 'my own page';")
        .start();
    assert_eq!(server.get("/own.php").expect(404).text(), "my own page");
    server.stop();
}

#[test]
fn a_body_that_is_too_large_gets_its_page() {
    let server =
        setup(&format!("{STATIC_PAGES}\n\trequest_body {{\n\t\tmax_size 10\n\t}}\n\tphp_server")).start();
    let answer = server.post("/", "text/plain", "more than ten bytes");
    assert_eq!(answer.header("connection"), Some("close"), "the rest of the body is not read");
    assert_eq!(page(answer, 413), "<h1>too much</h1>");
    server.stop();
}

#[test]
fn a_request_that_waited_too_long_gets_its_page_and_keeps_its_connection() {
    let server = setup(&format!("{STATIC_PAGES}\n\tphp_server"))
        .php_options("num_threads 1\n\t\tmax_wait_time 1s")
        .file("busy.php", BUSY)
        .start();
    let mut busy = hold_the_thread(&server);
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = conn.response();
    assert_eq!((answer.header("retry-after"), answer.header("connection")), (Some("1"), None));
    assert_eq!(page(answer, 503), "<h1>come back later</h1>");
    server.write("go", "");
    assert_eq!(busy.response().expect(200).text(), "done");
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "home");
    server.stop();
}

#[test]
fn a_full_pool_leaves_the_page_to_what_needs_no_script() {
    let pages = "handle_errors {
	route {
		rewrite /error.php
		php {
			env ERROR {err.status_code}
			env WHY {err.message}
		}
		respond \"no script for {err.status_code}\"
	}
}";
    for (pages, shed, gone) in [
        (SCRIPT_PAGE, "503 Service Unavailable\n", "404 Not Found\n"),
        (pages, "no script for 503", "no script for 404"),
    ] {
        let server = setup(&format!("{pages}\n\terror /gone 404\n\tphp_server"))
            .php_options("num_threads 1\n\t\tmax_wait_time 1s")
            .file("busy.php", BUSY)
            .start();
        let mut busy = hold_the_thread(&server);
        assert_eq!(server.get("/").expect(503).text(), shed);
        // A page of PHP's that has to wait itself: the error stays what it was.
        assert_eq!(server.get("/gone").expect(404).text(), gone);
        server.write("go", "");
        assert_eq!(busy.response().expect(200).text(), "done");
        assert_eq!(server.get("/gone").expect(404).text(), "404 Not Found for GET /gone");
        server.stop();
    }
}

#[test]
fn a_script_is_the_page_of_what_another_pool_has_no_room_for() {
    let server = setup(&format!("{SCRIPT_PAGE}\n\tphp_server {{\n\t\tworker {{\n\t\t\tfile ROOT/busy-worker.php\n\t\t\tnum 1\n\t\t\tmatch /work*\n\t\t}}\n\t}}"))
        .php_options("num_threads 2\n\t\tmax_threads 2\n\t\tmax_wait_time 1s")
        .file(
            "busy-worker.php",
            "<?php while (frankenphp_handle_request(function () { file_put_contents(__DIR__ . '/started', '1');
             while (!file_exists(__DIR__ . '/go')) { usleep(10000); clearstatcache(); } echo 'done'; })) {}",
        )
        .start();
    let mut busy = server.connect();
    busy.send("GET /work HTTP/1.1\r\nHost: a\r\n\r\n");
    server.wait_for_file("started");
    let answer = server.post("/work", "text/plain", "body").expect(503);
    assert_eq!(answer.text(), "503 Service Unavailable for POST /work");
    assert!(answer.header("retry-after").is_some());
    server.write("go", "");
    assert_eq!(busy.response().expect(200).text(), "done");
    server.stop();
}

#[test]
fn a_script_is_the_page_of_a_body_that_is_too_large() {
    let server =
        setup(&format!("{SCRIPT_PAGE}\n\trequest_body {{\n\t\tmax_size 10\n\t}}\n\tphp_server")).start();
    let answer = server.post("/", "text/plain", "more than ten bytes").expect(413);
    assert_eq!(answer.text(), "413 Payload Too Large for POST /");
    assert_eq!(answer.header("connection"), Some("close"), "the rest of the body is not read");
    server.stop();
}

#[test]
fn a_script_is_the_page_of_a_request_that_died_with_php() {
    let server = setup(&format!("{SCRIPT_PAGE}\n\tphp_server"))
        .file("die.php", "<?php posix_kill(getmypid(), SIGKILL); usleep(10000000);")
        .start();
    // The next engine makes it.
    assert_eq!(server.get("/die.php").expect(502).text(), "502 Bad Gateway for GET /die.php");
    assert_eq!(server.get("/index.php").expect(200).text(), "home");
    server.stop();
}

#[test]
fn a_request_that_died_with_php_gets_its_page() {
    let server = setup(&format!("{STATIC_PAGES}\n\tphp_server"))
        .file("die.php", "<?php posix_kill(getmypid(), SIGKILL); usleep(10000000);")
        .start();
    assert_eq!(page(server.get("/die.php"), 502), "<h1>broken</h1>");
    server.stop();
}
