//! Signals that scripts send and handle.

use crate::support::{STOPPED, Scenario, Scratch};
use serde_json::json;

#[test]
fn a_signal_without_a_handler_ends_nothing() {
    let outcome = Scenario::classic().get("signals_unhandled.php", "").get("hello.php", "").run();
    assert_eq!(outcome.response(0).body, "alive");
    assert_eq!(outcome.response(1).status, 200);
    assert_eq!(outcome.threads, [STOPPED]);
    let usr1 = outcome.log.iter().filter(|(_, line)| line.contains("Signal 10 ")).count();
    assert_eq!(usr1, 1, "said once: {:?}", outcome.log);
}

#[test]
fn a_handler_runs_on_the_thread_that_set_it() {
    let outcome = Scenario::classic().get("signals_handled.php", "").run();
    // SIGUSR1 10, SIGUSR2 12, SIGALRM 14, the real-time one 37
    let expected = json!([[], [10], [12, 37, 37], [10], [14], true]);
    assert_eq!(outcome.response(0).json(), expected);
}

#[test]
fn a_blocked_signal_waits_for_the_script() {
    let outcome = Scenario::classic().get("signals_blocked.php", "").run();
    assert_eq!(outcome.response(0).body, "waited handled [[],[10]]");
}

#[test]
fn what_a_request_did_with_signals_ends_with_it() {
    let scratch = Scratch::new();
    let path = format!("path={}", scratch.path().display());
    let outcome = Scenario::classic().get("signals_left.php", &path).get("signals_after.php", &path).run();
    assert_eq!(outcome.response(0).body, "left");
    assert_eq!(outcome.response(1).json(), json!([[], 0, [], 3, 0, false]));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn two_requests_may_handle_the_same_signal() {
    let scratch = Scratch::new();
    let query = |name: &str, times| format!("path={}&name={name}&times={times}", scratch.path().display());
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("signals_beside.php", &query("first", 1000))
        .get("signals_beside.php", &query("second", 7))
        .run();
    assert_eq!((outcome.response(0).body.as_str(), outcome.response(1).body.as_str()), ("1000", "7"));
}

#[test]
fn a_forked_child_is_a_process_of_its_own() {
    let scratch = Scratch::new();
    let outcome = Scenario::classic()
        .get("signals_of_children.php", &format!("path={}", scratch.path().display()))
        .run();
    let got = outcome.response(0).json();
    assert_eq!(got[0], json!(["signal 15", "exit 4", "exit 4"]));
    assert_eq!(got[1], "handled");
    // Forked: SIGPIPE and what the script ignores, as when PHP runs alone. Blocked, ignored, handled:
    assert_eq!(masks(&got[2]), [0, 1 << (10 - 1) | 1 << (13 - 1), 0]);
    assert_eq!(masks(&got[3]), [0, 0, 0]);
}

/// Of `/proc/self/status`, without the two of the C library, which it ignores in what it spawns, this test's host among them.
fn masks(lines: &serde_json::Value) -> Vec<u64> {
    let own = 0b11 << (32 - 1);
    let mask = |line: &serde_json::Value| line.as_str().unwrap().split_once('\t').unwrap().1.to_owned();
    lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| u64::from_str_radix(&mask(line), 16).unwrap() & !own)
        .collect()
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn ignoring_children_leaves_those_of_others_their_status() {
    let scratch = Scratch::new();
    let path = format!("path={}", scratch.path().display());
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("children_ignored.php", &path)
        .get("children_waited.php", &path)
        .run();
    assert_eq!((outcome.response(0).body.as_str(), outcome.response(1).body.as_str()), ("5", "7 6"));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn waiting_for_any_child_takes_none_of_another_request() {
    let scratch = Scratch::new();
    let path = format!("path={}", scratch.path().display());
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("children_of_others.php", &format!("{path}&fork"))
        .get("children_of_others.php", &path)
        .run();
    assert_eq!((outcome.response(0).body.as_str(), outcome.response(1).body.as_str()), ("9", "[-1,-1]"));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn the_end_of_a_child_reaches_the_script_that_forked_it() {
    let alone = Scenario::classic().get("signals_child_ends.php", "alone").run();
    assert_eq!(alone.response(0).json(), "told");
    let beside = Scenario::classic().line("threads", 3).get("signals_child_ends.php", "").repeat(30).run();
    for number in 0..30 {
        assert_eq!(beside.response(number).json(), "told");
    }
}

#[test]
fn a_worker_keeps_the_handlers_of_its_boot_only() {
    let outcome = Scenario::worker("worker_signals.php")
        .get("worker_signals.php", "")
        .get("worker_signals.php", "set")
        .get("worker_signals.php", "")
        .run();
    assert_eq!(outcome.response(0).json(), json!([["boot"], [], 0]));
    assert_eq!(outcome.response(1).json(), json!([["boot"], ["request", "request too"], null]));
    assert_eq!(outcome.response(2).json(), json!([["boot"], [], 0]));
}
