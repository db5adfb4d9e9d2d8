//! getenv(), putenv() and what child processes see.

use crate::support::{Scenario, Scratch};

fn scenario() -> Scenario {
    Scenario::classic().environment("HOST_NAME", "of the process").environment("REMOVED", "still there")
}

#[test]
fn the_environment_has_layers() {
    let outcome = scenario().get("environment.php", "").line("site_env", "SITE=of the site").run();
    let got = outcome.response(0).json();
    assert_eq!(got["own"], "put");
    assert_eq!(got["site"], "of the site");
    assert_eq!(got["host"], "changed");
    assert_eq!((&got["removed"], &got["unset"]), (&false.into(), &false.into()));
    assert_eq!(got["all"], serde_json::json!({"HOST_NAME": "changed", "OWN": "put", "SITE": "of the site"}));
    let arrays = serde_json::json!(["of the site", "of the process", null]);
    assert_eq!((&got["env"], &got["server"]), (&arrays, &arrays));
    assert_eq!(got["shell"], "put of the site changed []\n");
}

#[test]
fn putenv_ends_with_its_request() {
    let outcome = scenario().get("environment.php", "").get("environment_after.php", "").run();
    let expected = serde_json::json!([false, "of the process", "still there", "of the process"]);
    assert_eq!(outcome.response(1).json(), expected);
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn putenv_is_not_seen_by_requests_beside_it_or_their_children() {
    let scratch = Scratch::new();
    let path = scratch.path().display();
    let outcome = Scenario::classic()
        .line("threads", 2)
        .get("environment_beside.php", &format!("path={path}&first"))
        .get("environment_beside.php", &format!("path={path}"))
        .run();
    assert_eq!(outcome.response(0).body, "first first");
    assert_eq!(outcome.response(1).body, "second second");
}

/// In a shutdown function, a destructor, the session's save handler, and a destructor that PHP calls behind that.
#[test]
fn what_a_script_put_at_its_very_end_crashed_the_next_one() {
    let sessions = Scratch::new();
    let after = "environment_late_after.php";
    let late = |scenario: Scenario| {
        scenario.get("environment_late.php", "").get(after, "").get("environment_late.php", "").get(after, "")
    };
    let scenario = scenario().ini(&format!("session.save_path={}", sessions.path().display()));
    let outcome = late(scenario).run();
    for number in [1, 3] {
        let expected = serde_json::json!([[], false, "put", "pr"]);
        assert_eq!(outcome.response(number).json(), expected);
    }
}

#[test]
fn the_first_request_of_a_worker_gave_its_env_to_all_others() {
    let outcome = Scenario::worker("worker_environment_array.php")
        .ini("variables_order=EGPCS")
        .line("worker_env", "BOOT=of the worker")
        .get("worker_environment_array.php", "")
        .line("site_env", "SITE=of the first client")
        .get("worker_environment_array.php", "")
        .line("site_env", "SITE=of the second client")
        .run();
    for (number, client) in [(0, "first"), (1, "second")] {
        let own = format!("of the {client} client");
        let expected = serde_json::json!(["of the worker", null, own, own]);
        assert_eq!(outcome.response(number).json(), expected);
    }
}

#[test]
fn a_worker_keeps_what_it_put_while_it_booted() {
    let outcome = Scenario::worker("worker_environment.php")
        .get("worker_environment.php", "put=1")
        .get("worker_environment.php", "")
        .line("site_env", "SITE=here")
        .run();
    assert_eq!(outcome.response(0).json(), serde_json::json!(["yes", false, false, "yes"]));
    assert_eq!(outcome.response(1).json(), serde_json::json!(["yes", false, "here", "yes"]));
}
