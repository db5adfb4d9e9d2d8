//! Engines that die, are killed, or hang up: the server goes on, and no connection is refused.
#![forbid(unsafe_code)]

use regent_tests::php;
use regent_tests::process::{is_alive, is_stopped, runs, signal};
use regent_tests::{Response, Server, Setup, keep_asking, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn kill_engine(server: &Server) -> u32 {
    let engine = server.engine();
    assert!(signal(engine, Signal::KILL));
    engine
}

/// Waits for an engine other than this one, and for PHP to answer.
fn wait_for_another_engine(server: &Server, old: u32) {
    until("there is another engine", || server.engines().iter().any(|pid| *pid != old).then_some(()));
    until("PHP answers again", || Some(server.get("/")).filter(|answer| answer.status == 200));
}

#[test]
fn an_engine_that_is_killed_under_load_costs_only_its_running_requests() {
    let server = Setup::new()
        .php_options("num_threads 4")
        .file("index.php", "<?php usleep(2000); echo 'ok';")
        .file("style.css", "a {}")
        .start();
    server.get("/").expect(200);
    let answers = keep_asking(&server, 8, "/", || {
        for _ in 0..3 {
            let old = kill_engine(&server);
            server.get("/style.css").expect(200);
            wait_for_another_engine(&server, old);
        }
    });
    for Response { status, body, .. } in &answers {
        assert!(
            *status == 502 || (*status == 200 && body == b"ok"),
            "{status} {}",
            String::from_utf8_lossy(body)
        );
    }
    // Each death can take what four threads were running.
    let lost = answers.iter().filter(|answer| answer.status == 502).count();
    assert!(lost <= 3 * 4, "{lost} of {} requests got 502", answers.len());
    server.stop();
}

#[test]
fn requests_that_wait_survive_the_death_of_the_engine() {
    let server = Setup::new()
        .php_options("num_threads 1")
        .file(
            "busy.php",
            "<?php file_put_contents(__DIR__ . '/started', '1'); while (true) { usleep(10000); }",
        )
        .file("index.php", "<?php echo 'ok';")
        .start();
    let mut busy = server.connect();
    busy.send("GET /busy.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    let mut waiting: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for conn in &mut waiting {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        conn.wait_until_read();
    }
    kill_engine(&server);
    busy.response().expect(502);
    for mut conn in waiting {
        assert_eq!(conn.response().expect(200).text(), "ok");
    }
    server.stop();
}

#[test]
fn an_engine_that_was_stopped_is_replaced() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    server.get("/").expect(200);
    let stopped = server.engine();
    assert!(signal(stopped, Signal::STOP));
    until("the engine has stopped", || is_stopped(stopped).then_some(()));
    // Processes go on beside the one that speaks with the server.
    assert_eq!(server.get("/").expect(200).text(), "ok");
    until("there is another engine", || server.engines().iter().all(|pid| *pid != stopped).then_some(()));
    server.wait_for_log("its process was stopped");
    server.stop();
}

#[test]
fn requests_that_come_while_the_engine_stands_still_are_answered() {
    let server = Setup::new()
        .php_options("num_threads 2")
        .file("hangs.php", "<?php file_put_contents(__DIR__ . '/started', '1'); usleep(100000000);")
        .file("index.php", "<?php echo 'ok';")
        .start();
    server.get("/").expect(200);
    // In processes the others go on, so that both have to hang for requests to wait.
    let mut hanging: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for conn in &mut hanging {
        conn.send("GET /hangs.php HTTP/1.1\r\nHost: x\r\n\r\n");
        server.wait_for_file("started");
        std::fs::remove_file(server.root().join("started")).expect("it is there");
    }
    let stopped = server.engine();
    assert!(signal(stopped, Signal::STOP));
    let mut waiting: Vec<_> = (0..20).map(|_| server.ask("/")).collect();
    while server.engines().contains(&stopped) {
        waiting.push(server.ask("/"));
        // They come steadily, as long as it takes to give the engine up.
        regent_tests::pause(Duration::from_millis(20));
    }
    for mut conn in waiting {
        assert_eq!(conn.response().expect(200).text(), "ok");
    }
    server.wait_for_log("its process was stopped");
    server.stop();
}

#[test]
fn an_answer_that_had_begun_is_visibly_cut_short() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'begun'; ob_flush(); flush(); while (true) { usleep(10000); }")
        .file("other.php", "<?php echo 'ok';")
        .start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    conn.read_until("begun");
    kill_engine(&server);
    // What follows must not be the last chunk: the client would take the answer for whole.
    let mut rest = Vec::new();
    let mut buffer = [0; 256];
    while let Ok(count @ 1..) = conn.read_some(&mut buffer) {
        rest.extend_from_slice(&buffer[..count]);
    }
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    until("PHP answers again", || Some(server.get("/other.php")).filter(|answer| answer.status == 200));
    server.stop();
}

