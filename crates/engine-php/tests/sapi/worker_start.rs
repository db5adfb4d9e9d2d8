//! While a worker takes a request in, none of the script's code runs.

use crate::support::{STOPPED, Scenario, Scratch};

/// Requests that PHP cannot fully parse, and what it says of each.
fn with_bad_requests(scenario: Scenario) -> (Scenario, Vec<&'static str>) {
    const SCRIPT: &str = "worker_error_handler.php";
    const BOUNDARY: &str = "Content-Type: multipart/form-data; boundary=limit";
    let file = |name: &str| {
        format!("--limit\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\r\nx\r\n")
    };
    let files = format!("{}{}--limit--\r\n", file("one"), file("two"));
    let fields = "a=1&b=2&c=3&d=4&e=5";
    let scenario = scenario
        .get(SCRIPT, fields)
        .request("POST", SCRIPT, "")
        .form(fields)
        .get(SCRIPT, "")
        .header("Cookie: a=1; b=2; c=3; d=4; e=5")
        .request("POST", SCRIPT, "")
        .form(&"x".repeat(300))
        .request("POST", SCRIPT, "")
        .header("Content-Type: multipart/form-data")
        .body("--limit--\r\n")
        .request("POST", SCRIPT, "")
        .header(BOUNDARY)
        .body(&files)
        .get(SCRIPT, "")
        .header("Cookie: PHPSESSID=../etc/passwd");
    let messages = vec![
        "Input variables exceeded 3",
        "Input variables exceeded 3",
        "Input variables exceeded 3",
        "POST Content-Length of 300 bytes exceeds the limit of 250 bytes",
        "Missing boundary in multipart/form-data POST data",
        "Maximum number of allowable file uploads has been exceeded",
        "Session ID is too long or contains illegal characters",
    ];
    (scenario, messages)
}

fn limited(sessions: &Scratch) -> Scenario {
    Scenario::worker("worker_error_handler.php")
        .ini("max_input_vars=3")
        .ini("post_max_size=250")
        .ini("max_file_uploads=1")
        .ini("session.auto_start=1")
        .ini(&format!("session.save_path={}", sessions.path().display()))
}

#[test]
fn a_worker_died_of_requests_that_php_cannot_parse_when_its_error_handler_throws() {
    let sessions = Scratch::new();
    let (scenario, messages) = with_bad_requests(limited(&sessions).environment("THROWS", 1));
    let outcome = scenario.run();
    for (number, message) in messages.iter().enumerate() {
        let response = outcome.response(number);
        assert_eq!(response.status, 200, "{message}: {}", outcome.text);
        let told = response.json();
        assert_eq!((&told["n"], &told["seen"]), (&(number + 1).into(), &0.into()), "{message}");
        assert!(outcome.logged(message), "{message}: {}", outcome.text);
    }
    assert_eq!(outcome.threads, [STOPPED], "the script has booted once");
}

/// `php_session_rfc1867_callback()` of PHP opens the session for the progress of an upload.
#[test]
fn an_upload_had_the_save_handlers_of_a_worker_see_the_client_before() {
    const SCRIPT: &str = "worker_upload_session.php";
    let part = |head: &str, value: &str| {
        format!("--limit\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
    };
    let form = [
        part("name=\"PHP_SESSION_UPLOAD_PROGRESS\"", "x"),
        part("name=\"field\"", "kept"),
        part("name=\"file\"; filename=\"a\"", "text"),
        "--limit--\r\n".to_owned(),
    ];
    let outcome = Scenario::worker(SCRIPT)
        .ini("session.upload_progress.min_freq=0")
        .get(SCRIPT, "")
        .header("Cookie: who=the-client-before")
        .request("POST", SCRIPT, "")
        .header("Content-Type: multipart/form-data; boundary=limit")
        .header("Cookie: PHPSESSID=abcdefghijklmnopqrstuvwx; who=the-uploader")
        .body(&form.concat())
        .get(SCRIPT, "")
        .run();
    let told = |number: usize| outcome.response(number).json();
    let upload = told(1);
    assert_eq!((&upload["posted"], &upload["files"]), (&"kept".into(), &1.into()), "{}", outcome.text);
    let last = told(2);
    assert_eq!((&last["n"], &last["seen"]), (&3.into(), &serde_json::json!([])), "{}", outcome.text);
    assert_eq!(outcome.threads, [STOPPED], "the script has booted once");
}

#[test]
fn an_error_handler_ran_with_the_superglobals_of_the_client_before() {
    let sessions = Scratch::new();
    let (scenario, messages) = with_bad_requests(limited(&sessions));
    let outcome = scenario.get("worker_error_handler.php", "undefined").run();
    for (number, message) in messages.iter().enumerate() {
        let told = outcome.response(number).json(); // it has nothing in front of it
        assert_eq!(told["seen"], 0, "{message}");
        let last = told["last"].as_str().unwrap_or_default();
        let expected = if message.starts_with("Session") { "Failed to read session data" } else { message };
        assert!(last.contains(expected), "as in classic mode, the script can ask for it: {told}");
    }
    let parsed = |number: usize, name: &str| outcome.response(number).json()[name].as_u64().unwrap();
    let counts = [parsed(0, "get"), parsed(1, "post"), parsed(2, "cookie"), parsed(5, "files")];
    assert_eq!(counts, [3, 4, 3, 1], "what could be parsed; of a form PHP takes one field more");
    let after = &outcome.response(messages.len()).body;
    assert!(
        after.starts_with("printed by the handler"),
        "while the script runs its handler is called: {after}"
    );
}

#[test]
fn destructors_of_a_request_ran_in_the_next_client_s_response() {
    let sessions = Scratch::new();
    let outcome = Scenario::worker("worker_leftovers.php")
        .ini(&format!("session.save_path={}", sessions.path().display()))
        .get("worker_leftovers.php", "id=0&global")
        .get("worker_leftovers.php", "id=1&session")
        .get("worker_leftovers.php", "id=2&cycles")
        .get("worker_leftovers.php", "id=3")
        .get("worker_leftovers.php", "id=4")
        .run();
    assert_eq!(outcome.response(0).body, "page 0[destroyed in 0]");
    assert_eq!(outcome.response(1).body, "page 1[destroyed in 1]");
    for number in 2..5 {
        let body = &outcome.response(number).body;
        assert!(body.starts_with(&format!("page {number}")), "{body}");
        for part in body.split("[destroyed in ").skip(1) {
            assert_eq!(part, format!("{number}]"), "superglobals of the request that it runs in");
        }
    }
}
