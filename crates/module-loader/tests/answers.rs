//! What handlers see of a request, and what becomes of their answers.

use crate::support::{Answer, Log, Request, Workshop, load, module};
use regent_module_loader::{Completion, Modules};
use serde_json::{Value, json};

fn modules() -> (Workshop, Modules) {
    let workshop = Workshop::new();
    let library = workshop.compile("answers", "libanswers.so", &[]);
    let modules = load(vec![module(&library, Some("test"))], &Log::default()).unwrap();
    (workshop, modules)
}

fn problem(answer: &Answer) -> Value {
    assert_eq!(answer.field("Content-Type"), Some("application/problem+json"), "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn a_small_answer_is_one_publication() {
    let (_workshop, modules) = modules();
    let mut scratch = modules.scratch();
    for name in ["you", "me"] {
        let answer = Request::get(&format!("/hello/{name}")).ask_with(&modules, &mut scratch);
        assert_eq!((answer.status, answer.text()), (200, format!("hello {name}").as_str()));
        assert_eq!(answer.fields, [("Content-Type".to_owned(), "text/plain".to_owned())]);
        assert_eq!((answer.publications, answer.completion), (1, Some(Completion::Complete)));
    }
    let answer = Request::get("/nothing").ask_with(&modules, &mut scratch);
    assert_eq!((answer.status, answer.text(), answer.fields.len()), (200, "", 0));
}

#[test]
fn a_large_answer_is_sent_in_parts() {
    let (_workshop, modules) = modules();
    let answer = Request::get("/large/100000").ask(&modules);
    assert_eq!(answer.body, vec![b'.'; 100_000]);
    assert_eq!((answer.publications, answer.completion), (4, Some(Completion::Complete)));
}

#[test]
fn handlers_see_the_whole_request() {
    let (_workshop, modules) = modules();
    let answer = Request::get("/request/a/b?x=1%20%2B+2&y=3&x=")
        .variable("HTTP_ACCEPT", "text/html")
        .variable("CONTENT_TYPE", "text/css")
        .variable("HTTP_X_TWO_WORDS", "v")
        .ask(&modules);
    let expected = "method GET\npath /request/a/b\ntarget /request/a/b?x=1%20%2B+2&y=3&x=\n\
        query x=1%20%2B+2&y=3&x=\nrest a/b\nx 1 + 2\nx again \nmissing 1\nclient 127.0.0.1\naccept text/html\n\
        type text/css\nnone 1\nlength 0\naccept: text/html\ncontent-type: text/css\nx-two-words: v\ngone 0\n";
    assert_eq!(answer.text(), expected);
    let chunked = Request::new("POST", "/request/").chunked().ask(&modules);
    assert!(chunked.text().contains("length 18446744073709551615\n"), "{}", chunked.text());
}

#[test]
fn bodies_are_read_in_parts() {
    let (_workshop, modules) = modules();
    let body: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    assert_eq!(Request::new("POST", "/echo").body(&body).ask(&modules).body, body);
}

#[test]
fn values_of_a_json_body_are_found() {
    let (_workshop, modules) = modules();
    let body =
        br#"{"name": "J\u00e4n", "age": 41, "tags": ["a", "b"], "ratio": 0.5, "ok": true, "none": null}"#;
    for (at, expected) in [
        ("/name", "5 0 0 0 0 Jän"),
        ("/age", "3 0 41 41 0 "),
        ("/tags", "6 0 0 0 2 [\"a\",\"b\"]"),
        ("/tags/1", "5 0 0 0 0 b"),
        ("/ratio", "4 0 0 0.5 0 "),
        ("/ok", "2 1 0 0 0 "),
        ("/none", "1 0 0 0 0 "),
        ("/nowhere", "status -5"),
        ("name", "status -4"),
    ] {
        let answer = Request::new("POST", &format!("/json?at={at}")).body(body).ask(&modules);
        assert_eq!(answer.text(), expected, "{at}");
    }
    let late = Request::new("POST", "/json-late?at=").body(b"{}").ask(&modules);
    assert_eq!(late.text(), "status -3");
}

#[test]
fn a_body_that_is_no_json_is_answered_with_the_reason() {
    let (_workshop, modules) = modules();
    let detail = |body: &[u8]| {
        let answer = Request::new("POST", "/json?at=").body(body).ask(&modules);
        assert_eq!((answer.status, answer.log.len()), (400, 0));
        problem(&answer)["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail(b"{\"a\": nonsense}").contains("line 1 column"));
    assert!(detail(b"").contains("empty"));
    assert!(detail(b"{\"\xFF\": 1}").contains("not valid JSON"));
    assert!(detail(&vec![b' '; 8 * 1024 * 1024 + 1]).contains("8 MiB"));
    let chunked = Request::new("POST", "/json?at=").body(&vec![b' '; 8 * 1024 * 1024 + 1]).chunked();
    assert!(problem(&chunked.ask(&modules))["detail"].as_str().unwrap().contains("8 MiB"));
}

#[test]
fn errors_are_problem_documents() {
    let (_workshop, modules) = modules();
    let refused = Request::get("/refuse/422").ask(&modules);
    assert_eq!(
        problem(&refused),
        json!({ "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "detail": "not \"like\" this" })
    );
    assert_eq!((refused.status, refused.field("Retry-After")), (422, Some("7")));
    assert_eq!(refused.field("X-Earlier"), None);
    assert_eq!(Request::get("/refuse/200").ask(&modules).text(), "gone too!-4");
    let missing = Request::get("/nowhere").ask(&modules);
    assert_eq!((missing.status, &problem(&missing)["title"]), (404, &json!("Not Found")));
    let wrong = Request::new("PUT", "/hello/x").ask(&modules);
    assert_eq!((wrong.status, wrong.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(problem(&wrong)["status"], 405);
}

#[test]
fn head_and_options_need_no_routes() {
    let (_workshop, modules) = modules();
    let head = Request::new("HEAD", "/large/100000").ask(&modules);
    assert_eq!((head.status, head.text(), head.field("Content-Length")), (200, "", Some("100000")));
    assert_eq!(head.publications, 1);
    let options = Request::new("OPTIONS", "/echo").ask(&modules);
    assert_eq!((options.status, options.text(), options.field("Allow")), (204, "", Some("OPTIONS, POST")));
    let missing = Request::new("HEAD", "/nowhere").ask(&modules);
    assert_eq!((missing.status, missing.text()), (404, ""));
}

#[test]
fn a_handler_that_never_ends_ends_when_its_client_has_left() {
    let (_workshop, modules) = modules();
    for method in ["GET", "HEAD"] {
        let answer = Request::new(method, "/endless").patience(3).ask(&modules);
        assert_eq!((answer.status, answer.completion), (200, None), "{method}");
        assert_eq!((answer.publications, answer.log.len()), (3, 0), "{method}");
    }
}

#[test]
fn what_a_module_must_not_do_is_refused() {
    let (_workshop, modules) = modules();
    let answer = Request::get("/invalid").ask(&modules);
    assert_eq!(answer.text(), "-4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -1");
    assert_eq!((answer.status, answer.fields.len(), answer.trailers.len()), (200, 0, 0));
    let late = Request::get("/late").ask(&modules);
    assert_eq!((late.status, late.text()), (201, "-3 -3 -3"));
}

#[test]
fn the_announced_length_is_kept_or_the_answer_is_an_error() {
    let (_workshop, modules) = modules();
    let exact = Request::get("/length/8").ask(&modules);
    assert_eq!((exact.field("Content-Length"), exact.text()), (Some("8"), "12345123"));
    let shorter = Request::get("/length/9").ask(&modules);
    assert_eq!((shorter.status, &problem(&shorter)["title"]), (500, &json!("Internal Server Error")));
    assert!(shorter.log[0].contains("announced 9 bytes and written 8"), "{:?}", shorter.log);
    let longer = Request::get("/length/4").ask(&modules);
    assert_eq!(longer.status, 500);
    let begun = Request::get("/length/9?flush").ask(&modules);
    assert_eq!((begun.status, begun.text()), (200, "12345123"));
    assert_eq!(begun.completion, Some(Completion::BrokenOff));
    let head = Request::new("HEAD", "/length/8").ask(&modules);
    assert_eq!((head.status, head.field("Content-Length"), head.text()), (200, Some("8"), ""));
}

#[test]
fn statuses_without_a_body_get_none() {
    let (_workshop, modules) = modules();
    for (status, body) in [(204, ""), (304, ""), (404, "body"), (599, "body")] {
        let answer = Request::get(&format!("/status/{status}")).ask(&modules);
        assert_eq!((answer.status, answer.text()), (status, body));
    }
}

#[test]
fn fields_can_follow_the_body() {
    let (_workshop, modules) = modules();
    let answer = Request::get("/trailers").ask(&modules);
    assert_eq!(answer.trailers, [("X-Sum".to_owned(), "15".to_owned())]);
    assert_eq!((answer.text(), answer.publications), ("12345", 1));
    let late = Request::get("/late-trailers").ask(&modules);
    assert_eq!(late.text(), "0 0 -3");
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(late.trailers, [field("X-Early", "1"), field("X-Sum", "15"), field("X-Early", "2")]);
    assert_eq!(late.fields, [field("Trailer", "X-A, X-Sum"), field("Trailer", "X-Early")]);
}

#[test]
fn a_handler_that_fails_is_answered_with_500_or_breaks_off() {
    let (_workshop, modules) = modules();
    let before = Request::get("/fails").ask(&modules);
    assert_eq!((before.status, &problem(&before)["status"]), (500, &json!(500)));
    assert_eq!(before.log, ["Error the handler has failed: it returned -1"]);
    let after = Request::get("/fails?later").ask(&modules);
    assert_eq!((after.status, after.text(), after.completion), (201, "half", Some(Completion::BrokenOff)));
    assert_eq!(after.log.len(), 1);
}

#[test]
fn a_client_that_leaves_within_its_body_is_no_error_of_the_module() {
    let (_workshop, modules) = modules();
    for target in ["/echo", "/json?at="] {
        let answer = Request::new("POST", target).body(b"half").broken_off().ask(&modules);
        assert_eq!((answer.completion, answer.log.len()), (Some(Completion::BrokenOff), 0), "{target}");
    }
    assert_eq!(Request::get("/statistics").ask(&modules).text(), "3 2 0 0 1 0");
}

#[test]
fn only_routes_that_say_so_run_inline() {
    let (_workshop, modules) = modules();
    let service = modules.service("test").unwrap();
    let inline = |method: &str, path: &str| modules.inline_route(service, method.as_bytes(), path.as_bytes());
    assert!(inline("GET", "/quick") && inline("HEAD", "/quick"));
    assert!(!inline("GET", "/hello/x"));
    assert!(inline("PUT", "/hello/x") && inline("GET", "/nowhere"), "the host answers these itself");
}

#[test]
fn requests_are_counted_by_instance() {
    let (_workshop, modules) = modules();
    for target in ["/hello/x", "/nowhere", "/status/404", "/fails?later"] {
        Request::get(target).ask(&modules);
    }
    let document = problem(&Request::get("/nowhere").ask(&modules)).to_string().len();
    let statistics = Request::get("/statistics").ask(&modules);
    let bytes = "hello x".len() + "body".len() + "half".len() + 2 * document;
    assert_eq!(statistics.text(), format!("6 1 1 3 1 {bytes}"));
}

/// Answers of one thread do not get mixed up with those of another.
#[test]
fn many_threads_answer_at_once() {
    let (_workshop, modules) = modules();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let modules = &modules;
            scope.spawn(move || {
                let mut scratch = modules.scratch();
                for round in 0..500 {
                    let name = format!("{thread}-{round}");
                    let answer = Request::get(&format!("/hello/{name}")).ask_with(modules, &mut scratch);
                    assert_eq!(answer.text(), format!("hello {name}"));
                }
            });
        }
    });
    assert!(Request::get("/statistics").ask(&modules).text().starts_with("4001 0 4000 0 1 "));
}
