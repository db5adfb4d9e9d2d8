//! A worker's `$_SERVER`: made of the last request's, and nothing of that request is left in it.

use crate::support::Scenario;
use serde_json::Value;

fn ask(scenario: Scenario, query: &str) -> Scenario {
    scenario.get("worker_server.php", query).header("Host: example.test")
}

/// Everything but what differs between any two requests.
fn lasting(response: &Value) -> Value {
    let mut server = response["now"].clone();
    for name in ["REQUEST_TIME", "REQUEST_TIME_FLOAT"] {
        assert!(server[name].is_number(), "{server}");
        server.as_object_mut().unwrap().remove(name);
    }
    server
}

#[test]
fn what_a_script_changes_is_gone_with_its_request() {
    let scenario = ask(ask(Scenario::worker("worker_server.php"), "change"), "change");
    let outcome = ask(scenario, "change").run();
    let got: Vec<_> = (0..3).map(|number| outcome.response(number).json()).collect();
    assert_eq!(got[0]["now"]["HTTP_HOST"], "example.test");
    assert_eq!(lasting(&got[1]), lasting(&got[0]));
    assert_eq!(lasting(&got[2]), lasting(&got[0]));
}

#[test]
fn what_a_script_keeps_does_not_change() {
    let scenario = ask(ask(Scenario::worker("worker_server.php"), "keep&n=1"), "n=2");
    let outcome = ask(scenario, "n=3").run();
    let got: Vec<_> = (0..3).map(|number| outcome.response(number).json()).collect();
    for later in &got[1..] {
        assert_eq!(later["kept"], "/worker_server.php?keep&n=1");
    }
    let queries: Vec<_> = got.iter().map(|one| one["now"]["QUERY_STRING"].as_str().unwrap()).collect();
    assert_eq!(queries, ["keep&n=1", "n=2", "n=3"]);
}

#[test]
fn variables_come_and_go() {
    let scenario = Scenario::worker("worker_server.php").ini("register_argc_argv=On");
    let outcome = ask(scenario, "")
        .header("X-First: 1")
        .header("X-Second: 2")
        .get("worker_server.php", "a+b")
        .header("X-Second: 3")
        .header("Authorization: Basic dXNlcjpwYXNz")
        .line("var", "5=number")
        .get("worker_server.php", "")
        .line("site_env", "SITE=here")
        .get("worker_server.php", "")
        .run();
    let got: Vec<_> = (0..4).map(|number| outcome.response(number).json()["now"].clone()).collect();
    let optional =
        ["HTTP_HOST", "HTTP_X_FIRST", "HTTP_X_SECOND", "PHP_AUTH_USER", "HTTP_AUTHORIZATION", "5", "SITE"];
    let present = |number: usize| -> Vec<_> {
        optional.into_iter().filter(|name| got[number].get(name).is_some()).collect()
    };
    assert_eq!(present(0), ["HTTP_HOST", "HTTP_X_FIRST", "HTTP_X_SECOND"]);
    assert_eq!(present(1), ["HTTP_X_SECOND", "PHP_AUTH_USER", "HTTP_AUTHORIZATION", "5"]);
    assert_eq!((present(2), present(3)), (vec!["SITE"], vec![]));
    assert_eq!(
        (&got[1]["HTTP_X_SECOND"], &got[1]["argc"], &got[2]["argc"]),
        (&"3".into(), &2.into(), &0.into())
    );
    assert_eq!(got[3]["PHP_SELF"], "/worker_server.php");
}

#[test]
fn the_environment_comes_back_where_a_request_took_its_place() {
    let outcome = Scenario::worker("worker_server.php")
        .environment("PHP_AUTH_USER", "of the process")
        .environment("HTTP_X_OTHER", "of the process")
        .get("worker_server.php", "")
        .header("Authorization: Basic dXNlcjpwYXNz")
        .get("worker_server.php", "")
        .header("X-Other: r")
        .get("worker_server.php", "")
        .run();
    let values = |number: usize| {
        let server = outcome.response(number).json()["now"].clone();
        [server["PHP_AUTH_USER"].clone(), server["HTTP_X_OTHER"].clone()]
    };
    assert_eq!(values(0), ["user", "of the process"]);
    assert_eq!(values(1), ["of the process", "r"]);
    assert_eq!(values(2), ["of the process", "of the process"]);
}
