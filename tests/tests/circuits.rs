//! What kills engines again and again is refused for a while, alone. Where PHP runs in processes a crash costs nobody else
//! anything, and nothing is refused: `processes.rs`.
#![forbid(unsafe_code)]

use regent_tests::process::{is_alive, signal};
use regent_tests::{Conn, Gate, Response, STOP_AT_GATE, Server, Setup, keep_asking, php, until};
use rustix::process::Signal;

/// Reads where nothing is.
const CRASH: &str = "FFI::cdef('size_t strlen(const char *s);')->strlen(FFI::cast('char *', 0));";
const ABORT: &str = "FFI::cdef('void abort(void);')->abort();";
const EXIT: &str = "FFI::cdef('void _exit(int status);')->_exit(0);";

fn is_passed_over() -> bool {
    if php::is_in_processes() {
        println!("SKIPPED: this PHP runs in processes");
    }
    php::is_in_processes()
}

/// A site whose scripts can crash.
fn fragile_site(circuit: &str) -> Setup {
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!("num_threads 4\n\t\tphp_ini ffi.enable true\n\t\tcircuit {circuit}"))
        .file("index.php", "<?php echo 'ok';")
        .file("crash.php", format!("<?php {CRASH}"))
}

const PATIENT: &str = "{\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";

fn kill_engines(server: &Server, target: &str, times: usize) {
    for death in 0..times {
        assert_eq!(server.get(target).status, 502, "{target}, death {death}");
    }
}

fn expect_refusal(answer: Response) {
    let answer = answer.expect(503);
    let seconds: u64 =
        answer.header("retry-after").expect("when to come again").parse().expect("whole seconds");
    assert!((1..=600).contains(&seconds), "{seconds}");
    let text = answer.text();
    assert!(!text.contains("circuit") && !text.contains(".php"), "nobody else's business: {text}");
}

fn deaths(server: &Server) -> f64 {
    server.admin().metric("regent_engine_deaths_total", &[])
}

#[test]
fn a_page_that_kills_its_engine_is_refused_and_what_runs_beside_it_goes_on() {
    if is_passed_over() {
        return;
    }
    let setup = fragile_site(PATIENT)
        .file("abort.php", format!("<?php {ABORT}"))
        .file("beside.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    for page in ["/crash.php", "/abort.php"] {
        for _ in 0..3 {
            let mut beside = server.ask("/beside.php");
            let _visitor = gate.next();
            kill_engines(&server, page, 1);
            beside.response().expect(502);
        }
        let engine = until("PHP answers", || (server.get("/").status == 200).then(|| server.engine()));
        for _ in 0..5 {
            expect_refusal(server.get(page));
        }
        let mut beside = server.ask("/beside.php");
        drop(gate.next());
        assert_eq!(beside.response().expect(200).text(), "done");
        assert_eq!(server.engine(), engine, "{page} has killed no more");
    }
    assert_eq!(deaths(&server), 6.0);
    server.wait_for_log("a circuit is open");
    server.wait_for_log("its circuit is open: requests like it have killed their engine");
    server.stop();
}

#[test]
fn what_is_refused_is_shown() {
    if is_passed_over() {
        return;
    }
    let server = fragile_site(PATIENT).start();
    kill_engines(&server, "/crash.php", 3);
    (0..4).for_each(|_| expect_refusal(server.get("/crash.php")));
    let admin = server.admin();
    let labels = [("pool", "classic"), ("route", "/crash.php")];
    assert_eq!(admin.metric("regent_circuit_open", &labels), 1.0);
    assert_eq!(admin.metric("regent_circuit_rejected_total", &[("pool", "classic")]), 4.0);
    let circuit = admin.get("/regent/statistics").expect(200).json()["circuits"][0].clone();
    assert_eq!(circuit["route"], "/crash.php");
    assert!(circuit["script"].as_str().is_some_and(|script| script.ends_with("/crash.php")), "{circuit}");
    assert_eq!((&circuit["pool"], &circuit["state"]), (&"classic".into(), &"open".into()));
    server.stop();
}

#[test]
fn a_front_controller_goes_on_when_one_of_its_pages_kills() {
    if is_passed_over() {
        return;
    }
    let script =
        format!("<?php if (str_starts_with($_SERVER['REQUEST_URI'], '/bad')) {{ {CRASH} }} echo 'ok';");
    let server = fragile_site(PATIENT).file("index.php", script).start();
    kill_engines(&server, "/bad?why=test", 3);
    expect_refusal(server.get("/bad"));
    for page in ["/", "/good", "/never/asked/for"] {
        assert_eq!(server.get(page).expect(200).text(), "ok", "{page}");
    }
    server.stop();
}

