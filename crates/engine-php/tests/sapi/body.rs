//! Request bodies: complete ones, ones of unknown length, ones that break off.

use crate::support::{Scenario, fixture};

#[test]
fn a_form_of_unknown_length_is_parsed() {
    let outcome =
        Scenario::classic().request("POST", "superglobals.php", "").form("a=1&b=2").line("chunked", "").run();
    assert_eq!(outcome.response(0).json()["post"], serde_json::json!({"a": "1", "b": "2"}));
}

#[test]
fn a_body_that_is_no_form_is_read_as_a_stream() {
    let outcome = Scenario::classic()
        .request("POST", "input.php", "")
        .header("Content-Type: application/json")
        .body("{\"a\": 1}")
        .request("PUT", "input.php", "")
        .body("put")
        .request("POST", "input.php", "")
        .line("large_body", 5_000_000)
        .line("chunked", "")
        .get("input.php", "")
        .run();
    assert_eq!(outcome.response(0).body, "8:{\"a\": 1}");
    assert_eq!(outcome.response(1).body, "3:put");
    assert!(outcome.response(2).body.starts_with("5000000:xxx"));
    assert_eq!(outcome.response(3).body, "0:");
}

#[test]
fn an_upload_becomes_a_temporary_file_that_goes_with_its_request() {
    let body = "--limit\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n\
        --limit\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a.txt\"\r\n\
        Content-Type: text/plain\r\n\r\nthe content\r\n--limit--\r\n";
    let outcome = Scenario::classic()
        .request("POST", "upload.php", "")
        .header("Content-Type: multipart/form-data; boundary=limit")
        .body(body)
        .run();
    let got = outcome.response(0).json();
    assert_eq!((&got["name"], &got["size"], &got["error"]), (&"a.txt".into(), &11.into(), &0.into()));
    assert_eq!((&got["content"], &got["uploaded"]), (&"the content".into(), &true.into()));
    assert_eq!(got["post"]["field"], "value");
    assert!(!std::path::Path::new(got["path"].as_str().unwrap()).exists());
}

#[test]
fn a_form_that_breaks_off_does_not_run_the_script() {
    let outcome = Scenario::classic()
        .request("POST", "reads_then_echoes.php", "")
        .form("a=1&b=2")
        .line("breaks_at", 3)
        .get("hello.php", "")
        .run();
    assert_eq!((outcome.response(0).status, outcome.response(0).body.as_str()), (400, ""));
    assert!(!outcome.logged("went on"), "{}", outcome.text);
    assert_eq!(outcome.response(1).body, "Hello world");
}

#[test]
fn a_script_does_not_take_a_broken_stream_for_a_complete_one() {
    let outcome = Scenario::classic()
        .request("PUT", "reads_then_echoes.php", "")
        .line("large_body", 100_000)
        .line("chunked", "")
        .line("breaks_at", 50_000)
        .run();
    assert!(!outcome.logged("went on"), "{}", outcome.text);
    assert!(!outcome.response(0).body.contains("done"));
}

#[test]
fn a_body_above_the_limit_leaves_post_empty() {
    let outcome = Scenario::classic()
        .ini("post_max_size=10")
        .request("POST", "superglobals.php", "")
        .form("a=0123456789")
        .run();
    assert_eq!(outcome.response(0).json()["post"], serde_json::json!([]));
    assert!(outcome.logged("exceeds the limit of 10 bytes"));
}

#[test]
fn an_unread_body_is_left_to_the_host() {
    let outcome = Scenario::classic()
        .request("POST", fixture("hello.php").to_str().unwrap(), "")
        .line("large_body", 1_000_000)
        .line("breaks_at", 0) // reading would fail
        .run();
    assert_eq!((outcome.response(0).status, outcome.response(0).body.as_str()), (200, "Hello world"));
}
