//! The functions that the SAPI adds.

use crate::support::Scenario;

#[test]
fn finish_request_answers_and_the_script_goes_on() {
    let outcome = Scenario::classic().request("POST", "finishes_early.php", "").body("12345").run();
    let response = outcome.response(0);
    assert_eq!((response.body.as_str(), response.header("X-Late")), ("answer", None));
    assert!(outcome.logged("[true,false,0,5]"), "{}", outcome.text);
}

#[test]
fn request_headers_keep_their_order_and_the_host() {
    let outcome = Scenario::classic()
        .request("POST", "request_headers.php", "")
        .header("Host: example.test")
        .header("X-Zebra: 1")
        .header("Accept-Language: en")
        .header("Content-Type: text/plain")
        .header("X-Ant: 2")
        .body("x")
        .run();
    let expected = r#"{"Host":"example.test","X-Zebra":"1","Accept-Language":"en","Content-Type":"text/plain","X-Ant":"2","Content-Length":"1"}"#;
    assert_eq!(outcome.response(0).body, format!("[{expected},true]"));
}

#[test]
fn response_headers_are_listed() {
    let outcome = Scenario::classic().get("response_headers.php", "").run();
    assert_eq!(outcome.response(0).body, r#"{"X-One":"1","X-Two":"2"}"#);
}

#[test]
fn log_lines_have_levels_and_fields() {
    let outcome = Scenario::classic().get("logs.php", "").run();
    let levels: Vec<_> = outcome.log.iter().map(|(level, line)| (*level, line.as_str())).collect();
    assert_eq!(levels[0], (5, "from error_log"));
    assert_eq!(levels[1], (7, "debug"));
    assert_eq!(levels[2], (6, "plain"));
    assert_eq!(levels[3], (4, r#"warn | {"user":7,"path":"/a"}"#));
    assert_eq!(levels[4], (3, r#"error | {"0":"listed"}"#));
    assert!(levels[5].0 == 6 && levels[5].1.starts_with("endless"), "{:?}", levels[5]);
    assert!(levels[6].0 == 5 && levels[6].1.starts_with("PHP Notice:  a notice"), "{:?}", levels[6]);
    assert!(levels[7].0 == 4 && levels[7].1.starts_with("PHP Warning:  a warning"), "{:?}", levels[7]);
}

#[test]
fn requests_are_only_handled_in_workers() {
    let outcome = Scenario::classic().get("not_a_worker.php", "").run();
    let expected = "RuntimeException: frankenphp_handle_request() called while not in worker mode";
    assert_eq!(outcome.response(0).body, expected);
}

#[test]
fn updates_are_published_or_an_exception_says_why_not() {
    let outcome = Scenario::classic().get("publishes.php", "").run();
    let results: Vec<String> = serde_json::from_str(&outcome.response(0).body).unwrap();
    assert_eq!(results[..2], ["urn:made", "urn:1"]);
    assert_eq!(results[2], "RuntimeException: No Mercure hub configured");
    assert!(results[3].starts_with("ValueError: mercure_publish()"), "{}", results[3]);
    assert!(results[4].starts_with("TypeError: mercure_publish()"), "{}", results[4]);
    assert!(results[5].starts_with("ValueError: mercure_publish()"), "{}", results[5]);
    assert!(outcome.logged("publish 1 0 -1 ") && outcome.logged("publish 2 1 5 x"), "{}", outcome.text);
}

#[test]
fn the_cache_is_purged_or_an_exception_says_why_not() {
    let outcome = Scenario::classic().get("purges.php", "").run();
    let results = outcome.response(0).json();
    assert_eq!([&results[0], &results[1], &results[2]], [1, 2, 0]);
    for (number, wanted) in [
        (3, "ArgumentCountError: regent_cache_purge()"),
        (4, "TypeError: regent_cache_purge()"),
        (5, "ValueError: regent_cache_purge(): Argument #2 ($url)"),
        (6, "RuntimeException: The server has not purged"),
    ] {
        assert!(results[number].as_str().is_some_and(|said| said.starts_with(wanted)), "{results}");
    }
    assert!(outcome.logged("purge one") && outcome.logged("purge two"), "{}", outcome.text);
}
