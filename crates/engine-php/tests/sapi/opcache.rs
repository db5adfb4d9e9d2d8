//! opcache is in use, and never restarts in place.

use crate::support::{Scenario, Scratch};

#[test]
fn scripts_are_served_from_opcache() {
    let outcome = Scenario::classic().get("opcache_status.php", "").repeat(3).run();
    let got: Vec<_> = (0..3).map(|number| outcome.response(number).json()).collect();
    assert!(got.iter().all(|status| status["cached"] == true));
    assert!(got[2]["hits"].as_i64() > got[1]["hits"].as_i64(), "{got:?}");
    assert_eq!(got[0]["sapi"], serde_json::json!(["frankenphp", "frankenphp"]));
}

#[test]
fn opcache_reset_asks_the_host_for_a_new_engine() {
    let outcome = Scenario::classic().get("opcache_status.php", "reset").get("opcache_status.php", "").run();
    assert_eq!(outcome.restarts, ["opcache_reset()"]);
    let first = outcome.response(0).json();
    assert_eq!((&first["reset"], &first["pending"]), (&true.into(), &false.into()));
    assert_eq!(outcome.response(1).json()["cached"], true, "the cache was not emptied");
}

#[test]
fn a_full_opcache_asks_once_and_stays_as_it_is() {
    let scratch = Scratch::new();
    let query = format!("path={}", scratch.path().display());
    let outcome = Scenario::classic()
        .ini("opcache.memory_consumption=8")
        .ini("opcache.interned_strings_buffer=1")
        .ini("memory_limit=1G")
        .get("fills_opcache.php", &query)
        .get("opcache_status.php", "")
        .get("fills_opcache.php", &query)
        .run();
    assert_eq!(outcome.restarts.len(), 1, "{}", outcome.text);
    assert_eq!(outcome.response(1).json()["pending"], true);
    assert_eq!(outcome.response(2).json()["restarts"], 0, "{}", outcome.text);
}

#[test]
fn a_worker_never_cached_a_file_that_is_younger_than_its_boot_and_never_saw_a_change() {
    const SCRIPT: &str = "worker_opcache_clock.php";
    let scratch = Scratch::new();
    let file = format!("file={}", scratch.path().join("included.inc").display());
    let outcome = Scenario::worker(SCRIPT)
        .ini("opcache.file_update_protection=0")
        .ini("opcache.revalidate_freq=0")
        .get(SCRIPT, &format!("write=old&{file}"))
        .get(SCRIPT, &file)
        .get(SCRIPT, &format!("write=new&{file}"))
        .get(SCRIPT, &file)
        .run();
    assert_eq!(outcome.response(1).json(), serde_json::json!(["old", true]), "it is cached");
    assert_eq!(outcome.response(3).json(), serde_json::json!(["new", true]), "the change is seen");
}
