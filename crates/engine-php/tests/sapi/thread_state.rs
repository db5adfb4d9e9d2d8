//! What scripts change of their thread and their process.

use crate::support::{Scenario, Scratch, WORN_OUT};
use serde_json::json;

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn a_umask_is_that_of_one_request() {
    let scratch = Scratch::new();
    let path = scratch.path().display();
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("umask.php", &format!("path={path}&set=077&until=seen"))
        .get("umask.php", &format!("path={path}&name=seen&until=set"))
        .run();
    assert_eq!(outcome.response(0).body, "022 077 0077");
    assert_eq!(outcome.response(1).body, "022 022 0022");
}

#[test]
fn a_umask_ends_with_its_request() {
    let outcome = Scenario::classic().get("umask.php", "set=077").get("umask.php", "").run();
    assert_eq!(outcome.response(1).body, "022 022 0022");
    let worker = Scenario::worker("worker_umask.php").get("worker_umask.php", "").repeat(2).run();
    assert_eq!((worker.response(0).body.as_str(), worker.response(1).body.as_str()), ("027", "027"));
}

#[test]
fn a_priority_ends_with_its_request() {
    let outcome = Scenario::classic().get("priority.php", "nice").get("priority.php", "").run();
    let priorities = outcome.response(0).json();
    assert_eq!(priorities[1].as_i64(), priorities[0][0].as_i64().map(|before| before + 5));
    if outcome.threads == [WORN_OUT] {
        println!("the priority cannot be raised again here: the thread ends after the request");
        assert_eq!(outcome.requests, 1);
    } else {
        assert_eq!(outcome.response(0).json()[0], outcome.response(1).json()[0]);
    }
}

#[test]
fn what_would_change_the_process_is_refused() {
    let outcome = Scenario::classic().get("refused.php", "").run();
    let refused = vec![json!(false); 8];
    let got = outcome.response(0).json();
    assert_eq!(got.as_array().unwrap()[..7], refused[..7]);
    assert!(got[7] == false || got[7] == -1, "{got}");
    assert_eq!(
        got.as_array().unwrap()[8..],
        [json!("Operation not permitted"), json!(true), json!(true), json!(true)]
    );
    assert!(outcome.logged("posix_setrlimit"), "{:?}", outcome.log);
}

#[test]
fn regex_options_end_with_their_request() {
    let outcome = Scenario::classic().get("regex_options.php", "set=ixr").get("regex_options.php", "").run();
    assert_eq!(outcome.response(0).body, "pr ixr");
    assert_eq!(outcome.response(1).body, "pr pr");
    let worker =
        Scenario::worker("worker_regex_options.php").get("worker_regex_options.php", "").repeat(2).run();
    assert_eq!((worker.response(0).body.as_str(), worker.response(1).body.as_str()), ("ixr", "ixr"));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn lines_of_two_requests_go_to_syslog_under_their_own_names() {
    let scratch = Scratch::new();
    let query =
        |name: &str, until: &str| format!("path={}&name={name}&until={until}", scratch.path().display());
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("syslog_names.php", &query("first", "second"))
        .get("syslog_names.php", &query("second", "first"))
        .run();
    for name in ["first", "second"] {
        assert!(outcome.errors.contains(&format!("{name}: a line of {name}\n")), "{}", outcome.errors);
    }
    assert!(!outcome.errors.contains("no name"), "LOG_PERROR went with closelog(): {}", outcome.errors);
}
