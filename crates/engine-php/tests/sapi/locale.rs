//! setlocale() in threads. The locales are made by `localedef` (package locales) where it is installed.

use crate::support::{Scenario, Scratch};
use serde_json::json;
use std::process::Command;

/// A locale with a decimal comma in a directory for LOCPATH; `None` where the system cannot make one.
fn german() -> Option<Scratch> {
    let scratch = Scratch::new();
    let made = Command::new("localedef")
        .args(["--no-archive", "-i", "de_DE", "-f", "UTF-8"])
        .arg(scratch.path().join("de_DE.UTF-8"))
        .output();
    let there = made.is_ok() && scratch.path().join("de_DE.UTF-8/LC_NUMERIC").is_file();
    if !there {
        println!("skipped: localedef cannot make de_DE.UTF-8 here (Debian: packages libc-bin and locales)");
    }
    there.then_some(scratch)
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn a_request_s_decimal_comma_is_not_seen_beside_it() {
    let Some(locales) = german() else { return };
    let scratch = Scratch::new();
    let path = scratch.path().display();
    let outcome = Scenario::classic()
        .environment("LOCPATH", locales.path().display())
        .line("threads", 2)
        .get("locale.php", &format!("path={path}&set=de_DE.UTF-8&until=seen"))
        .get("locale.php", &format!("path={path}&name=seen&until=set"))
        .get("locale.php", "")
        .line("after_others", "")
        .run();
    let initial = "LC_CTYPE=C.UTF-8;LC_NUMERIC=C;LC_TIME=C;LC_COLLATE=C;LC_MONETARY=C;LC_MESSAGES=C;LC_PAPER=C;LC_NAME=C;\
                   LC_ADDRESS=C;LC_TELEPHONE=C;LC_MEASUREMENT=C;LC_IDENTIFICATION=C";
    let untouched = json!([initial, "C", "1.5", ".", "."]);
    let german = json!(["de_DE.UTF-8", "de_DE.UTF-8", "1,5", ",", ","]);
    assert_eq!(outcome.response(0).json(), json!([untouched, "de_DE.UTF-8", german]));
    assert_eq!(outcome.response(1).json(), json!([untouched, null, untouched]));
    assert_eq!(outcome.response(2).json(), json!([untouched, null, untouched]));
}

#[test]
fn setlocale_answers_as_php_s() {
    let outcome = Scenario::classic()
        .environment("LC_NUMERIC", "C.UTF-8")
        .get("locale.php", "set=xx_XX,C.UTF-8")
        .get("locale.php", "set=xx_XX")
        .get("locale.php", "set=C&category=LC_CTYPE")
        .get("locale.php", "set=&category=LC_NUMERIC")
        .get("locale.php", "")
        .run();
    assert_eq!(outcome.response(0).json()[1], "C.UTF-8");
    assert_eq!(outcome.response(0).json()[2][0], "C.UTF-8");
    assert_eq!(outcome.response(1).json()[1], false);
    assert_eq!(outcome.response(2).json()[1], "C");
    assert_eq!(outcome.response(2).json()[2][0], "C");
    assert_eq!(outcome.response(3).json()[1], "C.UTF-8", "\"\" is what the environment says");
    let first = outcome.response(0).json()[0].clone();
    assert_eq!(outcome.response(4).json()[0], first, "each request starts alike");
}

#[test]
fn all_categories_from_the_environment_were_compared_with_freed_memory() {
    let alike =
        Scenario::classic().environment("LC_ALL", "C.UTF-8").get("locale.php", "set=").repeat(3).run();
    for number in 0..3 {
        assert_eq!(alike.response(number).json()[1], "C.UTF-8");
        assert_eq!(alike.response(number).json()[2][0], "C.UTF-8");
    }
    let mixed = Scenario::classic()
        .environment("LC_ALL", "")
        .environment("LANG", "C.UTF-8")
        .environment("LC_NUMERIC", "C")
        .get("locale.php", "set=")
        .run();
    let set = mixed.response(0).json()[1].clone();
    let set = set.as_str().expect("the locale is set");
    assert!(set.starts_with("LC_CTYPE=C.UTF-8;LC_NUMERIC=C;LC_TIME=C.UTF-8;"), "{set}");
}

#[test]
fn a_worker_goes_back_to_the_locale_of_its_boot() {
    let outcome = Scenario::worker("worker_locale.php")
        .get("worker_locale.php", "set=C")
        .get("worker_locale.php", "set=C.UTF-8")
        .get("worker_locale.php", "")
        .run();
    let boot = json!(["C", "C.UTF-8", "C.UTF-8"]);
    assert_eq!(outcome.response(0).json(), json!([boot, "C"]));
    assert_eq!(outcome.response(1).json(), json!([boot, "C.UTF-8"]));
    assert_eq!(outcome.response(2).json(), json!([boot, null]));
}

#[cfg_attr(not(php_threads), ignore = "this PHP has no threads")]
#[test]
fn a_child_forked_while_others_set_their_locale_does_not_hang() {
    let outcome = Scenario::classic().line("threads", 4).get("locale_forks.php", "").repeat(4).run();
    for number in 0..4 {
        assert_eq!(outcome.response(number).body, "4");
    }
}
