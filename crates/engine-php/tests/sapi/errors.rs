//! Scripts that die, and scripts that do not end.

use crate::support::Scenario;

#[test]
fn a_fatal_error_is_500_without_a_body() {
    let outcome = Scenario::classic()
        .get("dies.php", "how=fatal")
        .get("dies.php", "how=exception")
        .get("dies.php", "how=memory")
        .get("dies.php", "how=parse")
        .get("hello.php", "")
        .run();
    for number in 0..4 {
        let response = outcome.response(number);
        assert_eq!((response.status, response.truncated), (500, false), "request {number}");
        assert!(!response.body.contains("rror"), "{}", response.body);
        assert!(response.body.starts_with("[shutdown]"), "{}", response.body);
    }
    assert!(outcome.logged("PHP Fatal error:  Uncaught LogicException: nobody catches this"));
    assert!(outcome.logged("PHP Parse error:"));
    assert!(outcome.log.iter().all(|(level, _)| *level == 3), "{:?}", outcome.log);
    assert_eq!(outcome.response(4).status, 200);
}

#[test]
fn errors_are_shown_where_that_is_configured() {
    let outcome = Scenario::classic().ini("display_errors=1").get("dies.php", "how=exception").run();
    let response = outcome.response(0);
    assert_eq!((response.status, response.truncated), (200, false));
    assert!(response.body.contains("Uncaught LogicException"), "{}", response.body);
}

#[test]
fn a_page_keeps_its_end_when_the_script_dies_after_a_flush() {
    let outcome = Scenario::classic()
        .get("dies.php", "how=fatal&flush")
        .get("dies.php", "how=exception&flush")
        .get("dies.php", "how=parse&flush")
        .get("dies.php", "how=exit&flush")
        .run();
    for number in 0..4 {
        let response = outcome.response(number);
        assert_eq!((response.status, response.ended, response.truncated), (200, true, false), "{number}");
        assert!(response.body.starts_with("partly[shutdown]"), "request {number}: {}", response.body);
    }
    assert!(outcome.logged("PHP Fatal error:  Uncaught LogicException: nobody catches this"));
}

#[test]
fn a_page_keeps_its_end_when_php_dies_behind_the_script() {
    for how in ["shutdown", "destructor", "session"] {
        let outcome = Scenario::classic().get("dies_late.php", how).get("hello.php", "").run();
        let response = outcome.response(0);
        assert_eq!((response.status, response.ended, response.truncated), (200, true, false), "{how}");
        assert_eq!(response.body, "<html>all of the page</html>", "{how}: {}", outcome.text);
        assert!(outcome.logged("nobody catches this"), "{how}: {}", outcome.text);
        assert_eq!(outcome.response(1).body, "Hello world", "{how}");
    }
}

#[test]
fn a_worker_s_page_keeps_its_end_when_php_dies_behind_the_script() {
    for how in ["script", "shutdown", "session"] {
        let outcome = Scenario::worker("worker_dies_late.php")
            .line("restarts", 1)
            .get("worker_dies_late.php", how)
            .get("worker_dies_late.php", "")
            .run();
        for number in 0..2 {
            let response = outcome.response(number);
            assert_eq!((response.status, response.ended, response.truncated), (200, true, false), "{how}");
            assert_eq!(response.body, "<html>all of the page</html>", "{how}: {}", outcome.text);
        }
        assert!(outcome.logged("nobody catches this"), "{how}: {}", outcome.text);
    }
}

#[test]
fn exit_ends_the_script_and_nothing_else() {
    let outcome = Scenario::classic()
        .get("dies.php", "how=exit")
        .get("dies.php", "how=message")
        .get("hello.php", "")
        .run();
    assert_eq!(outcome.response(0).body, "[shutdown][destructor]");
    assert_eq!(outcome.response(1).body, "last words[shutdown][destructor]");
    assert_eq!((outcome.response(0).status, outcome.response(2).status), (200, 200));
}

#[test]
fn the_host_can_end_a_request_that_hangs() {
    let outcome = Scenario::classic()
        .get("hangs.php", "")
        .line("interrupted_after", 50)
        .get("hangs.php", "sleep")
        .line("interrupted_after", 50)
        .get("hello.php", "")
        .run();
    let ended = outcome.log.iter().filter(|(_, line)| line.contains("The server ended the request")).count();
    assert_eq!(ended, 2, "{}", outcome.text);
    assert_eq!(outcome.response(2).body, "Hello world");
}

#[test]
fn the_host_can_end_a_worker_s_request_that_hangs() {
    let outcome = Scenario::worker("worker_time_limit.php")
        .ini("max_execution_time=0")
        .line("restarts", 1)
        .get("worker_time_limit.php", "loop")
        .line("interrupted_after", 50)
        .get("worker_time_limit.php", "")
        .run();
    assert!(outcome.logged("The server ended the request"), "{}", outcome.text);
    assert_eq!(outcome.response(1).body, "0");
}

#[test]
fn endless_recursion_is_an_error_and_no_crash() {
    let outcome = Scenario::classic()
        .ini("memory_limit=1G")
        // PHP 8.5 would write down eight million calls, for half a minute.
        .ini("fatal_error_backtraces=0")
        .get("dies.php", "how=recursion")
        .get("hello.php", "")
        .run();
    assert_eq!((outcome.response(0).status, outcome.response(1).status), (500, 200));
}

#[test]
fn a_deeply_nested_array_is_freed() {
    let outcome = Scenario::classic().get("deep.php", "").run();
    assert_eq!(outcome.response(0).body, "freed");
}

#[test]
fn messages_of_the_start_up_are_logged() {
    let outcome = Scenario::classic().ini("extension=no_such_extension").get("hello.php", "").run();
    assert!(outcome.logged("Unable to load dynamic library 'no_such_extension'"), "{}", outcome.text);
    assert_eq!(outcome.response(0).status, 200);
}