#[test]
fn what_kills_under_ever_other_paths_closes_its_script_and_no_other() {
    if is_passed_over() {
        return;
    }
    let script = format!("<?php if (isset($_GET['crash'])) {{ {CRASH} }} echo 'ok';");
    let options = "{\n\t\t\tfailures 2\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let server =
        fragile_site(options).file("index.php", script).file("other.php", "<?php echo 'other';").start();
    for page in ["a", "b", "c", "d", "e", "f"] {
        kill_engines(&server, &format!("/{page}?crash"), 1);
    }
    expect_refusal(server.get("/anything"));
    assert_eq!(server.get("/other.php").expect(200).text(), "other");
    server.wait_for_log("index.php");
    assert_eq!(deaths(&server), 6.0);
    server.stop();
}

#[test]
fn a_request_that_is_let_through_closes_the_circuit_when_it_ends_well() {
    if is_passed_over() {
        return;
    }
    let script = format!("<?php if (!file_exists(__DIR__ . '/repaired')) {{ {CRASH} }} echo 'ok';");
    let server = fragile_site("{\n\t\t\tpause 200ms\n\t\t}").file("crash.php", script).start();
    kill_engines(&server, "/crash.php", 3);
    for _ in 0..2 {
        until("one is let through, and kills", || {
            let status = server.get("/crash.php").status;
            assert!([502, 503].contains(&status), "{status}");
            (status == 502).then_some(())
        });
    }
    ["200ms", "400ms", "800ms"]
        .iter()
        .for_each(|pause| server.wait_for_log(&format!("\"pause\":\"{pause}\"")));
    server.write("repaired", "1");
    until("one is let through, and ends well", || {
        let status = server.get("/crash.php").status;
        assert!([200, 503].contains(&status), "{status}");
        (status == 200).then_some(())
    });
    server.wait_for_log("a circuit is closed");
    (0..10).for_each(|_| drop(server.get("/crash.php").expect(200)));
    assert_eq!(deaths(&server), 5.0);
    server.stop();
}

