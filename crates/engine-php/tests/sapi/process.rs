//! Child processes of scripts.

use crate::support::{STOPPED, Scenario, Scratch};

#[test]
fn programs_start_with_all_signals_open() {
    let outcome = Scenario::classic().get("children.php", "").run();
    let lines: Vec<_> = outcome.response(0).body.lines().collect();
    assert_eq!(lines, ["SigBlk:\t0000000000000000 3", "SigBlk:\t0000000000000000 4", "5"]);
}

#[test]
fn a_forked_child_runs_no_server_code() {
    let scratch = Scratch::new();
    let outcome = Scenario::classic()
        .get("forks.php", &format!("path={}", scratch.path().display()))
        .get("hello.php", "")
        .run();
    assert_eq!(outcome.response(0).body, "child ended with 7");
    assert!(!outcome.logged("from the child"));
    assert_eq!(std::fs::read_to_string(scratch.path().join("child")).unwrap(), "shutdown ran");
    assert_eq!((outcome.response(1).status, outcome.requests), (200, 2));
    assert_eq!(outcome.threads, [STOPPED], "the child did not come out of the loop");
}
