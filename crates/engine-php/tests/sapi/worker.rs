//! The life of a worker script.

use crate::support::{BOOT_FAILED, RECYCLE, STOPPED, Scenario, WORKER_CRASHED, WORKER_ENDED};

#[test]
fn a_script_boots_once_and_handles_requests() {
    let outcome =
        Scenario::worker("worker_echo.php").get("worker_echo.php", "n=1").get("worker_echo.php", "n=2").run();
    for number in 0..2 {
        let got = outcome.response(number).json();
        assert_eq!((&got["count"], &got["boot"]), (&(number + 1).into(), &"1".into()));
        assert_eq!(got["get"]["n"], (number + 1).to_string());
    }
    assert_eq!((outcome.ready, outcome.threads.as_slice()), (1, &[STOPPED][..]));
    assert!(outcome.logged("left its loop"));
}

#[test]
fn what_a_script_prints_outside_of_requests_is_logged() {
    let outcome = Scenario::worker("worker_boots.php").get("worker_boots.php", "").repeat(2).run();
    let lines: Vec<_> = outcome.log.iter().map(|(level, line)| (*level, line.as_str())).collect();
    assert_eq!(lines, [(6, "first line"), (6, "second"), (6, "between")]);
    assert_eq!(outcome.response(1).body, "answer");
    assert_eq!(outcome.response(0).header("X-Boot"), None);
    assert_eq!(outcome.threads, [WORKER_ENDED], "it ended though there may have been more requests");
}

#[test]
fn a_script_that_does_not_boot_is_told_from_one_that_ended() {
    let outcome = Scenario::worker("worker_fails_to_boot.php").run();
    assert_eq!((outcome.threads.as_slice(), outcome.ready), (&[BOOT_FAILED][..], 0));
    assert!(outcome.logged("not for clients") && outcome.logged("no database"), "{}", outcome.text);
    let outcome = Scenario::worker("no_such_worker.php").run();
    assert_eq!(outcome.threads, [BOOT_FAILED]);
    assert!(outcome.logged("no_such_worker.php (No such file or directory)"), "{}", outcome.text);
}

#[test]
fn exit_answers_and_restarts_the_script() {
    let outcome = Scenario::worker("worker_dies.php")
        .line("restarts", 5)
        .get("worker_dies.php", "how=exit")
        .get("worker_dies.php", "how=message")
        .get("worker_dies.php", "")
        .run();
    assert_eq!(outcome.response(0).body, "begun [boot shutdown][shutdown][destructor]");
    assert_eq!(outcome.response(1).body, "begun last words [boot shutdown][shutdown][destructor]");
    assert_eq!(outcome.response(2).body, "begun [destructor][shutdown]");
    assert!((0..3).all(|number| outcome.response(number).status == 200));
    assert_eq!(outcome.threads, [WORKER_CRASHED, WORKER_ENDED, STOPPED]);
}

#[test]
fn an_uncaught_exception_is_500_and_restarts_the_script() {
    let outcome = Scenario::worker("worker_dies.php")
        .line("restarts", 5)
        .get("worker_dies.php", "how=exception")
        .get("worker_dies.php", "how=fatal")
        .get("worker_dies.php", "how=nested")
        .get("worker_dies.php", "")
        .run();
    for number in 0..3 {
        let response = outcome.response(number);
        assert_eq!((response.status, response.ended), (500, true), "{response:?}");
        assert!(response.body.starts_with("begun [boot shutdown][shutdown]"), "{response:?}");
    }
    assert!(outcome.logged("Uncaught LogicException: nobody catches this"));
    assert!(outcome.logged("called while a request is handled"));
    assert_eq!(outcome.response(3).body, "begun [destructor][shutdown]");
    assert_eq!(outcome.threads, [WORKER_CRASHED, WORKER_CRASHED, WORKER_CRASHED, STOPPED]);
}

#[test]
fn the_script_s_exception_handler_answers() {
    let outcome = Scenario::worker("worker_handles_exceptions.php")
        .line("restarts", 1)
        .get("worker_handles_exceptions.php", "")
        .repeat(2)
        .run();
    for number in 0..2 {
        assert_eq!(
            (outcome.response(number).status, outcome.response(number).body.as_str()),
            (418, "handled it")
        );
    }
}

#[test]
fn a_script_is_recycled_after_its_requests() {
    let outcome = Scenario::worker("worker_echo.php")
        .line("max_requests", 2)
        .line("restarts", 1)
        .get("worker_echo.php", "")
        .repeat(4)
        .run();
    let counts: Vec<_> = (0..4).map(|number| outcome.response(number).json()["count"].clone()).collect();
    assert_eq!(counts, [1, 2, 1, 2]);
    assert_eq!(outcome.threads, [RECYCLE, RECYCLE]);
}

#[test]
fn shutdown_functions_run_at_the_end_of_their_request() {
    let outcome = Scenario::worker("worker_shutdown_functions.php")
        .get("worker_shutdown_functions.php", "")
        .repeat(2)
        .run();
    assert_eq!(outcome.response(0).body, "request 1 shutdown 1");
    assert_eq!(outcome.response(1).body, "request 2 shutdown 2");
    assert_eq!(outcome.log.iter().filter(|(_, line)| line == "boot function").count(), 1);
}

#[test]
fn what_follows_an_early_answer_is_dropped() {
    let outcome =
        Scenario::worker("worker_finishes_early.php").get("worker_finishes_early.php", "").repeat(2).run();
    for number in 0..2 {
        assert_eq!(outcome.response(number).body, "answer");
    }
    assert_eq!(outcome.log.iter().filter(|(_, line)| line == "aborted 0").count(), 2, "{}", outcome.text);
}

#[test]
fn a_worker_outlives_its_clients() {
    let outcome = Scenario::worker("worker_departed.php")
        .get("worker_departed.php", "")
        .line("leaves_after", 1)
        .get("worker_departed.php", "")
        .run();
    let lines: Vec<_> = outcome.log.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines, ["aborted 1", "aborted 0"]);
    assert_eq!(outcome.response(1).body.len(), 30_000);
    assert_eq!(outcome.threads, [STOPPED]);
}

#[test]
fn a_broken_body_does_not_reach_the_handler() {
    let outcome = Scenario::worker("worker_reads_body.php")
        .request("POST", "worker_reads_body.php", "")
        .form("a=1&b=2")
        .line("breaks_at", 3)
        .request("PUT", "worker_reads_body.php", "")
        .line("large_body", 100_000)
        .line("breaks_at", 50_000)
        .request("PUT", "worker_reads_body.php", "")
        .line("large_body", 100_000)
        .run();
    assert_eq!((outcome.response(0).status, outcome.response(0).body.as_str()), (400, ""));
    assert!(outcome.logged("caught: The body of the request broke off"), "{}", outcome.text);
    assert_eq!(outcome.response(2).body, "100000");
}
