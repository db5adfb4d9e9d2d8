//! The real program, with a server of the tests: what it says, what it answers, how it ends.

#[path = "../../wire/tests/common/mod.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod common;
mod support;

use common::{Io, short};
use regent_wire::Completion;
use regent_wire::control::{Event, Order, ThreadStart};
use std::os::unix::process::ExitStatusExt;
use support::{Native, Workshop, request};

const ABORTED: Option<i32> = Some(6);

#[test]
fn a_service_answers() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 2);
    assert_eq!(native.until_ready(), "native modules: answers 1.0");
    let answer = native.ask(0, &request("GET", "/hello/you"), b"");
    let head = answer.head.unwrap();
    assert_eq!((head.status, &answer.body[..]), (200, &b"hello you"[..]));
    assert_eq!(head.fields().collect::<Vec<_>>(), [(&b"Content-Type"[..], &b"text/plain"[..])]);
    let body = common::bytes(1, 300_000);
    assert!(native.ask(0, &request("POST", "/echo"), &body).body == body);
    let large = native.ask(0, &request("GET", "/large/1000000"), b"");
    assert!(large.body == vec![b'.'; 1_000_000] && large.completion == Some(Completion::Complete));
    native.stop();
}

#[test]
fn variables_of_the_request_are_the_modules() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    let answer = native.ask(0, &request("GET", "/request/a?x=1"), b"");
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.starts_with("method GET\npath /request/a\ntarget /request/a?x=1\nquery x=1\n"), "{text}");
    assert!(
        text.contains("client 127.0.0.1\n") && text.ends_with("\naccept: */*\nx-own: 1\ngone 0\n"),
        "{text}"
    );
    native.stop();
}

#[test]
fn fields_follow_the_body() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    let answer = native.ask(0, &request("GET", "/trailers"), b"");
    let trailers = answer.trailers.unwrap();
    assert_eq!(trailers.fields().collect::<Vec<_>>(), [(&b"X-Sum"[..], &b"15"[..])]);
    native.stop();
}

#[test]
fn an_answer_that_breaks_off_says_so_and_why() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    let answer = native.ask(0, &request("GET", "/fails?later"), b"");
    assert_eq!(answer.completion, Some(Completion::Truncated));
    assert_eq!((answer.log[0].level, &answer.log[0].message[..20]), (3, &b"the handler has fail"[..]));
    native.stop();
}

#[test]
fn each_pool_is_a_service_of_its_own() {
    let workshop = Workshop::new();
    let modules = vec![
        workshop.plain("one").service(1),
        workshop.plain("two").service(0),
        workshop.plain("three").into(),
    ];
    let mut native = Native::start(modules, 2, 1);
    assert_eq!(native.until_ready(), "native modules: one 1.0, two 1.0, three 1.0");
    let status =
        |native: &mut Native, pool, path| native.ask(pool, &request("GET", path), b"").head.unwrap().status;
    assert_eq!((status(&mut native, 0, "/two"), status(&mut native, 0, "/one")), (200, 404));
    assert_eq!((status(&mut native, 1, "/two"), status(&mut native, 1, "/one")), (404, 200));
    native.stop();
}

#[test]
fn threads_come_and_go_as_the_server_orders() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    native.until_ready();
    native.io.backend.region().retire(0);
    assert!(matches!(native.event(), Event::ThreadEnded { index: 0, error: None }));
    native.order(&Order::Start { threads: vec![ThreadStart { index: 3, pool: 0 }] });
    assert_eq!(native.ask(0, &request("GET", "/hello/you"), b"").body, b"hello you");
    assert_eq!(native.io.backend.region().thread_view(3).requests, 1);
    native.stop();
}

#[test]
fn modules_are_cleaned_up_when_the_engine_has_drained() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 2);
    native.until_ready();
    let events = native.stop();
    let last = events.last().expect("events");
    assert!(
        matches!(last, Event::Log { level: 6, message, .. } if message == "answers: cleanup"),
        "{events:?}"
    );
}

#[test]
fn modules_that_cannot_be_loaded_are_reported() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.missing().service(0)], 1, 1);
    let Event::Failed { message } = native.event() else { panic!() };
    assert!(message.contains("libmissing.so") && message.contains("cannot be opened"), "{message}");
    assert_eq!(native.wait().code(), Some(1));
}

#[test]
fn a_client_that_leaves_ends_an_endless_answer() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    let token = native.submit(0, &request("GET", "/endless"));
    native.io.wait();
    native.io.port.cancel(token);
    assert_eq!(native.ask(0, &request("GET", "/hello/you"), b"").body, b"hello you");
    native.stop();
}

#[test]
fn a_crash_of_a_module_ends_the_engine_only() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    native.submit(0, &request("GET", "/crashes"));
    assert_eq!(native.wait().signal(), ABORTED);
}

#[test]
fn an_exception_that_leaves_a_module_is_named_and_ends_the_engine() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.throwing().service(0)], 1, 1);
    native.until_ready();
    native.submit(0, &request("GET", "/throws"));
    let Event::Log { level: 3, message, .. } = native.event() else { panic!() };
    assert!(message.starts_with("throwing: an exception has left its handler"), "{message}");
    assert_eq!(native.wait().signal(), ABORTED);
}

#[test]
fn the_engine_ends_with_its_server() {
    let workshop = Workshop::new();
    let mut native = Native::start(vec![workshop.answers().service(0)], 1, 1);
    native.until_ready();
    native.hang_up();
    assert_eq!(native.wait().code(), Some(0));
}

#[test]
fn called_by_hand_it_says_what_it_is_for() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_regent-native")).arg("--help").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by `regent`"));
}

impl Native {
    fn submit(&mut self, pool: usize, head: &[u8]) -> regent_wire::Token {
        let io: &mut Io = &mut self.io;
        let token = io.submit(head, pool);
        io.port.end_body(token, regent_wire::BodyState::Complete).unwrap();
        token
    }

    /// The answer, and the slot back.
    fn ask(&mut self, pool: usize, head: &[u8], body: &[u8]) -> common::Response {
        let token = self.io.submit(head, pool);
        let response = self.io.finish(token, body).unwrap();
        while self.io.port.in_use() > 0 {
            self.io.wait_for(&short());
        }
        response
    }
}
