//! A few requests must not stop the site for all others.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Gate, STOP_AT_GATE, Server, Setup, until};
use std::time::{Duration, Instant};

/// Computes until the test ends it, whether its client is there or not.
const LOOP: &str = "<?php set_time_limit(0); file_put_contents(__DIR__ . '/started', 'x', FILE_APPEND | LOCK_EX); \
    while (!is_file(__DIR__ . '/end')) { clearstatcache(); for ($i = 0; $i < 1000000; $i++) { } }";

/// With the default configuration.
fn site() -> Server {
    Setup::new()
        .admin("ADMIN")
        .php_options("")
        .default_max_wait_time()
        .file("index.php", "<?php echo 'ok';")
        .file("loop.php", LOOP)
        .file("late.php", "<?php echo 'late';")
        .start()
}

/// So many requests that never end, once as many of them have started as is said.
fn start_loops(server: &Server, count: usize, started: usize) -> Vec<Conn> {
    let conns = (0..count).map(|_| server.ask("/loop.php")).collect();
    until("loops have started", || {
        let file = std::fs::read(server.root().join("started")).ok()?;
        (file.len() >= started).then_some(())
    });
    conns
}

fn end_loops(server: Server) {
    server.write("end", "");
    server.admin().wait_for_requests("classic", 0);
    server.stop();
}

fn answers(server: &Server, path: &str, text: &str) {
    for _ in 0..50 {
        assert_eq!(server.get(path).expect(200).text(), text);
    }
}

#[test]
fn endless_loops_whose_clients_have_left_do_not_stop_the_site() {
    let server = site();
    answers(&server, "/", "ok");
    drop(start_loops(&server, 10, 1));
    answers(&server, "/", "ok");
    // A page that nobody has asked for before is as good.
    answers(&server, "/late.php", "late");
    end_loops(server);
}

#[test]
fn a_site_that_was_asked_for_nothing_but_endless_loops_answers_the_next() {
    let server = site();
    let loops = start_loops(&server, 10, 2);
    answers(&server, "/", "ok");
    drop(loops);
    answers(&server, "/late.php", "late");
    end_loops(server);
}

#[test]
fn pages_that_compute_leave_threads_for_others_with_the_default_configuration() {
    let server = site();
    answers(&server, "/", "ok");
    let computing = start_loops(&server, 8, 1);
    for _ in 0..10 {
        answers(&server, "/", "ok");
    }
    let threads = server.admin().busy_threads();
    assert!(threads.iter().any(|thread| thread.uri.starts_with("/loop.php")), "{threads:?}");
    drop(computing);
    end_loops(server);
}

#[test]
fn a_new_path_for_each_request_does_not_get_all_threads() {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 8\n\t\tmax_wait_time off")
        .file("index.php", "<?php echo 'ok';")
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    // Routes are looked at every 20 ms, from the time when PHP runs.
    server.get("/").expect(200);
    let began = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "the least that ten looks take; more does no harm")]
    while began.elapsed() < Duration::from_millis(200) {
        server.get("/").expect(200);
    }
    let path = |number: u8| format!("/gated.php/{}?{number}", char::from(b'a' + number));
    let mut conns: Vec<_> = (0..12).map(|number| server.ask(&path(number))).collect();
    let mut visitors = gate.wait_for(3);
    answers(&server, "/", "ok");
    let admin = server.admin();
    until("six of them wait", || (admin.metric("regent_lane_waiting", &[]) >= 6.0).then_some(()));
    visitors.extend(std::iter::from_fn(|| gate.poll()));
    assert!(visitors.len() <= 6, "{} of 8 threads", visitors.len());
    let waiting = conns.len() - visitors.len();
    drop(visitors);
    (0..waiting).for_each(|_| drop(gate.next()));
    for conn in &mut conns {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
    server.stop();
}

/// A site of one thread, which is held.
fn held(options: &str) -> (Server, Conn, regent_tests::Visitor) {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(&format!("num_threads 1{options}"))
        .default_max_wait_time()
        .file("index.php", "<?php echo 'ok';")
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    let conn = server.ask("/gated.php?holds");
    let visitor = gate.next();
    (server, conn, visitor)
}

fn has_waited(server: &Server, pool: &str, milliseconds: f64) {
    until("a request has waited for long", || {
        (server.admin().pool(pool)["oldest_wait_ms"].as_f64()? >= milliseconds).then_some(())
    });
}

#[test]
fn nobody_waits_for_a_thread_for_more_than_three_seconds_by_default() {
    let (server, mut holding, visitor) = held("");
    let asked = Instant::now();
    let mut waiting = server.ask("/");
    waiting.response().expect(503);
    #[expect(clippy::disallowed_methods, reason = "the least that it waits, which no busy machine shortens")]
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_secs(3), "{waited:?}");
    assert_eq!(server.admin().metric("regent_shed_total", &[("reason", "wait_time")]), 1.0);
    drop(visitor);
    holding.response().expect(200);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn with_the_bound_switched_off_requests_wait() {
    let (server, mut holding, visitor) = held("\n\t\tmax_wait_time off");
    let mut waiting = server.ask("/");
    has_waited(&server, "classic", 3_500.0);
    drop(visitor);
    holding.response().expect(200);
    assert_eq!(waiting.response().expect(200).text(), "ok");
    server.stop();
}

#[test]
fn who_waits_for_a_worker_that_boots_is_not_turned_away_for_that() {
    let script = "<?php while (!is_file(__DIR__ . '/boot')) { clearstatcache(); usleep(10000); } \
        while (frankenphp_handle_request(function () { echo 'booted'; })) { }";
    let server = Setup::new()
        .admin("ADMIN")
        .php_options(
            "num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/app.php\n\t\t\tname app\n\t\t\tnum 1\n\t\t}",
        )
        .file("app.php", script)
        .start();
    let mut waiting = server.ask("/app.php");
    has_waited(&server, "app", 3_500.0);
    server.write("boot", "");
    assert_eq!(waiting.response().expect(200).text(), "booted");
    server.stop();
}
