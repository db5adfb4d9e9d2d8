//! Pools share the CPU, whatever the one of them is asked for.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Server, Setup, until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, available_parallelism};

/// A worker that computes, for some milliseconds.
const COMPUTES: &str = "<?php do { \
    $more = frankenphp_handle_request(function () { for ($i = 0, $x = 1; $i < 200000; $i++) { $x = $x * 7 % 1000003; } echo $x; }); \
    } while ($more);";

/// So many requests of the quiet pool are counted, after as many that let both pools find their sizes.
const QUIET: usize = 300;

/// Two workers that do the same; the numbers of threads are left to the server.
fn site() -> Server {
    Setup::new()
        .php_options(
            "worker {\n\t\t\tname flooded\n\t\t\tfile ROOT/flooded.php\n\t\t}\n\t\t\
             worker {\n\t\t\tname quiet\n\t\t\tfile ROOT/quiet.php\n\t\t}",
        )
        .file("flooded.php", COMPUTES)
        .file("quiet.php", COMPUTES)
        .start()
}

/// Asks again and again on one connection until it is over.
fn keep_asking<'scope>(
    scope: &'scope Scope<'scope, '_>,
    server: &'scope Server,
    path: &'scope str,
    answered: &'scope AtomicUsize,
    is_over: &'scope AtomicBool,
) {
    scope.spawn(move || {
        let mut conn: Conn = server.connect();
        while !is_over.load(Ordering::Relaxed) {
            conn.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            conn.response().expect(200);
            answered.fetch_add(1, Ordering::Relaxed);
        }
    });
}

#[test]
fn a_flooded_worker_leaves_another_its_part_of_the_cpu() {
    let server = site();
    let cores = available_parallelism().map_or(1, usize::from);
    let (flooded, quiet, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let (of_flooded, of_quiet) = std::thread::scope(|scope| {
        for _ in 0..16 * cores {
            keep_asking(scope, &server, "/flooded.php", &flooded, &is_over);
        }
        for _ in 0..cores {
            keep_asking(scope, &server, "/quiet.php", &quiet, &is_over);
        }
        let wait_for = |count| {
            until("the quiet worker answers", || (quiet.load(Ordering::Relaxed) >= count).then_some(()));
            (flooded.load(Ordering::Relaxed), quiet.load(Ordering::Relaxed))
        };
        let (before, after) = (wait_for(QUIET), wait_for(2 * QUIET));
        is_over.store(true, Ordering::Relaxed);
        (after.0 - before.0, after.1 - before.1)
    });
    println!("{of_flooded} of the flooded worker, {of_quiet} of the quiet one");
    // About as many threads of each want the CPU; a pool that could grow without bound would leave a fiftieth.
    assert!(of_flooded <= 8 * of_quiet, "{of_flooded} requests against {of_quiet}");
    server.stop();
}
