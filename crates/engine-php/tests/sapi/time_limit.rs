//! `max_execution_time`, `set_time_limit()`, and whom they must not hit.

use crate::support::{Outcome, STOPPED, Scenario, WORKER_CRASHED};

fn times_exceeded(outcome: &Outcome) -> usize {
    let exceeded = |line: &str| line.contains("Maximum execution time of 1 second exceeded");
    outcome.log.iter().filter(|(_, line)| exceeded(line)).count()
}

#[test]
fn the_time_limit_ends_a_loop() {
    let outcome =
        Scenario::classic().get("time_limit.php", "set=1&loop").repeat(2).get("hello.php", "").run();
    assert_eq!((outcome.response(0).status, outcome.response(1).status), (500, 500));
    assert_eq!(times_exceeded(&outcome), 2, "{}", outcome.text);
    assert_eq!(outcome.response(2).status, 200);
}

#[test]
fn the_configured_limit_ends_a_script_that_sleeps() {
    for (scenario, script) in [
        (Scenario::classic(), "time_limit.php"),
        (Scenario::worker("worker_time_limit.php"), "worker_time_limit.php"),
    ] {
        let outcome = scenario.ini("max_execution_time=1").get(script, "sleep").run();
        assert_eq!(outcome.response(0).status, 500);
        assert_eq!(times_exceeded(&outcome), 1, "{}", outcome.text);
    }
}

#[test]
fn the_time_limit_is_never_early() {
    let outcome = Scenario::classic().get("time_limit_is_not_early.php", "").repeat(3).run();
    let lasted = |line: &str| line.strip_prefix("ended after ")?.strip_suffix(" ns")?.parse::<u64>().ok();
    let times: Vec<u64> = outcome.log.iter().filter_map(|(_, line)| lasted(line)).collect();
    assert_eq!(times.len(), 3, "{}", outcome.text);
    assert!(times.iter().all(|time| *time >= 1_000_000_000), "{times:?}");
}

#[test]
fn a_script_may_move_its_limit() {
    let outcome = Scenario::classic()
        .ini("max_execution_time=1")
        .get("time_limit.php", "set=100&busy")
        .get("time_limit.php", "ini=100&busy")
        .get("time_limit.php", "set=0&busy")
        .get("time_limit.php", "")
        .get("time_limit.php", "ini=1&loop")
        .get("time_limit.php", "")
        .run();
    for (number, limits) in [(0, "1 100"), (1, "1 100"), (2, "1 0"), (3, "1 1"), (5, "1 1")] {
        assert_eq!(outcome.response(number).body, limits, "request {number}: {}", outcome.text);
    }
    assert_eq!((outcome.response(4).status, times_exceeded(&outcome)), (500, 1));
}

#[test]
fn the_time_that_input_may_take_is_not_the_script_s() {
    let outcome = Scenario::classic()
        .ini("max_input_time=100")
        .ini("max_execution_time=1")
        .get("time_limit.php", "loop")
        .run();
    assert_eq!((outcome.response(0).status, times_exceeded(&outcome)), (500, 1));
}

#[test]
fn a_time_limit_holds_for_its_request() {
    let outcome = Scenario::worker("worker_time_limit.php")
        .line("restarts", 1)
        .get("worker_time_limit.php", "set=100")
        .get("worker_time_limit.php", "")
        .get("worker_time_limit.php", "set=1&loop")
        .get("worker_time_limit.php", "")
        .run();
    assert_eq!((outcome.response(0).body.as_str(), outcome.response(1).body.as_str()), ("30", "30"));
    assert_eq!(outcome.response(2).status, 500);
    assert!(outcome.logged("Maximum execution time of 1 second exceeded"));
    assert_eq!(outcome.response(3).body, "30");
    assert_eq!(outcome.threads, [WORKER_CRASHED, STOPPED]);
}

#[test]
fn a_worker_may_wait_longer_than_its_limit() {
    let outcome = Scenario::worker("worker_time_limit.php")
        .ini("max_execution_time=1")
        .get("worker_time_limit.php", "")
        .get("worker_time_limit.php", "work")
        .line("idle_before", 1500)
        .get("worker_time_limit.php", "set=1&loop")
        .run();
    assert_eq!(outcome.response(1).body, "1", "{}", outcome.text);
    assert_eq!((outcome.response(2).status, times_exceeded(&outcome)), (500, 1));
}

#[test]
fn a_worker_s_own_loop_has_no_limit() {
    let outcome = Scenario::worker("worker_time_limit.php")
        .ini("max_execution_time=1")
        .get("worker_time_limit.php", "busy_between")
        .get("worker_time_limit.php", "work")
        .run();
    assert_eq!(outcome.response(1).body, "1", "{}", outcome.text);
    assert_eq!(outcome.threads, [STOPPED]);
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn a_limit_is_that_of_one_thread() {
    let outcome = Scenario::classic()
        .line("threads", 3)
        .get("time_limit.php", "set=100&busy")
        .get("time_limit.php", "set=1&loop")
        .get("time_limit.php", "set=0&busy")
        .run();
    assert_eq!((outcome.response(0).body.as_str(), outcome.response(2).body.as_str()), ("30 100", "30 0"));
    assert_eq!((outcome.response(1).status, times_exceeded(&outcome)), (500, 1));
}
