//! `opcache_reset()`: a new engine beside the old one. That there is one for many calls is in `alone/opcache.rs`.
#![forbid(unsafe_code)]

use regent_tests::Setup;

#[test]
fn opcache_reset_refuses_no_request() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'ok';")
        .file("reset.php", "<?php var_export(opcache_reset());")
        .start();
    let answers = regent_tests::keep_asking(&server, 4, "/", || {
        for _ in 0..5 {
            server.get("/reset.php").expect(200);
        }
        server.wait_for_log("the new generation has taken over");
    });
    assert!(!answers.is_empty());
    for answer in answers {
        assert_eq!(answer.expect(200).text(), "ok");
    }
    server.stop();
}
