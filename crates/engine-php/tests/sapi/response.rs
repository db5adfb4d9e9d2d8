//! What the client gets: head, body, and in which parts.

use crate::support::Scenario;

#[test]
fn a_small_response_is_one_part() {
    let outcome = Scenario::classic().get("hello.php", "name=you").run();
    let response = outcome.response(0);
    assert_eq!((response.status, response.body.as_str()), (200, "Hello you"));
    assert_eq!(response.header("Content-Type"), Some("text/html; charset=UTF-8"));
    assert!(response.header("X-Powered-By").is_some_and(|value| value.starts_with("PHP/")));
    assert!(response.ended && !response.truncated && response.parts == 1);
}

#[test]
fn a_large_body_is_streamed_unchanged() {
    for piece in [1, 100, 4096, 32_767, 32_768, 32_769, 100_000, 1_000_000] {
        let outcome = Scenario::classic()
            .ini("output_buffering=0")
            .get("large.php", &format!("bytes=1000000&piece={piece}"))
            .run();
        let response = outcome.response(0);
        assert_eq!(response.body.len(), 1_000_000, "pieces of {piece}");
        assert!(response.parts <= 40, "{} parts with pieces of {piece}", response.parts);
    }
}

#[test]
fn a_flush_sends_what_there_is() {
    let outcome = Scenario::classic().get("flushes.php", "").run();
    let events: Vec<_> = outcome.text.lines().filter(|line| line.starts_with("0 ")).collect();
    let position = |event: &str| events.iter().position(|line| *line == event).unwrap();
    assert!(position("0 header X-Early: yes") < position("0 body one"));
    assert!(position("0 body one") < position("0 body two"));
}

#[test]
fn header_lines_that_are_none_are_dropped() {
    let outcome = Scenario::classic().get("headers.php", "").run();
    let headers = &outcome.response(0).headers;
    for line in ["X-Plain: value", "X-Nospace:value", "X-Empty:", "X-Twice: one", "X-Twice: two"] {
        assert!(headers.iter().any(|header| header == line), "{line} is not in {headers:?}");
    }
    assert!(headers.contains(&"Set-Cookie: first=a%20b".to_owned()));
    assert!(headers.contains(&"Set-Cookie: second=c; path=/; HttpOnly".to_owned()));
    for word in ["Invalid", "Control", "colon"] {
        assert!(!headers.iter().any(|header| header.contains(word)), "{word} is in {headers:?}");
    }
}

#[test]
fn the_status_line_gives_status_and_reason() {
    let outcome = Scenario::classic()
        .get("status.php", "line=HTTP/1.1%20404%20Not%20Here")
        .get("status.php", "line=HTTP/1.1%20204")
        .get("status.php", "line=HTTP/")
        .get("status.php", "line=Location:%20/there")
        .get("status.php", "code=503")
        .run();
    let got: Vec<_> =
        (0..5).map(|n| (outcome.response(n).status, outcome.response(n).reason.as_str())).collect();
    assert_eq!(got, [(404, "Not Here"), (204, ""), (200, ""), (302, ""), (503, "")]);
}

#[test]
fn a_status_that_is_none_becomes_500() {
    let outcome = Scenario::classic()
        .get("status.php", "code=1000")
        .get("status.php", "code=42")
        .get("status.php", "code=-1")
        .get("status.php", "line=HTTP/1.1%2099999999999999%20X")
        .run();
    for number in 0..4 {
        assert_eq!(outcome.response(number).status, 500, "request {number}");
        assert!(outcome.response(number).ended);
    }
    assert!(outcome.logged("The script set the status 42, which is none"));
}

#[test]
fn informational_responses_come_before_the_real_one() {
    let outcome = Scenario::classic()
        .get("early_hints.php", "")
        .get("early_hints.php", "again")
        .get("early_hints.php", "")
        .line("http10", "")
        .run();
    assert_eq!(outcome.response(0).informational, [103]);
    assert_eq!(outcome.response(0).body, "1 200 done");
    assert_eq!(outcome.response(0).header("X-Late"), Some("yes"));
    assert_eq!(outcome.response(0).header("Link"), Some("</style.css>; rel=preload"));
    assert_eq!(outcome.response(1).informational, [103, 102]);
    assert_eq!((outcome.response(1).status, outcome.response(1).header("X-Late")), (200, Some("yes")));
    assert!(outcome.response(2).informational.is_empty(), "HTTP/1.0 has no informational responses");
    assert_eq!(outcome.response(2).status, 200);
}

#[test]
fn a_head_request_has_no_body() {
    let outcome = Scenario::classic().request("HEAD", "hello.php", "").run();
    let response = outcome.response(0);
    assert_eq!((response.status, response.body.as_str(), response.ended), (200, "", true));
}

#[test]
fn output_handlers_run() {
    let outcome = Scenario::classic().get("output_buffers.php", "").run();
    assert_eq!(outcome.response(0).body, "UPPER DONE");
}

#[test]
fn a_departed_client_ends_the_script() {
    let outcome = Scenario::classic().get("departed.php", "").line("leaves_after", 1).run();
    assert!(outcome.logged("status 1 aborted 1"), "{}", outcome.text);
    assert!(!outcome.logged("ran to its end"));
}

#[test]
fn a_script_may_go_on_without_its_client() {
    let outcome = Scenario::classic().get("departed.php", "ignore").line("leaves_after", 1).run();
    assert!(outcome.logged("status 1 aborted 1") && outcome.logged("ran to its end"), "{}", outcome.text);
}

#[test]
fn a_script_is_not_disturbed_by_a_client_that_stays() {
    let outcome = Scenario::classic().get("departed.php", "").run();
    assert!(outcome.logged("status 0 aborted 0") && outcome.logged("ran to its end"), "{}", outcome.text);
    assert_eq!(outcome.response(0).body.len(), 30_000);
}

/// As behind php-fpm, where `Status` is how CGI tells it.
#[test]
fn a_status_field_stayed_200_and_was_sent() {
    let cases = [
        ("lines[]=Status:+404+Not+Here", 404, "Not Here"),
        ("lines[]=status:404", 404, ""),
        ("code=500&lines[]=Status:+403+No", 403, "No"),
        ("lines[]=HTTP/1.1+410+Gone+For+Good&lines[]=Status:+404+Not+Found", 410, "Gone For Good"),
        ("code=418&lines[]=Status:+none", 418, ""),
        ("lines[]=Status:+42", 200, ""),
        ("lines[]=X-Status:+404", 200, ""),
    ];
    let asked =
        cases.iter().fold(Scenario::classic(), |asked, (query, ..)| asked.get("status_field.php", query));
    let outcome = asked.run();
    for (number, (query, status, reason)) in cases.into_iter().enumerate() {
        let response = outcome.response(number);
        assert_eq!((response.status, response.reason.as_str()), (status, reason), "{query}");
        assert_eq!(response.header("Status"), None, "{query}");
        assert_eq!(response.body, "body");
    }
}

#[test]
fn an_empty_content_type_was_sent() {
    let outcome = Scenario::classic()
        .get("status_field.php", "lines[]=Content-Type:")
        .get("status_field.php", "lines[]=Content-Type:&lines[]=X-Empty:")
        .run();
    assert_eq!(outcome.response(0).header("Content-Type"), None, "{}", outcome.text);
    assert_eq!(outcome.response(1).header("X-Empty"), Some(""), "other fields may be empty");
}
