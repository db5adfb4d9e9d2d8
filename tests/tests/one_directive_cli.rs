//! `regent respond`, `reverse-proxy` and `list-modules`: Caddy's commands that need no configuration file.
#![forbid(unsafe_code)]

use regent_tests::{Setup, regent_command};
use std::path::Path;

#[test]
fn one_response_for_everybody() {
    let server = Setup::new()
        .arguments(&[
            "respond",
            "--listen",
            "ADDRESS",
            "-s",
            "201",
            "-H",
            "X-A: b c",
            "hello {http.request.uri.path}",
        ])
        .start();
    let answer = server.get("/x").expect(201);
    assert_eq!((answer.text().as_str(), answer.header("x-a")), ("hello /x", Some("b c")));
    server.stop();
}

#[test]
fn everything_goes_to_another_server() {
    let upstream = Setup::new().site("respond \"{header.X-Up} {hostport}\"").start();
    let to = upstream.address().to_string();
    let server = Setup::new()
        .arguments(&["reverse-proxy", "--from", "http://ADDRESS", "--to", &to, "-c", "-H", "X-Up: yes"])
        .start();
    assert_eq!(server.get("/").expect(200).text(), format!("yes {to}"));
    server.stop();
    upstream.stop();
}

#[test]
fn modules_are_listed() {
    let output = regent_command(Path::new("/")).arg("list-modules").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, is_there) in
        [("handlers.file_server", true), ("matchers.path_regexp", true), ("handlers.acme_server", false)]
    {
        assert_eq!(text.lines().any(|line| line == format!("http.{name}")), is_there, "{text}");
    }
}
