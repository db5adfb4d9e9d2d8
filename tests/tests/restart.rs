//! Restarts of the engine by hand, and workers that are given up.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Server, Setup, until};

fn restart(server: &Server) -> serde_json::Value {
    server.admin().request("POST", "/frankenphp/workers/restart").send().expect(200).json()
}

#[test]
fn a_restart_did_nothing_on_a_site_without_workers() {
    let server = Setup::new()
        .admin("ADMIN")
        .env("PHP_INI_SCAN_DIR", "ROOT/ini")
        .file("ini/own.ini", "user_agent = before")
        .file("index.php", "<?php echo getmypid(), ' ', ini_get('user_agent');")
        .start();
    let before = server.get("/").expect(200).text();
    assert!(before.ends_with(" before"), "{before}");
    server.write("ini/own.ini", "user_agent = after");
    assert_eq!(restart(&server)["restarted"], 2, "all threads of the engine");
    let after = server.get("/").expect(200).text();
    assert!(after.ends_with(" after"), "php.ini is not read again: {after}");
    assert_ne!(before.split(' ').next(), after.split(' ').next(), "the same process");
    server.stop();
}

/// The restart leaves what waits to the engine that drains, which has nobody else for it.
#[test]
fn what_waited_for_a_process_that_died_while_its_engine_drained_was_never_answered() {
    let server = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off")
        .file(
            "dies.php",
            "<?php while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } posix_kill(getmypid(), SIGKILL); sleep(60);",
        )
        .file("index.php", "<?php echo 'ok';")
        .start();
    let mut dying = server.ask("/dies.php");
    until("it runs", || (server.admin().busy_threads().len() == 1).then_some(()));
    let mut waiting = server.ask("/");
    server.admin().wait_for_queue("classic", 1);
    restart(&server);
    server.write("go", "");
    dying.response().expect(502);
    assert_eq!(waiting.response().expect(200).text(), "ok");
    server.stop();
}

/// A worker that is given up after its second failure in a row, beside a classic thread, and another one.
fn site(broken: &str) -> Server {
    site_with("num_threads 3", broken)
}

/// A script that has been replaced is seen at once, also where a busy machine took two seconds for the start.
fn site_with(threads: &str, broken: &str) -> Server {
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!(
            "{threads}
            php_ini opcache.revalidate_freq 0
            worker {{\nfile ROOT/broken.php\nname broken\nnum 1\nmax_consecutive_failures 2\n}}
            worker {{\nfile ROOT/good.php\nname good\nnum 1\n}}"
        ))
        .file("broken.php", broken)
        .file("good.php", "<?php while (frankenphp_handle_request(function () { echo 'good'; })) {}")
        .file("classic.php", "<?php echo 'classic';")
        .start()
}

const MENDED: &str = "<?php while (frankenphp_handle_request(function () { echo 'mended'; })) {}";

fn assert_refused(answer: regent_tests::Response) {
    let answer = answer.expect(503);
    assert!(answer.text().contains("The worker script failed too often"), "{}", answer.text());
    assert!(answer.header("Retry-After").is_some());
}

#[test]
fn requests_of_a_worker_that_was_given_up_waited_for_ever() {
    let server = site("<?php throw new RuntimeException('it does not boot');");
    server.wait_for_log("the worker script failed too often");
    // The log has it before the thread has ended.
    let given_up = until("requests are refused", || {
        let answer = server.get("/broken.php");
        (answer.status == 503).then_some(answer)
    });
    assert_refused(given_up);
    assert_refused(server.post("/broken.php", "text/plain", "a body"));
    server.wait_for_log("a request was not answered by PHP");
    assert_eq!(server.get("/good.php").expect(200).text(), "good");
    assert_eq!(server.get("/classic.php").expect(200).text(), "classic");

    server.write("broken.php", MENDED);
    restart(&server);
    assert_eq!(server.get("/broken.php").expect(200).text(), "mended");
    server.stop();
}

#[test]
fn requests_that_waited_when_their_worker_was_given_up_hung() {
    // The second boot fails when the test says so.
    let server = site(
        "<?php while (file_exists(__DIR__ . '/tried') && !file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }
        touch(__DIR__ . '/tried'); throw new RuntimeException('it does not boot');",
    );
    let mut waiting: Vec<Conn> = (0..5)
        .map(|_| {
            let mut conn = Conn::open(server.address());
            conn.send("GET /broken.php HTTP/1.1\r\nHost: x\r\n\r\n");
            conn.wait_until_read();
            conn
        })
        .collect();
    server.write("go", "");
    for conn in &mut waiting {
        assert_refused(conn.response());
    }
    server.stop();
}

#[test]
fn a_worker_that_was_given_up_does_not_grow_back() {
    let server =
        site_with("num_threads 3\nmax_threads 12", "<?php throw new RuntimeException('it does not boot');");
    let mut waiting: Vec<Conn> = (0..5).map(|_| Conn::open(server.address())).collect();
    waiting.iter_mut().for_each(|conn| conn.send("GET /broken.php HTTP/1.1\r\nHost: x\r\n\r\n"));
    for conn in &mut waiting {
        assert_refused(conn.response());
    }
    assert_refused(server.get("/broken.php"));
    server.stop();
}

#[test]
fn a_worker_that_was_given_up_is_tried_again_when_a_thread_is_added() {
    let server = site("<?php throw new RuntimeException('it does not boot');");
    server.wait_for_log("the worker script failed too often");
    until("requests are refused", || (server.get("/broken.php").status == 503).then_some(()));
    server.write("broken.php", MENDED);
    server.admin().request("PUT", "/regent/threads?worker=broken").send().expect(200);
    let answer = until("the worker serves", || {
        let answer = server.get("/broken.php");
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(answer.text(), "mended");
    server.stop();
}
