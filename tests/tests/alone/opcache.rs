//! `opcache_reset()` by many requests: they all come within the wait for the next engine.
#![forbid(unsafe_code)]

use regent_tests::{Setup, until};

#[test]
fn a_page_that_resets_opcache_each_time_costs_one_engine_at_a_time_and_the_log_names_it() {
    let server = Setup::new()
        .admin("ADMIN")
        .file("index.php", "<?php echo 'ok';")
        .file("reset.php", "<?php var_export(opcache_reset());")
        .start();
    let starts = || server.log().matches("starting a new generation of the engine").count();
    assert_eq!(server.get("/reset.php").expect(200).text(), "true");
    server.wait_for_log("the new generation has taken over");
    for _ in 0..500 {
        assert_eq!(server.get("/reset.php").expect(200).text(), "true");
    }
    server.wait_for_log("opcache is to be emptied again so soon");
    assert_eq!(starts(), 1);
    // It is not forgotten.
    until("a generation is started for all of them", || (starts() == 2).then_some(()));
    let log = server.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("starting a new generation of the engine"))
        .expect("it is there");
    assert!(line.contains("reset.php (500 times)"), "{line}");
    server.stop();
}
