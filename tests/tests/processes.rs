//! PHP in processes, as the distribution's is: each thread of lists and limits is a process. Nothing here holds for a
//! thread-safe PHP, with which these tests are passed over.
#![forbid(unsafe_code)]

use regent_tests::process::{children, is_alive, signal};
use regent_tests::{Response, Server, Setup, keep_asking, php, until};
use rustix::process::Signal;
use std::collections::BTreeSet;

const PID: &str = "<?php echo getmypid();";
const WORKER: &str = "<?php $n = 0; while (frankenphp_handle_request(function () use (&$n) { \
    if (isset($_GET['crash'])) { posix_kill(getmypid(), SIGSEGV); usleep(10000000); } \
    echo getmypid(), ' ', ++$n; })) {}";

fn is_passed_over() -> bool {
    if !php::is_in_processes() {
        println!("SKIPPED: this PHP has threads; REGENT_TEST_PHP=system says that it has not");
    }
    !php::is_in_processes()
}

/// The process that the others are forked from.
fn zygote(server: &Server) -> u32 {
    let engine = server.engine();
    until("the process that speaks with the server has one child", || match children(engine).as_slice() {
        [zygote] => Some(*zygote),
        _ => None,
    })
}

fn pids(server: &Server) -> BTreeSet<u32> {
    children(zygote(server)).into_iter().collect()
}

fn wait_for_processes(server: &Server, count: usize) -> BTreeSet<u32> {
    until("there are so many processes", || Some(pids(server)).filter(|pids| pids.len() == count))
}

#[test]
fn each_thread_is_a_process_with_the_same_opcache() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new()
        .php_options("num_threads 3\n\t\tmax_wait_time off\n\t\tphp_ini opcache.file_update_protection 0")
        .file("index.php", "<?php usleep(20000); echo getmypid(), ' ', opcache_get_status(false)['opcache_statistics']['num_cached_scripts'];")
        .start();
    let processes = wait_for_processes(&server, 3);
    server.get("/").expect(200);
    let answers = keep_asking(&server, 6, "/", || {
        (0..20).for_each(|_| drop(server.get("/").expect(200)));
    });
    let mut served = BTreeSet::new();
    for answer in answers {
        let text = answer.expect(200).text().to_owned();
        let (pid, scripts) = text.split_once(' ').expect("two numbers");
        assert_eq!(scripts, "1", "compiled once for all");
        served.insert(pid.parse().expect("a number"));
    }
    assert_eq!(served, processes);
    server.stop();
}

#[test]
fn a_crash_costs_its_request_and_nobody_else_s() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new()
        .php_options("num_threads 4\n\t\tmax_wait_time off")
        .file("index.php", "<?php usleep(2000); echo 'ok';")
        .file("segv.php", "<?php posix_kill(getmypid(), SIGSEGV); usleep(10000000);")
        .start();
    let engine = server.engine();
    let zygote = zygote(&server);
    let answers = keep_asking(&server, 8, "/", || {
        for _ in 0..25 {
            server.get("/segv.php").expect(502);
        }
    });
    for Response { status, body, .. } in &answers {
        assert_eq!((*status, body.as_slice()), (200, &b"ok"[..]));
    }
    wait_for_processes(&server, 4);
    assert_eq!((server.engine(), self::zygote(&server)), (engine, zygote));
    server.wait_for_log("/segv.php");
    server.stop();
}

#[test]
fn a_killed_process_of_a_worker_is_replaced_and_the_others_keep_their_state() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new()
        .php_options("num_threads 3\n\t\tmax_wait_time off\n\t\tworker ROOT/worker.php 2")
        .file("worker.php", WORKER)
        .start();
    let before = wait_for_processes(&server, 3);
    for _ in 0..5 {
        server.get("/worker.php?crash").expect(502);
        until("a worker answers", || Some(server.get("/worker.php")).filter(|answer| answer.status == 200));
    }
    let after = wait_for_processes(&server, 3);
    assert!(before.iter().any(|pid| after.contains(pid)), "the classic one at least");
    server.stop();
}

#[test]
fn the_end_of_the_zygote_is_the_end_of_the_engine() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new().file("index.php", PID).start();
    let (engine, zygote, processes) = (server.engine(), zygote(&server), wait_for_processes(&server, 2));
    assert!(signal(zygote, Signal::KILL));
    until("there is another engine", || server.engines().iter().any(|pid| *pid != engine).then_some(()));
    let answer = until("PHP answers", || Some(server.get("/")).filter(|answer| answer.status == 200));
    assert!(!processes.contains(&answer.text().parse().expect("a number")));
    until("the old processes are gone", || processes.iter().all(|pid| !is_alive(*pid)).then_some(()));
    server.stop();
}

#[test]
fn all_processes_end_with_the_one_that_speaks_with_the_server() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new().file("index.php", "<?php usleep(1000); echo 'ok';").start();
    let answers = keep_asking(&server, 8, "/", || {
        for _ in 0..5 {
            let (engine, processes) = (server.engine(), wait_for_processes(&server, 2));
            assert!(signal(engine, Signal::KILL));
            until("they are gone", || processes.iter().all(|pid| !is_alive(*pid)).then_some(()));
            until("there is another", || server.engines().iter().any(|pid| *pid != engine).then_some(()));
            until("PHP answers", || Some(server.get("/")).filter(|answer| answer.status == 200));
        }
    });
    let lost = answers.iter().filter(|answer| answer.status != 200).count();
    assert!(lost <= 5 * 2, "{lost} of {} requests were lost", answers.len());
    server.stop();
}

/// It would leave its place without anybody noticing.
#[test]
fn no_script_puts_another_program_in_its_place() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new()
        .file("exec.php", "<?php echo @pcntl_exec('/bin/sleep', ['infinity']) === false ? 'refused' : '';")
        .file(
            "child.php",
            "<?php if (($child = pcntl_fork()) === 0) { pcntl_exec('/bin/true'); } pcntl_waitpid($child, $status); \
             echo pcntl_wexitstatus($status);",
        )
        .start();
    assert_eq!(server.get("/exec.php").expect(200).text(), "refused");
    assert_eq!(server.get("/child.php").expect(200).text(), "0");
    server.wait_for_log("A script called pcntl_exec()");
    server.stop();
}

#[test]
fn a_process_is_renewed_as_a_whole_and_its_thread_keeps_its_figures() {
    if is_passed_over() {
        return;
    }
    let server = Setup::new()
        .php_options("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\tmax_requests 2")
        .admin("ADMIN")
        .file("index.php", PID)
        .start();
    let pids: Vec<String> = (0..6).map(|_| server.get("/").expect(200).text().to_owned()).collect();
    assert!(pids[0] == pids[1] && pids[2] == pids[3] && pids[4] == pids[5], "{pids:?}");
    assert!(pids[1] != pids[2] && pids[3] != pids[4], "{pids:?}");
    let threads = server.admin().threads();
    assert_eq!(threads.iter().map(|thread| (thread.index, thread.requests)).collect::<Vec<_>>(), [(0, 6)]);
    server.stop();
}
