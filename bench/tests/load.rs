//! `regent-bench load` as a program: what the suites start, and what ends with them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;

/// Answers every request of every connection with `hello`, as long as the test runs.
fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer_all(stream));
        }
    });
    address
}

fn answer_all(stream: TcpStream) {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|length| length > 0) {
        let ends_head = line == "\r\n";
        line.clear();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        if ends_head && input.get_mut().write_all(answer).is_err() {
            return;
        }
    }
}

fn load(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regent-bench"));
    command.arg("load").args(arguments).stdin(Stdio::null());
    command
}

fn standard_output(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn the_summary_says_what_came_of_the_load() {
    let url = format!("http://{}/", start_server());
    let output = load(&[&url, "-n", "50", "--expect-body", "hello"]).output().expect("started");
    let text = standard_output(&output);
    assert!(text.contains("requests     50 in ") && text.contains("misses       0 "), "{text}");
}

#[test]
fn processes_share_the_requests() {
    let url = format!("http://{}/", start_server());
    let output =
        load(&[&url, "-n", "51", "-c", "6", "--processes", "3", "--json"]).output().expect("started");
    let outcome: serde_json::Value = serde_json::from_str(&standard_output(&output)).expect("JSON");
    assert_eq!(
        (&outcome["right_in_time"], &outcome["most_connections"]),
        (&51.into(), &6.into()),
        "{outcome}"
    );
}

#[test]
fn other_machines_are_refused() {
    let output = load(&["http://192.0.2.1/", "-n", "1"]).output().expect("started");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("is not a loopback address"), "{error}");
}

#[test]
fn a_generator_without_a_plan_ends() {
    // Its input ends because its suite has.
    let output = load(&["--plan", "-", "--json"]).output().expect("started");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("the plan on standard input"), "{error}");
}
