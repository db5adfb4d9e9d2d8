//! `request_timeout`: a request that runs for too long gets 504, its script is ended whatever it does, and its thread serves
//! the next one.
#![forbid(unsafe_code)]

use regent_tests::process::is_alive;
use regent_tests::{Server, Setup, php, until};

/// A site with a thread for classic requests, which may run for a second each.
fn site() -> Setup {
    Setup::new()
        .php_options(
            "num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\trequest_timeout 1s\n\t\tphp_ini max_execution_time 0",
        )
        .admin("ADMIN")
        .file("index.php", "<?php echo 'ok';")
}

/// The same with a worker, whose handler runs the file that the query names; its boots are counted in a file.
fn worker_site() -> Setup {
    const WORKER: &str = "<?php file_put_contents(__DIR__ . '/boots', 'x', FILE_APPEND); \
        do { $more = frankenphp_handle_request(function () { include __DIR__ . '/' . $_GET['run']; }); } while ($more);";
    Setup::new()
        .php_options(
            "num_threads 2\n\t\tmax_threads 2\n\t\tmax_wait_time off\n\t\tphp_ini max_execution_time 0\n\t\tworker {\n\t\t\t\
             file ROOT/worker.php\n\t\t\tnum 1\n\t\t\tmax_threads 1\n\t\t\trequest_timeout 1s\n\t\t\t\
             max_consecutive_failures 1\n\t\t}",
        )
        .site("php_server {\n\t\tindex off\n\t\ttry_files {path} worker.php\n\t}")
        .admin("ADMIN")
        .file("worker.php", WORKER)
        .file("ok.php", "<?php echo 'ok';")
}

/// The request is ended in classic and in worker mode, by these means, and the only thread serves the next one.
fn assert_ended(script: &str, how: &str) {
    let classic = site().file("long.php", script).start();
    classic.get("/long.php").expect(504);
    assert_eq!(classic.get("/").expect(200).text(), "ok");
    assert_told(&classic, "/long.php", how);
    classic.stop();

    let worker = worker_site().file("long.php", script).start();
    worker.get("/worker.php?run=long.php").expect(504);
    assert_eq!(worker.get("/worker.php?run=ok.php").expect(200).text(), "ok");
    assert_told(&worker, "/worker.php?run=long.php", how);
    until("the worker has booted anew", || (worker.wait_for_file("boots") == "xx").then_some(()));
    worker.stop();
}

fn assert_told(server: &Server, uri: &str, how: &str) {
    server.wait_for_log("a request exceeded its request_timeout");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("a request exceeded its request_timeout"));
    assert!(line.is_some_and(|line| line.contains(uri) && line.contains(how)), "{log}");
    assert_eq!(server.admin().metric("regent_request_timeouts_total", &[]), 1.0);
}

#[test]
fn a_loop_is_ended_by_php() {
    assert_ended("<?php while (true) { }", "PHP ended the script");
}

#[test]
fn the_script_learns_of_it_as_of_a_fatal_error() {
    const SCRIPT: &str = "<?php register_shutdown_function(function () { \
        file_put_contents(__DIR__ . '/last', error_get_last()['message']); }); while (true) { }";
    let server = site().file("long.php", SCRIPT).start();
    server.get("/long.php").expect(504);
    assert_eq!(server.wait_for_file("last"), "The request exceeded its request_timeout of 1 s");
    server.stop();
}

/// What it prints is for nobody, which is no reason to end it.
#[test]
fn shutdown_functions_may_print() {
    const SCRIPT: &str = "<?php register_shutdown_function(function () { echo str_repeat('x', 100_000); flush(); \
        usleep(300_000); file_put_contents(__DIR__ . '/last', 'all of it'); }); sleep(600);";
    let server = site().file("long.php", SCRIPT).start();
    let answer = server.get("/long.php").expect(504);
    assert!(!answer.text().contains('x'), "{}", answer.text());
    assert_eq!(server.wait_for_file("last"), "all of it");
    server.stop();
}

#[test]
fn a_request_whose_client_has_left_is_ended_too() {
    const SCRIPT: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); sleep(600);";
    let server = site().file("long.php", SCRIPT).start();
    let conn = server.ask("/long.php");
    server.wait_for_file("started");
    drop(conn);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.wait_for_log("a request exceeded its request_timeout");
    server.stop();
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let server = site()
        .site("php_server {\n\t\trequest_buffering off\n\t}")
        .file(
            "read.php",
            "<?php file_put_contents(__DIR__ . '/started', '1'); file_get_contents('php://input');",
        )
        .start();
    let mut conn = server.connect();
    conn.send(
        "POST /read.php HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nab",
    );
    conn.response().expect(504);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn shutdown_functions_do_not_go_on_for_ever() {
    const SCRIPT: &str =
        "<?php register_shutdown_function(function () { while (true) { } }); while (true) { }";
    assert_ended(SCRIPT, "a signal");
}