#[test]
fn requests_that_wait_are_refused_when_the_circuit_opens() {
    if is_passed_over() {
        return;
    }
    let options = "num_threads 1\n\t\tmax_wait_time off\n\t\tphp_ini ffi.enable true\n\t\t\
        circuit {\n\t\t\tfailures 1\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(options)
        .file("index.php", "<?php echo 'ok';")
        .file("crash.php", format!("<?php {STOP_AT_GATE} {CRASH}"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut first = server.ask("/crash.php");
    let visitor = gate.next();
    let mut waiting: Vec<_> = (0..5).map(|_| server.ask("/crash.php")).collect();
    Conn::wait_until_all_read(&waiting);
    let mut other = server.ask("/");
    other.wait_until_read();
    drop(visitor);
    first.response().expect(502);
    waiting.iter_mut().for_each(|conn| expect_refusal(conn.response()));
    assert_eq!(other.response().expect(200).text(), "ok");
    assert_eq!(deaths(&server), 1.0);
    server.stop();
}

#[test]
fn a_worker_whose_requests_kill_is_refused_and_other_pools_go_on() {
    if is_passed_over() {
        return;
    }
    let worker = format!("<?php while (frankenphp_handle_request(function () {{ {CRASH} }})) {{}}");
    const GOOD: &str = "<?php while (frankenphp_handle_request(fn () => print 'good')) {}";
    let server = Setup::new()
        .php_options(&format!(
            "num_threads 3\n\t\tphp_ini ffi.enable true\n\t\tworker ROOT/bad.php 1\n\t\tworker ROOT/good.php 1\n\t\t\
             circuit {PATIENT}"
        ))
        .file("bad.php", worker)
        .file("good.php", GOOD)
        .file("index.php", "<?php echo 'ok';")
        .start();
    kill_engines(&server, "/bad.php", 3);
    expect_refusal(server.get("/bad.php"));
    assert_eq!(server.get("/good.php").expect(200).text(), "good");
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn a_page_that_ends_the_process_is_to_blame_if_nothing_else_ran() {
    if is_passed_over() {
        return;
    }
    let server = fragile_site(PATIENT).file("exit.php", format!("<?php {EXIT}")).start();
    kill_engines(&server, "/exit.php", 3);
    expect_refusal(server.get("/exit.php"));
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn an_engine_that_is_killed_from_outside_closes_nothing() {
    if is_passed_over() {
        return;
    }
    let setup = fragile_site("{\n\t\t\tfailures 1\n\t\t}")
        .file("index.php", format!("<?php {STOP_AT_GATE} echo 'ok';"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    for _ in 0..3 {
        let mut conn = server.ask("/");
        let _visitor = gate.next();
        let engine = server.engine();
        assert!(signal(engine, Signal::KILL));
        conn.response().expect(502);
        until("it is gone", || (!is_alive(engine)).then_some(()));
    }
    let mut conn = server.ask("/");
    drop(gate.next());
    assert_eq!(conn.response().expect(200).text(), "ok");
    server.stop();
}

#[test]
fn circuits_can_be_switched_off() {
    if is_passed_over() {
        return;
    }
    let server = fragile_site("off").start();
    kill_engines(&server, "/crash.php", 5);
    server.get("/").expect(200);
    server.stop();
}

/// Of which the second kills its engine while it boots, as long as there is a file that says so.
fn site_with_a_worker_that_kills_at_its_boot(circuit: &str) -> Setup {
    let bad = format!(
        "<?php if (file_exists(__DIR__ . '/broken')) {{ {CRASH} }} \
         while (frankenphp_handle_request(fn () => print 'bad')) {{}}"
    );
    const GOOD: &str = "<?php while (frankenphp_handle_request(fn () => print 'good')) {}";
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!(
            "num_threads 3\n\t\tphp_ini ffi.enable true\n\t\tworker ROOT/bad.php 1\n\t\tworker ROOT/good.php 1\n\t\t\
             circuit {circuit}"
        ))
        .file("bad.php", bad)
        .file("good.php", GOOD)
        .file("index.php", "<?php echo 'ok';")
        .file("exit.php", format!("<?php {EXIT}"))
}

/// Ends the engine of a worker that has booted, which is the last one that does.
fn break_the_worker(server: &Server) {
    wait_for_boots(server);
    server.write("broken", "");
    assert_eq!(server.get("/exit.php").status, 502);
    server.wait_for_log("this worker kills the engine while it boots");
}

fn wait_for_boots(server: &Server) {
    assert_eq!(server.get("/bad.php").expect(200).text(), "bad");
    assert_eq!(server.get("/good.php").expect(200).text(), "good");
}

#[test]
fn a_worker_that_kills_while_it_boots_is_refused_alone() {
    if is_passed_over() {
        return;
    }
    let server = site_with_a_worker_that_kills_at_its_boot(PATIENT).start();
    wait_for_boots(&server);
    server.write("broken", "");
    // The next engines boot it.
    assert_eq!(server.get("/exit.php").status, 502);
    server.wait_for_log("this worker kills the engine while it boots");
    assert_eq!(deaths(&server), 4.0);
    let engine = until("PHP answers", || (server.get("/").status == 200).then(|| server.engine()));
    for _ in 0..5 {
        expect_refusal(server.get("/bad.php"));
        assert_eq!(server.get("/good.php").expect(200).text(), "good");
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    assert_eq!((server.engine(), deaths(&server)), (engine, 4.0));
    let admin = server.admin();
    assert_eq!(admin.metric("regent_circuit_open", &[("route", "")]), 1.0);
    let circuit = admin.get("/regent/statistics").expect(200).json()["circuits"][0].clone();
    assert!(circuit["script"].as_str().is_some_and(|script| script.ends_with("/bad.php")), "{circuit}");
    assert_eq!((&circuit["route"], &circuit["state"]), (&serde_json::Value::Null, &"open".into()));
    server.stop();
}

#[test]
fn a_worker_that_boots_again_is_served_again_and_trials_cost_nobody_a_request() {
    if is_passed_over() {
        return;
    }
    let server = site_with_a_worker_that_kills_at_its_boot("{\n\t\t\tpause 300ms\n\t\t}").start();
    break_the_worker(&server);
    until("PHP answers", || (server.get("/good.php").status == 200).then_some(()));
    let answers = keep_asking(&server, 2, "/good.php", || {
        // Two trials that fail.
        for pause in ["\"pause\":\"600ms\"", "\"pause\":\"1.2s\""] {
            server.wait_for_log(pause);
        }
        assert_eq!(server.get("/bad.php").status, 503);
        std::fs::remove_file(server.root().join("broken")).unwrap();
        server.wait_for_log("a circuit is closed: the worker has booted");
    });
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(server.get("/bad.php").expect(200).text(), "bad");
    let statistics = server.admin().get("/regent/statistics").expect(200).json();
    assert_eq!(statistics["circuits"], serde_json::json!([]));
    server.stop();
}

#[test]
fn a_repaired_worker_is_tried_right_after_a_restart() {
    if is_passed_over() {
        return;
    }
    let server = site_with_a_worker_that_kills_at_its_boot(PATIENT).start();
    break_the_worker(&server);
    until("PHP answers", || (server.get("/good.php").status == 200).then_some(()));
    // Without the worker that would kill the new generation.
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    expect_refusal(server.get("/bad.php"));
    std::fs::remove_file(server.root().join("broken")).unwrap();
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    let answer = until("it is tried", || Some(server.get("/bad.php")).filter(|answer| answer.status == 200));
    assert_eq!(answer.text(), "bad");
    server.stop();
}

#[test]
fn a_worker_that_has_its_engine_killed_while_it_boots_is_refused_alone() {
    if is_passed_over() {
        return;
    }
    // As the kernel does when memory runs out: nobody says who was why.
    let killer = "<?php if (file_exists(__DIR__ . '/broken')) { posix_kill(posix_getpid(), SIGKILL); sleep(60); } \
                  while (frankenphp_handle_request(fn () => print 'bad')) {}";
    let server = site_with_a_worker_that_kills_at_its_boot(PATIENT).file("bad.php", killer).start();
    break_the_worker(&server);
    // It may have booted beside the other, and is tried for itself then.
    until("the innocent one answers", || (server.get("/good.php").status == 200).then_some(()));
    assert_eq!(server.get("/").expect(200).text(), "ok");
    expect_refusal(server.get("/bad.php"));
    server.stop();
}

#[test]
fn threads_that_have_booted_before_serve_though_new_ones_kill() {
    if is_passed_over() {
        return;
    }
    let bad = format!(
        "<?php if (file_exists(__DIR__ . '/broken')) {{ {CRASH} }} while (frankenphp_handle_request(fn () => print 'bad')) {{}}"
    );
    let server = Setup::new()
        .admin("ADMIN")
        .php_options(
            "num_threads 6\n\t\tengines 2\n\t\tphp_ini ffi.enable true\n\t\tworker ROOT/bad.php 2\n\t\t\
             worker ROOT/good.php 2\n\t\tcircuit {\n\t\t\tpause 300ms\n\t\t}",
        )
        .file("bad.php", bad)
        .file("good.php", "<?php while (frankenphp_handle_request(fn () => print 'good')) {}")
        .file("index.php", "<?php echo 'ok';")
        .file("exit.php", format!("<?php {EXIT}"))
        .start();
    until("all threads are there", || {
        let threads = server.admin().threads();
        (threads.len() == 6 && threads.iter().all(|thread| thread.activity == "idle")).then_some(())
    });
    server.write("broken", "");
    assert_eq!(server.get("/exit.php").status, 502);
    server.wait_for_log("this worker kills the engine while it boots");
    let answers = keep_asking(&server, 2, "/bad.php", || {
        server.wait_for_log("\"pause\":\"600ms\"");
        assert_eq!(server.get("/good.php").expect(200).text(), "good");
        std::fs::remove_file(server.root().join("broken")).unwrap();
        server.wait_for_log("a circuit is closed: the worker has booted");
    });
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.text() == "bad"), "{answers:?}");
    let in_both = || {
        let threads = server.admin().threads();
        threads.iter().filter(|thread| thread.pool.ends_with("bad.php") && thread.activity == "idle").count()
    };
    until("it has all its threads again", || (in_both() == 2).then_some(()));
    server.stop();
}

#[test]
fn a_worker_that_kills_while_it_boots_gets_no_threads_by_hand() {
    if is_passed_over() {
        return;
    }
    let server = site_with_a_worker_that_kills_at_its_boot(PATIENT).start();
    break_the_worker(&server);
    let engine = until("PHP answers", || (server.get("/").status == 200).then(|| server.engine()));
    let path = format!("/regent/threads?count=1&worker={}", server.root().join("bad.php").display());
    let answer = server.admin().request("PUT", &path).send();
    assert!(answer.status >= 400 && answer.text().contains("its circuit is closed"), "{answer:?}");
    assert_eq!(server.engine(), engine);
    server.stop();
}
