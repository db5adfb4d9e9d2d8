//! PHP in several processes that take from the same queue: the death of one costs what ran in it, and nobody else notices.
#![forbid(unsafe_code)]

use regent_tests::process::{is_stopped, signal};
use regent_tests::{Conn, Gate, STOP_AT_GATE, Server, Setup, Thread, keep_asking, php, until};
use rustix::process::Signal;
use std::collections::BTreeSet;

/// Reads where nothing is.
const CRASH: &str = "FFI::cdef('size_t strlen(const char *s);')->strlen(FFI::cast('char *', 0));";

/// Eight threads in two processes, and a script that says at the gate in which of them it runs.
fn site(options: &str) -> Setup {
    let gate =
        STOP_AT_GATE.replace("$_SERVER['QUERY_STRING']", "$_SERVER['QUERY_STRING'] . ' ' . posix_getpid()");
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!(
            "num_threads 8\n\t\tengines 2\n\t\tmax_wait_time off\n\t\tphp_ini ffi.enable true\n\t\t{options}"
        ))
        .file("index.php", format!("<?php {gate} echo 'ok';"))
        .file("plain.php", "<?php echo posix_getpid();")
        .file("crash.php", format!("<?php {gate} {CRASH}"))
}

fn is_passed_over() -> bool {
    if php::is_in_processes() {
        println!("SKIPPED: this PHP runs in processes");
    }
    php::is_in_processes()
}

fn engines(server: &Server) -> BTreeSet<u32> {
    until("there are two processes", || {
        let engines: BTreeSet<u32> = server.engines().into_iter().collect();
        (engines.len() == 2).then_some(engines)
    })
}

/// Which request came to the gate, and the process that it runs in.
fn parts(name: &str) -> (usize, u32) {
    let (number, pid) = name.split_once(' ').expect("two words");
    (number.parse().expect("a number"), pid.parse().expect("a pid"))
}

fn ask_all(server: &Server) -> Vec<Conn> {
    (0..8).map(|number| server.ask(&format!("/?{number}"))).collect()
}

/// All threads are there.
fn wait_for_all_threads(server: &Server) {
    until("all threads are there", || {
        let threads = server.admin().threads();
        let is_there = |thread: &Thread| ["idle", "busy"].contains(&thread.activity.as_str());
        (threads.len() == 8 && threads.iter().all(is_there)).then_some(())
    });
}

#[test]
fn the_death_of_one_process_costs_only_what_ran_in_it() {
    if is_passed_over() {
        return;
    }
    let setup = site("");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let before = engines(&server);
    let mut conns = ask_all(&server);
    let visitors = gate.wait_for(8);
    let killed = *before.first().expect("there are two");
    let of = |pid: u32| visitors.iter().map(|of| parts(&of.name)).filter(|(_, of)| *of == pid).count();
    assert!(before.iter().all(|pid| of(*pid) == 4), "{before:?}");
    assert!(signal(killed, Signal::KILL));
    for (number, pid) in visitors.iter().map(|of| parts(&of.name)) {
        if pid == killed {
            conns[number].response().expect(502);
        }
    }
    // All threads of the other process are still busy.
    let served: u32 = server.get("/plain.php").expect(200).text().parse().expect("a pid");
    assert!(!before.contains(&served), "by the process that takes its place");
    let survivors: Vec<(usize, u32)> = visitors.iter().map(|of| parts(&of.name)).collect();
    drop(visitors);
    for (number, _) in survivors.into_iter().filter(|(_, pid)| *pid != killed) {
        assert_eq!(conns[number].response().expect(200).text(), "ok");
    }
    wait_for_all_threads(&server);
    let after = engines(&server);
    assert_eq!(after.intersection(&before).count(), 1);
    assert_eq!(server.admin().metric("regent_generations_total", &[]), 1.0, "the queue has never stopped");
    server.stop();
}

#[test]
fn what_ran_in_the_dead_process_is_run_again_by_the_other_if_it_may_be() {
    if is_passed_over() {
        return;
    }
    let setup = site("retry");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conns = ask_all(&server);
    let visitors = gate.wait_for(8);
    let (_, killed) = parts(&visitors[0].name);
    assert!(signal(killed, Signal::KILL));
    let again = gate.wait_for(4);
    assert!(again.iter().all(|of| parts(&of.name).1 != killed));
    drop((visitors, again));
    conns.iter_mut().for_each(|conn| assert_eq!(conn.response().expect(200).text(), "ok"));
    server.stop();
}