#[test]
fn an_answer_that_had_begun_is_visibly_cut_short() {
    let server = site()
        .file("long.php", "<?php echo 'begun'; flush(); while (true) { echo '.'; usleep(1000); }")
        .start();
    let mut conn = server.ask("/long.php");
    let head = conn.head().unwrap().expect("a head");
    assert_eq!(head.status, 200);
    conn.rest_of(head).expect_err("the body has no end");
    server.get("/").expect(200);
    assert_told(&server, "/long.php", "PHP ended the script");
    server.stop();
}

#[test]
fn time_in_the_queue_does_not_count() {
    let server = site().file("half.php", "<?php usleep(400_000); echo 'done';").start();
    let conns: Vec<_> = (0..4).map(|_| server.ask("/half.php")).collect();
    for mut conn in conns {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
    server.stop();
}

#[test]
fn a_route_may_have_a_limit_of_its_own_or_none() {
    let server = site()
        .site("route /free.php {\n\t\tphp {\n\t\t\trequest_timeout off\n\t\t}\n\t}\n\tphp_server {\n\t\trequest_timeout 20s\n\t}")
        .file("free.php", "<?php usleep(1_300_000); echo 'free';")
        .file("own.php", "<?php usleep(1_300_000); echo 'own';")
        .start();
    assert_eq!(server.get("/free.php").expect(200).text(), "free");
    assert_eq!(server.get("/own.php").expect(200).text(), "own");
    server.stop();
}

#[test]
fn what_a_script_does_after_its_answer_is_not_limited() {
    const SCRIPT: &str = "<?php echo 'early'; fastcgi_finish_request(); usleep(1_300_000); \
        file_put_contents(__DIR__ . '/done', 'all of it');";
    let server = site().file("after.php", SCRIPT).start();
    assert_eq!(server.get("/after.php").expect(200).text(), "early");
    assert_eq!(server.wait_for_file("done"), "all of it");
    server.stop();
}

#[test]
fn a_site_may_have_a_page_of_its_own_for_it() {
    let server = site()
        .site("php_server\n\thandle_errors 504 {\n\t\trespond \"it took too long\"\n\t}")
        .file("long.php", "<?php while (true) { }")
        .start();
    assert_eq!(server.get("/long.php").expect(504).text(), "it took too long");
    server.stop();
}

#[test]
fn the_limit_of_php_keeps_its_meaning() {
    let server = site().file("long.php", "<?php set_time_limit(1); while (true) { }").start();
    server.get("/long.php").expect(504);
    let server_of_php = Setup::new()
        .php_options("num_threads 1\n\t\tmax_threads 1\n\t\trequest_timeout 20s")
        .file("long.php", "<?php set_time_limit(1); while (true) { }")
        .start();
    server_of_php.get("/long.php").expect(500);
    server_of_php.wait_for_log("Maximum execution time of 1 second exceeded");
    server_of_php.stop();
    server.stop();
}

/* ---- Waiting in the kernel ----------------------------------------------------------------------------------------- */

#[test]
fn a_sleep_is_broken_off() {
    assert_ended("<?php sleep(600); sleep(600);", "a signal broke off");
}

#[test]
fn a_wait_for_a_pipe_is_broken_off() {
    const SCRIPT: &str =
        "<?php $path = __DIR__ . '/fifo'; posix_mkfifo($path, 0600); fgets(fopen($path, 'r+'));";
    assert_ended(SCRIPT, "a signal broke off");
}

#[test]
fn a_wait_for_a_lock_is_broken_off() {
    const SCRIPT: &str = "<?php $mine = fopen(__FILE__, 'r'); flock($mine, LOCK_EX); \
        $other = fopen(__FILE__, 'r'); flock($other, LOCK_EX);";
    assert_ended(SCRIPT, "a signal broke off");
}

#[test]
fn a_wait_for_a_session_is_broken_off() {
    const SCRIPT: &str = "<?php $path = ini_get('session.save_path') . '/sess_abc'; touch($path); \
        $mine = fopen($path, 'r'); flock($mine, LOCK_EX); session_id('abc'); session_start();";
    assert_ended(SCRIPT, "a signal broke off");
}

#[test]
fn programs_that_the_script_waits_for_are_ended() {
    // Nobody else's: others may run this test on the same machine.
    let [by_shell, directly] = [601, 602].map(|seconds| format!("{seconds}.{}", std::process::id()));
    assert_ended(&format!("<?php exec('sleep {by_shell}');"), "a signal broke off");
    assert_ended(
        &format!("<?php $pipes = []; proc_close(proc_open(['sleep', '{directly}'], [], $pipes));"),
        "a signal broke off",
    );
    for seconds in [by_shell, directly] {
        let wanted = format!("sleep\0{seconds}\0");
        let mut commands = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|process| std::fs::read_to_string(process.ok()?.path().join("cmdline")).ok());
        assert!(commands.all(|command| command != wanted), "it runs still");
    }
}

