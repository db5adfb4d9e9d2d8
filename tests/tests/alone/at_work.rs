//! How many threads of a pool are at work at once while requests wait.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, keep_asking, until};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const THREADS: usize = 6;
/// Successive looks by which a state is told from an accident.
const LOOKS: usize = 15;

/// A pool of more threads than the server has CPUs, which is one.
fn on_one_cpu() -> Server {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(&format!("num_threads {THREADS}\n\t\tmax_wait_time off"))
        .site("php_server")
        .file(
            "computes.php",
            "<?php $end = hrtime(true) + 2_000_000; while (hrtime(true) < $end) { } echo 'ok';",
        )
        .file("waits.php", "<?php usleep(20_000); echo 'ok';");
    let all = sched_getaffinity(None).expect("this thread's CPUs");
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("a CPU");
    let mut one = CpuSet::new();
    one.set(first);
    // The server inherits what this thread has.
    sched_setaffinity(None, &one).expect("one of its own CPUs");
    let server = setup.start();
    sched_setaffinity(None, &all).expect("its own CPUs");
    until("PHP serves", || (server.admin().get("/regent/ready").status == 200).then_some(()));
    server
}

fn at_work(server: &Server) -> usize {
    server.admin().busy_threads().len()
}

/// Ends when so many successive looks are as they should be.
fn steadily(server: &Server, what: &str, is_so: impl Fn(usize) -> bool) {
    until(what, || (0..LOOKS).all(|_| is_so(at_work(server))).then_some(()));
}

#[test]
fn of_requests_that_compute_as_many_run_as_there_are_cpus() {
    let server = on_one_cpu();
    keep_asking(&server, 2 * THREADS, "/computes.php", || {
        steadily(&server, "one at work", |threads| threads <= 1);
    });
    server.stop();
}

#[test]
fn requests_that_wait_for_something_else_have_all_threads() {
    let server = on_one_cpu();
    keep_asking(&server, 2 * THREADS, "/computes.php", || {
        steadily(&server, "one at work", |threads| threads <= 1);
    });
    keep_asking(&server, 2 * THREADS, "/waits.php", || {
        steadily(&server, "all at work", |threads| threads >= THREADS - 1);
    });
    keep_asking(&server, 2 * THREADS, "/computes.php", || {
        steadily(&server, "one at work again", |threads| threads <= 1);
    });
    server.stop();
}
