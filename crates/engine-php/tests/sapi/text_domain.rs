//! The domains of gettext's texts, which are a thread's own here.

use crate::support::{Scenario, Scratch};
use serde_json::json;

#[cfg_attr(not(php_threads), ignore = "a distribution's PHP may have no gettext")]
#[test]
fn a_worker_goes_back_to_the_domains_of_its_boot() {
    let outcome =
        Scenario::worker("worker_text_domain.php").get("worker_text_domain.php", "").repeat(3).run();
    for number in 0..3 {
        assert_eq!(outcome.response(number).json(), json!([["boots", true], "of_request", "/"]));
    }
}

#[cfg_attr(not(php_threads), ignore = "a distribution's PHP may have no gettext")]
#[test]
fn a_script_that_binds_without_end_is_refused_and_harms_no_other() {
    let scratch = Scratch::new();
    let path = format!("path={}", scratch.path().display());
    let outcome = Scenario::classic().get("text_domains_many.php", &path).repeat(2).run();
    for number in 0..2 {
        // The other one of the 32 is `many`.
        assert_eq!(outcome.response(number).json(), json!([64, 31, "still works"]));
    }
}