#[test]
fn a_crash_is_blamed_on_its_request_and_opens_its_circuit() {
    if is_passed_over() {
        return;
    }
    let setup = site("retry\n\t\tcircuit {\n\t\t\tfailures 2\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}");
    let gate = Gate::of(&setup);
    let server = setup.start();
    for _ in 0..2 {
        let mut crash = server.ask("/crash.php?0");
        drop(gate.next());
        crash.response().expect(502);
        wait_for_all_threads(&server);
    }
    server.get("/crash.php?0").expect(503);
    server.get("/plain.php").expect(200);
    assert_eq!(server.admin().metric("regent_engine_deaths_total", &[]), 2.0);
    server.stop();
}

#[test]
fn a_process_that_is_stopped_is_replaced_alone() {
    if is_passed_over() {
        return;
    }
    let server = site("").start();
    let before = engines(&server);
    let stopped = *before.first().expect("there are two");
    assert!(signal(stopped, Signal::STOP));
    until("it has stopped", || is_stopped(stopped).then_some(()));
    let after = until("it is replaced", || {
        let engines: BTreeSet<u32> = server.engines().into_iter().collect();
        (engines.len() == 2 && !engines.contains(&stopped)).then_some(engines)
    });
    assert_eq!(after.intersection(&before).count(), 1, "the other goes on");
    server.get("/plain.php").expect(200);
    wait_for_all_threads(&server);
    server.stop();
}

#[test]
fn deaths_under_load_cost_what_runs_and_a_restart_nothing() {
    if is_passed_over() {
        return;
    }
    let server = site("").file("index.php", "<?php usleep(2000); echo 'ok';").start();
    let before = engines(&server);
    let answers = keep_asking(&server, 8, "/", || {
        server.admin().request("POST", "/frankenphp/workers/restart").send().expect(200);
        until("both are others", || engines(&server).is_disjoint(&before).then_some(()));
    });
    assert!(answers.iter().all(|answer| answer.status == 200));
    let answers = keep_asking(&server, 8, "/", || {
        for _ in 0..4 {
            let killed = *engines(&server).first().expect("there are two");
            assert!(signal(killed, Signal::KILL));
            until("another is there", || (!engines(&server).contains(&killed)).then_some(()));
            wait_for_all_threads(&server);
        }
    });
    let lost = answers.iter().filter(|answer| answer.status == 502).count();
    assert!(answers.iter().all(|answer| [200, 502].contains(&answer.status)));
    assert!(lost <= 4 * 4, "{lost} of {}", answers.len());
    server.stop();
}

#[test]
fn memory_that_was_damaged_costs_all_of_them() {
    if is_passed_over() {
        return;
    }
    // Head and tail of the first pool's queue, which lie behind the first page.
    let damage = "<?php $libc = FFI::cdef('void *memset(void *, int, size_t);'); \
        foreach (file('/proc/self/maps') as $line) { \
            if (str_contains($line, 'memfd:regent-wire')) { $base = hexdec(explode('-', $line)[0]); break; } \
        } \
        while (true) { $libc->memset($libc->cast('char *', $base + 4096), 0xFF, 128); usleep(100); }";
    let setup = site("retry").file("damage.php", damage);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let before = engines(&server);
    let mut beside = server.ask("/?0");
    let _visitor = gate.next();
    server.get("/damage.php").expect(502);
    beside.response().expect(502);
    until("all are others", || engines(&server).is_disjoint(&before).then_some(()));
    server.wait_for_log("it has damaged the shared memory");
    server.get("/plain.php").expect(200);
    wait_for_all_threads(&server);
    server.stop();
}

#[test]
fn what_the_threads_of_all_processes_are_at_is_seen() {
    if is_passed_over() {
        return;
    }
    let setup = site("");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conns: Vec<_> = (0..8).map(|n| server.ask(&format!("/index.php/{n}?{n}"))).collect();
    let visitors = gate.wait_for(8);
    let profile = server.admin().get("/regent/profile?format=json&seconds=1&hertz=100").expect(200).json();
    let paths: BTreeSet<&str> =
        profile["paths"].as_array().expect("a list").iter().filter_map(|path| path.as_str()).collect();
    assert_eq!(paths.len(), 8, "{paths:?}");
    for thread in server.admin().busy_threads() {
        let stack = server.admin().get(&format!("/regent/threads/stack?index={}", thread.index));
        assert!(stack.expect(200).text().contains("fgets"), "thread {}", thread.index);
    }
    drop(visitors);
    conns.iter_mut().for_each(|conn| assert_eq!(conn.response().expect(200).text(), "ok"));
    server.stop();
}
