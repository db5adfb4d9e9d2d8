//! What a script learns of its request.

use crate::support::{Scenario, Scratch, fixture};

#[test]
fn superglobals_come_from_the_request() {
    let outcome = Scenario::classic()
        .request("POST", "superglobals.php", "a=1&list[]=x&list[]=y")
        .header("Host: example.test")
        .header("Cookie: c=d%20e; f=g")
        .header("X-Custom: value")
        .line("var", "PATH_INFO=/extra")
        .form("a=2&b=%26")
        .run();
    let got = outcome.response(0).json();
    assert_eq!(got["get"], serde_json::json!({"a": "1", "list": ["x", "y"]}));
    assert_eq!(got["post"], serde_json::json!({"a": "2", "b": "&"}));
    assert_eq!(got["cookie"], serde_json::json!({"c": "d e", "f": "g"}));
    assert_eq!(got["request"]["a"], "2");
    let server = &got["server"];
    assert_eq!(server["REQUEST_METHOD"], "POST");
    assert_eq!(server["REQUEST_URI"], "/superglobals.php?a=1&list[]=x&list[]=y");
    assert_eq!(server["QUERY_STRING"], "a=1&list[]=x&list[]=y");
    assert_eq!(server["PHP_SELF"], "/superglobals.php/extra");
    assert_eq!(server["SCRIPT_FILENAME"], fixture("superglobals.php").display().to_string());
    assert_eq!(server["HTTP_HOST"], "example.test");
    assert_eq!(server["HTTP_X_CUSTOM"], "value");
    assert_eq!(server["CONTENT_LENGTH"], "9");
    assert_eq!(server["HTTPS"], "");
    assert!(server["REQUEST_TIME"].is_i64() && server["REQUEST_TIME_FLOAT"].is_f64());
}

#[test]
fn the_query_is_split_into_argv_where_php_ini_says_so() {
    let outcome = Scenario::classic().ini("register_argc_argv=On").get("superglobals.php", "one+two").run();
    let got = outcome.response(0).json();
    assert_eq!(got["argv"], serde_json::json!(["one", "two"]));
    assert_eq!(got["argc"], 2);
}

#[test]
fn the_query_was_a_command_line_for_what_reads_argv() {
    let outcome = Scenario::classic().get("superglobals.php", "--env=local").run();
    let got = outcome.response(0).json();
    assert!(got["server"].get("argv").is_none() && got["server"].get("argc").is_none(), "{got:#}");
}

#[test]
fn credentials_are_decoded() {
    let outcome = Scenario::classic()
        .get("superglobals.php", "")
        .header("Authorization: Basic dXNlcjpwYTpzcw==")
        .get("superglobals.php", "")
        .header("Authorization: Digest username=\"u\", nonce=\"n\"")
        .get("superglobals.php", "")
        .run();
    let server = |number: usize| outcome.response(number).json()["server"].clone();
    assert_eq!((&server(0)["PHP_AUTH_USER"], &server(0)["PHP_AUTH_PW"]), (&"user".into(), &"pa:ss".into()));
    assert_eq!(server(1)["PHP_AUTH_DIGEST"], "username=\"u\", nonce=\"n\"");
    assert!(server(1)["PHP_AUTH_USER"].is_null());
    assert!(server(2)["PHP_AUTH_DIGEST"].is_null() && server(2)["PHP_AUTH_USER"].is_null());
}

#[test]
fn the_filter_extension_sees_server_variables() {
    let outcome = Scenario::classic().get("filter_server.php", "n=7").run();
    let expected = serde_json::json!([true, "192.0.2.7", 7, {"REQUEST_METHOD": "GET"}]);
    assert_eq!(outcome.response(0).json(), expected);
}

#[test]
fn a_default_filter_changes_server_variables() {
    let outcome = Scenario::classic()
        .ini("filter.default=special_chars")
        .get("superglobals.php", "")
        .header("X-Custom: <b>")
        .run();
    assert_eq!(outcome.response(0).json()["server"]["HTTP_X_CUSTOM"], "&#60;b&#62;");
}

#[test]
fn the_working_directory_is_the_script_s_own() {
    let outcome = Scenario::classic()
        .get("directory/relative.php", "")
        .get("hello.php", "")
        .get("directory/relative.php", "")
        .run();
    for number in [0, 2] {
        assert_eq!(outcome.response(number).body, "included found here /");
    }
}

#[test]
fn a_change_of_directory_ends_with_its_request() {
    let outcome = Scenario::classic().get("directory/relative.php", "").repeat(3).run();
    for number in 0..3 {
        assert_eq!(outcome.response(number).body, "included found here /");
    }
}

#[test]
fn a_file_is_prepended_and_another_appended() {
    let outcome = Scenario::classic()
        .ini(&format!("auto_prepend_file={}", fixture("prepended.inc").display()))
        .ini(&format!("auto_append_file={}", fixture("directory/included.inc").display()))
        .get("hello.php", "")
        .run();
    assert_eq!(outcome.response(0).body, "before Hello worldincluded lost");
}

#[test]
fn a_missing_script_is_not_found() {
    let outcome = Scenario::classic().get("no_such_script.php", "").get("hello.php", "").run();
    let response = outcome.response(0);
    assert_eq!((response.status, response.body.as_str()), (404, "File not found.\n"));
    assert!(outcome.logged("no_such_script.php (No such file or directory)"), "{}", outcome.text);
    assert!(!outcome.logged("PHP Fatal error"), "{}", outcome.text);
    assert_eq!(outcome.response(1).status, 200);
}

#[test]
fn a_directory_is_no_script() {
    let outcome = Scenario::classic().get("directory", "").run();
    assert_eq!(outcome.response(0).status, 404);
}

#[test]
fn a_session_is_kept_between_requests() {
    let sessions = Scratch::new();
    let query = format!("path={}", sessions.path().display());
    let outcome = Scenario::classic()
        .get("session.php", &query)
        .header("Cookie: PHPSESSID=abcdefghijklmnopqrstuv")
        .repeat(3)
        .get("session.php", &query)
        .run();
    assert_eq!(outcome.response(2).body, "abcdefghijklmnopqrstuv 3");
    let other = outcome.response(3);
    assert!(other.body.ends_with(" 1") && !other.body.starts_with("abcdef"), "{}", other.body);
    assert!(other.header("Set-Cookie").is_some_and(|cookie| cookie.starts_with("PHPSESSID=")));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn many_requests_run_at_once() {
    let outcome =
        Scenario::classic().line("threads", 8).line("quiet", "").get("hello.php", "").repeat(2000).run();
    assert_eq!((outcome.requests, outcome.ready, outcome.threads.len()), (2000, 8, 8));
}

#[test]
fn a_thread_is_recycled_after_its_requests() {
    let outcome =
        Scenario::classic().line("max_requests", 2).line("restarts", 1).get("hello.php", "").repeat(4).run();
    assert_eq!(outcome.threads, [super::support::RECYCLE, super::support::RECYCLE]);
    assert_eq!(outcome.requests, 4);
}