/// PHP's streams wait again after a signal.
#[test]
fn a_server_that_does_not_answer_is_hung_up_on() {
    const SCRIPT: &str = "<?php $server = stream_socket_server('tcp://127.0.0.1:0'); \
        $client = stream_socket_client('tcp://' . stream_socket_get_name($server, false)); \
        stream_set_timeout($client, 600); while (true) { fgets($client); }";
    assert_ended(SCRIPT, "was shut down");
}

#[test]
fn a_wait_for_connections_is_broken_off() {
    const SCRIPT: &str = "<?php $server = stream_socket_server('tcp://127.0.0.1:0', $_, $_, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN); \
        file_put_contents(__DIR__ . '/port', stream_socket_get_name($server, false)); \
        while (true) { stream_socket_accept($server, 600); }";
    let server = site().file("long.php", SCRIPT).start();
    server.get("/long.php").expect(504);
    server.get("/").expect(200);
    server.stop();
}

/* ---- Threads that do not come back ----------------------------------------------------------------------------------- */

/// Minutes within one call of C.
const ENDLESS: &str = "<?php hash_pbkdf2('sha512', 'password', 'salt', 2_000_000_000);";

/// A process can be killed by itself; what does not come back as a thread takes its engine along.
fn wait_for_replacement(server: &Server, old: u32) {
    if php::is_in_processes() {
        assert_eq!(server.engine(), old);
    } else {
        until("the old engine has ended", || (!is_alive(old)).then_some(()));
    }
}

#[test]
fn a_thread_that_does_not_come_back_is_replaced_at_once() {
    let server = site().file("long.php", ENDLESS).start();
    let old = server.engine();
    server.get("/long.php").expect(504);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert_told(&server, "/long.php", "nothing helped");
    assert_eq!(server.admin().metric("regent_threads_written_off_total", &[("pool", "classic")]), 1.0);
    wait_for_replacement(&server, old);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert_eq!(server.admin().metric("regent_engine_deaths_total", &[]), 0.0);
    server.stop();
}

#[test]
fn a_worker_that_does_not_come_back_is_replaced_at_once() {
    let server = worker_site().file("long.php", ENDLESS).start();
    let old = server.engine();
    server.get("/worker.php?run=long.php").expect(504);
    assert_eq!(server.get("/worker.php?run=ok.php").expect(200).text(), "ok");
    assert_told(&server, "/worker.php?run=long.php", "nothing helped");
    wait_for_replacement(&server, old);
    assert_eq!(server.get("/worker.php?run=ok.php").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn an_engine_with_such_a_thread_ends_when_its_other_requests_have() {
    const BESIDE: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
        while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'all of it';";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tmax_threads 2\n\t\tphp_ini max_execution_time 0")
        .site("route /long.php {\n\t\tphp {\n\t\t\trequest_timeout 300ms\n\t\t}\n\t}\n\tphp_server")
        .admin("ADMIN")
        .file("index.php", "<?php echo 'ok';")
        .file("long.php", ENDLESS)
        .file("beside.php", BESIDE)
        .start();
    let old = server.engine();
    let mut beside = server.ask("/beside.php");
    server.wait_for_file("started");
    server.get("/long.php").expect(504);
    if !php::is_in_processes() {
        server.wait_for_log("the new generation has taken over");
    }
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert!(is_alive(old), "it has a request");
    server.write("go", "now");
    assert_eq!(beside.response().expect(200).text(), "all of it");
    wait_for_replacement(&server, old);
    server.stop();
}

/// One after the other, more than an engine has numbers for.
#[test]
fn a_pool_that_is_lost_as_a_whole_comes_back() {
    let server = site()
        .php_options("num_threads 4\n\t\tmax_threads 4\n\t\tmax_wait_time off\n\t\trequest_timeout 300ms")
        .file("long.php", ENDLESS)
        .start();
    let conns: Vec<_> = (0..24).map(|_| server.ask("/long.php")).collect();
    for mut conn in conns {
        // They compute all the time, and one is ended after the other.
        conn.get_ref().set_read_timeout(Some(std::time::Duration::from_secs(300))).expect("a socket");
        conn.response().expect(504);
    }
    // Its time is short, too, for a machine that is busy with what was lost.
    let answer = until("it comes back", || Some(server.get("/")).filter(|answer| answer.status == 200));
    assert_eq!(answer.text(), "ok");
    until("one engine is left", || (server.engines().len() == 1).then_some(()));
    server.stop();
}
