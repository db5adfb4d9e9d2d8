//! Errors around the handler of a worker: who is blamed, and that none is lost.
#![forbid(unsafe_code)]

use regent_tests::Setup;

/// One worker thread that shows its errors, started with this PHP code.
fn site_with(script: &str, settings: &str) -> Setup {
    Setup::new()
        .php_options(&format!(
            "num_threads 2\n\t\tphp_ini display_errors 1\n\t\tphp_ini html_errors 0\n\t\t{settings}\n\t\t\
             worker {{\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}}"
        ))
        .file("index.php", script)
}

#[test]
fn an_exception_of_the_exception_handler_was_lost() {
    let script = "<?php
        set_exception_handler(function ($e) { echo 'handler'; throw new Exception('second'); });
        while (frankenphp_handle_request(function () { echo 'page '; throw new Exception('first'); })) { }";
    let server = site_with(script, "").start();
    let answer = server.get("/").text();
    assert!(answer.starts_with("page handler"), "{answer}");
    assert!(answer.contains("Fatal error: Uncaught Exception: second in "), "{answer}");
    server.wait_for_log("Uncaught Exception: second");
    assert!(server.get("/").text().contains("second"), "the worker has booted again");
    server.stop();
}

#[test]
fn shutdown_functions_ran_twice_when_one_failed() {
    for failure in ["throw new Exception('late');", "trigger_error('late', E_USER_ERROR);", "exit;"] {
        let script = format!(
            "<?php
            register_shutdown_function(function () {{ echo ' boot'; }});
            while (frankenphp_handle_request(function () {{
                register_shutdown_function(function () {{ echo ' first'; {failure} }});
                register_shutdown_function(function () {{ echo ' second'; }});
                echo 'page';
            }})) {{ }}"
        );
        let server = site_with(&script, "").start();
        let answer = server.get("/").text();
        assert!(answer.starts_with("page first"), "{failure} {answer}");
        assert_eq!(answer.matches(" first").count(), 1, "{failure} {answer}");
        assert_eq!(answer.matches(" second").count(), 0, "as in classic mode: {failure} {answer}");
        assert!(answer.ends_with(" boot"), "the script's own run at its end: {failure} {answer}");
        assert_eq!(answer.contains("late"), failure != "exit;", "{failure} {answer}");
        server.stop();
    }
}

#[test]
fn an_exception_of_a_session_s_write_was_lost() {
    let script = "<?php
        class Broken extends SessionHandler {
            public function write($id, $data): bool { throw new Exception('disk full'); }
        }
        session_set_save_handler(new Broken, false);
        while (frankenphp_handle_request(function () {
            session_start();
            $_SESSION['a'] = 1;
            echo 'page';
        })) { }";
    let server = site_with(script, "").start();
    for _ in 0..2 {
        let answer = server.get("/").text();
        assert!(answer.starts_with("page"), "{answer}");
        assert!(answer.contains("Fatal error: Uncaught Exception: disk full in "), "{answer}");
    }
    server.wait_for_log("Uncaught Exception: disk full");
    server.stop();
}

#[test]
fn a_body_that_is_too_large_was_blamed_on_the_worker() {
    let script = "<?php
        while (frankenphp_handle_request(function () { echo count($_POST); })) { }";
    let too_large = "a=1".repeat(100);
    let limits = "php_ini post_max_size 100";
    let server = site_with(script, &format!("{limits}\n\t\tphp_ini display_startup_errors 1")).start();
    let answer = server.post("/", "application/x-www-form-urlencoded", too_large.as_str()).text();
    assert!(answer.contains("PHP Request Startup: POST Content-Length of 300 bytes exceeds"), "{answer}");
    assert!(answer.contains("in Unknown on line 0") && answer.ends_with('0'), "{answer}");
    server.stop();
    let server = site_with(script, &format!("{limits}\n\t\tphp_ini display_startup_errors 0")).start();
    let answer = server.post("/", "application/x-www-form-urlencoded", too_large.as_str());
    assert_eq!(answer.text(), "0", "classic mode shows such an error with display_startup_errors only, too");
    server.wait_for_log("PHP Request Startup: POST Content-Length of 300 bytes exceeds");
    server.stop();
}
