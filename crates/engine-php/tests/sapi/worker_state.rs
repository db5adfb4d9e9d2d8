//! What a worker must not carry from one request into the next.

use crate::support::{Scenario, Scratch};

#[test]
fn superglobals_are_made_anew() {
    let outcome = Scenario::worker("worker_echo.php")
        .request("POST", "worker_echo.php", "a=1")
        .header("Cookie: c=d")
        .header("X-Once: yes")
        .form("p=q")
        .request("POST", "worker_echo.php", "")
        .header("Content-Type: multipart/form-data; boundary=limit")
        .body(
            "--limit\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nx\r\n--limit--\r\n",
        )
        .request("PUT", "worker_echo.php", "b=2")
        .body("stream")
        .get("worker_echo.php", "")
        .run();
    let empty = serde_json::json!([]);
    let got: Vec<_> = (0..4).map(|number| outcome.response(number).json()).collect();
    assert_eq!(got[0]["get"]["a"], "1");
    assert_eq!(got[0]["post"]["p"], "q");
    assert_eq!((&got[0]["cookie"]["c"], &got[0]["server"]), (&"d".into(), &true.into()));
    assert_eq!(got[0]["request"], serde_json::json!({"a": "1", "p": "q"}));
    assert_eq!(got[0]["input"], "p=q");
    assert_eq!((&got[1]["files"], &got[1]["post"]), (&serde_json::json!(["f"]), &empty));
    assert_eq!((&got[1]["get"], &got[1]["cookie"], &got[1]["server"]), (&empty, &empty, &false.into()));
    assert_eq!((&got[2]["files"], &got[2]["input"]), (&empty, &"stream".into()));
    assert_eq!(got[2]["request"], serde_json::json!({"b": "2"}));
    assert_eq!((&got[3]["request"], &got[3]["input"]), (&empty, &"".into()));
}

#[test]
fn the_last_error_is_forgotten() {
    let outcome =
        Scenario::worker("worker_echo.php").get("worker_echo.php", "warn").get("worker_echo.php", "").run();
    assert!(outcome.logged("left behind"));
    assert!(outcome.response(1).json()["error"].is_null());
}

#[test]
fn sessions_do_not_leak() {
    let sessions = Scratch::new();
    let outcome = Scenario::worker("worker_session.php")
        .environment("SESSIONS", sessions.path().display())
        .get("worker_session.php", "who=one")
        .header("Cookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaaaa")
        .get("worker_session.php", "none")
        .get("worker_session.php", "who=two")
        .get("worker_session.php", "")
        .header("Cookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaaaa")
        .run();
    let got: Vec<_> = (0..4).map(|number| outcome.response(number).json()).collect();
    assert_eq!(got[1], serde_json::json!({"id": "", "data": null}));
    assert_eq!(got[2]["data"], serde_json::json!({"visits": 1, "who": "two"}));
    assert_ne!(got[2]["id"], got[0]["id"]);
    assert_eq!(got[3]["data"], serde_json::json!({"visits": 2, "who": "one"}));
}

#[test]
fn session_handlers_of_the_script_stay() {
    let outcome =
        Scenario::worker("worker_session_handler.php").get("worker_session_handler.php", "").repeat(3).run();
    let bodies: Vec<_> = (0..3).map(|number| outcome.response(number).body.as_str()).collect();
    assert_eq!(bodies, ["1", "2", "3"], "{}", outcome.text);
}

#[test]
fn a_kept_handle_of_an_old_body_is_at_its_end() {
    let outcome = Scenario::worker("worker_keeps_input.php")
        .request("PUT", "worker_keeps_input.php", "")
        .body("first")
        .request("PUT", "worker_keeps_input.php", "")
        .body("second")
        .run();
    assert_eq!(outcome.response(0).body, "new first");
    assert_eq!(outcome.response(1).body, "old [] ended new second");
}

/// Objects and libraries that read from a stream hold its address, and are told of nothing when it is closed.
#[test]
fn what_read_the_body_and_outlived_its_request_crashed_the_worker() {
    let kept = |query| ("PUT", "worker_keeps_streams.php", query);
    let ask = |scenario: Scenario, (method, script, query), body: &str| {
        scenario.request(method, script, query).header("Content-Type: text/plain").body(body)
    };
    let scenario = Scenario::worker("worker_keeps_streams.php");
    let scenario = ask(scenario, kept(""), "first\nsecret of the first client");
    let scenario = ask(scenario, kept(""), "second");
    let scenario = ask(scenario, kept("drop"), "third");
    let outcome = ask(scenario, kept(""), "fourth\nline").run();
    assert_eq!(outcome.response(0).body, "FIR first\n");
    for (number, own) in [(1, "second"), (2, "third")] {
        let expected = serde_json::json!({"file": "end", "filtered": "", "generator": null, "xml": false,
            "temporary": "kept\n", "boot": "", "own": own});
        assert_eq!(outcome.response(number).json(), expected);
    }
    assert_eq!(outcome.response(3).body, "FOU fourth\n", "it has let them go");
}

#[test]
fn output_buffers_and_headers_start_afresh() {
    let outcome = Scenario::worker("worker_buffers.php").get("worker_buffers.php", "").repeat(2).run();
    for number in 0..2 {
        let response = outcome.response(number);
        assert_eq!((response.body.as_str(), response.header("X-Count")), ("2 OPEN UNSENT", Some("1")));
    }
}

#[test]
fn memory_does_not_grow() {
    let outcome = Scenario::worker("worker_busy.php")
        .line("quiet", "")
        .request("POST", "worker_busy.php", "a=b")
        .header("Cookie: c=d")
        .header("X-Some: header")
        .header("Authorization: Basic dXNlcjpwYXNz")
        .form("a=1&b=2")
        .repeat(100_000)
        .run();
    let (early, late) = outcome.resident_kib;
    assert_eq!(outcome.requests, 100_000);
    assert!(late - early < 2048, "{} bytes a request", (late - early) * 1024 / 90_000);
}

#[test]
fn classic_memory_does_not_grow() {
    let outcome = Scenario::classic()
        .line("quiet", "")
        .request("POST", "environment_after.php", "a=b")
        .header("Cookie: c=d")
        .repeat(300)
        .request("POST", "hello.php", "a=b")
        .form("a=1&b=2")
        .repeat(20_000)
        .run();
    let (early, late) = outcome.resident_kib;
    assert!(late - early < 2048, "{early} KiB, then {late} KiB");
}
