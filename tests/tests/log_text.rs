//! Text of clients and scripts in logs: it must not pass for something else.
#![forbid(unsafe_code)]

use regent_tests::{Setup, until};
use std::fs;

/// CSI, a right-to-left override, a line separator, and an isolate: none of them has a shape of its own.
const MISLEADING: &str = "\u{9b}31m\u{202e}\u{2028}\u{2066}";

/// None of them may be there as it is, in whatever encoding a terminal takes.
fn assert_harmless(log: &str) {
    let raw: Vec<char> = log.chars().filter(|c| "\u{9b}\u{202e}\u{2028}\u{2066}\x1b".contains(*c)).collect();
    assert!(raw.is_empty(), "{raw:?} in {}", log.escape_debug());
}

#[test]
fn the_access_log_shows_characters_that_mislead_as_escapes() {
    let server = Setup::new().site("log {\n\t\toutput file DIRECTORY/access.log\n\t}\n\trespond ok").start();
    let request = format!(
        "GET /{MISLEADING} HTTP/1.1\r\nHost: x\r\nUser-Agent: a{MISLEADING}b\r\nConnection: close\r\n\r\n"
    );
    server.raw(request);
    let log = until("the request is in the access log", || {
        let log = fs::read_to_string(server.directory().join("access.log")).ok()?;
        log.contains("31m").then_some(log)
    });
    assert_harmless(&log);
    assert!(log.contains(r#""User-Agent":["a\u009b31m\u202e\u2028\u2066b"]"#), "{log}");
    assert!(log.contains(r#""uri":"/\u009b31m\u202e\u2028\u2066""#), "{log}");
    server.stop();
}

#[test]
fn lines_of_a_script_in_the_log_show_characters_that_mislead_as_escapes() {
    for (format, escaped) in
        [("json", r"said \u009b31m\u202e\u2028\u2066"), ("console", r"31m\u{202e}\u{2028}\u{2066}")]
    {
        let server = Setup::new()
            .file("index.php", "<?php error_log('said ' . $_SERVER['HTTP_X_TEXT']); echo 'ok';")
            .global_options(&format!("log {{\n\t\tformat {format}\n\t}}"))
            .start();
        server.request("GET", "/").header("X-Text", MISLEADING).send().expect(200);
        server.wait_for_log("said ");
        let log = until("the line is whole", || Some(server.log()).filter(|log| log.contains(escaped)));
        assert_harmless(&log);
        server.stop();
    }
}