#[test]
fn scripts_that_crash_the_engine_cost_one_request() {
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tphp_ini ffi.enable true")
        .file("index.php", "<?php echo 'ok';")
        .file("segv.php", "<?php posix_kill(getmypid(), SIGSEGV); usleep(10000000);")
        .file("abort.php", "<?php FFI::cdef('void abort(void);')->abort();")
        .file("null.php", "<?php FFI::cdef('size_t strlen(const char *s);')->strlen(FFI::cast('char *', 0));")
        .file("exit.php", "<?php FFI::cdef('void _exit(int status);')->_exit(0);")
        .start();
    for script in ["segv", "abort", "null", "exit"] {
        let old = server.engine();
        assert_eq!(server.get(&format!("/{script}.php")).status, 502, "{script}");
        if php::is_in_processes() {
            assert_eq!(server.get("/").expect(200).text(), "ok");
            assert_eq!(server.engine(), old, "the other process goes on");
        } else {
            wait_for_another_engine(&server, old);
        }
    }
    server.stop();
}

#[test]
fn deep_recursion_is_an_error_and_not_a_crash() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'ok';")
        .file("deep.php", "<?php class A { function __get($n) { return $this->{$n . 'x'}; } } (new A)->a;")
        .file("version.php", "<?php echo PHP_VERSION_ID;")
        .file("sort.php", "<?php function f($n) { usort($n, fn ($a, $b) => f($n)); } f([1, 2]);")
        .start();
    let engine = server.engine();
    // PHP bounds the depth of calls since its version 8.3.
    let version: u32 = server.get("/version.php").text().parse().expect("a number");
    let expected = if version >= 80300 || !php::is_in_processes() { 500 } else { 502 };
    server.get("/deep.php").expect(expected);
    server.get("/sort.php").expect(expected);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert_eq!(server.engine(), engine, "the engine lives on");
    server.stop();
}

#[test]
fn exit_with_a_negative_status_leaves_the_engine_alone() {
    let server = Setup::new().file("index.php", "<?php echo 'bye'; exit(-1);").start();
    let engine = server.engine();
    for _ in 0..20 {
        assert_eq!(server.get("/").expect(200).text(), "bye");
    }
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn a_forked_child_runs_no_server_code() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'ok';")
        .file(
            "fork.php",
            "<?php $child = pcntl_fork(); if ($child === 0) { exit(0); } pcntl_waitpid($child, $status); echo 'parent ', pcntl_wexitstatus($status);",
        )
        .file("exec.php", "<?php echo shell_exec('echo from a child');")
        .start();
    let engine = server.engine();
    for _ in 0..5 {
        assert_eq!(server.get("/fork.php").expect(200).text(), "parent 0");
        assert_eq!(server.get("/exec.php").expect(200).text(), "from a child\n");
    }
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn an_engine_does_not_outlive_its_server() {
    let mut server = Setup::new()
        .file(
            "index.php",
            "<?php file_put_contents(__DIR__ . '/started', '1'); while (true) { usleep(10000); }",
        )
        .start();
    let engine = server.engine();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    server.signal(Signal::KILL);
    server.wait();
    until("the engine has ended", || (!runs(engine, "regent-php")).then_some(()));
}

#[test]
fn an_engine_that_keeps_dying_is_restarted_with_back_off() {
    let script = "<?php file_put_contents(__DIR__ . '/boots', '1', FILE_APPEND); \
                  if (!file_exists(__DIR__ . '/repaired')) { posix_kill(getmypid(), SIGKILL); } \
                  while (frankenphp_handle_request(function () { echo 'repaired'; })) { }";
    let begun = Instant::now();
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tworker ROOT/index.php 1")
        .file("index.php", script)
        .file("style.css", "a {}")
        .start();
    let boots = || std::fs::metadata(server.root().join("boots")).map_or(0, |file| file.len());
    until("the engine has died a few times", || (boots() >= 4).then_some(()));
    // The first is replaced at once, the next after 100 and 200 ms: `replacement::backoff`.
    #[expect(clippy::disallowed_methods, reason = "the least that is waited, which no busy machine shortens")]
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(300), "four starts within {taken:?}");
    assert_eq!(server.get("/style.css").expect(200).text(), "a {}", "files are served meanwhile");
    assert!(is_alive(server.pid()));
    server.write("repaired", "1");
    let answer = until("the worker is up", || Some(server.get("/")).filter(|answer| answer.status == 200));
    assert_eq!(answer.text(), "repaired");
    server.stop();
}
