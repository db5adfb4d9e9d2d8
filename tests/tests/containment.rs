//! Engines that scripts have turned against the server: they are replaced, and the server is none the worse for it.
#![forbid(unsafe_code)]

use regent_tests::process::{self, is_alive, is_stopped, runs, signal};
use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, in_parallel, keep_asking, php, until};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Waits until another engine than this one is the only one, and PHP answers.
fn wait_for_another_engine(server: &Server, old: u32) {
    until("the old engine is gone", || (!is_alive(old)).then_some(()));
    until("PHP answers", || Some(server.get("/")).filter(|answer| answer.status == 200));
    assert_ne!(server.engine(), old);
}

/// A site whose scripts may do to the process what they like.
fn hostile_site() -> Setup {
    Setup::new()
        .php_options("num_threads 2\n\t\tmax_threads 2\n\t\tphp_ini ffi.enable true")
        .file("index.php", "<?php echo 'ok';")
}

/* ---- Engines that are none any more ----------------------------------------------------------------------------- */

#[test]
fn an_engine_that_has_become_another_program_is_replaced_though_nobody_waits() {
    if php::is_in_processes() {
        return; // they refuse it: tests/tests/processes.rs
    }
    let server = Setup::new()
        .file("index.php", "<?php echo 'ok';")
        .file("exec.php", "<?php pcntl_exec('/bin/sleep', ['infinity']);")
        .start();
    let old = server.engine();
    assert_eq!(server.get("/exec.php").status, 502);
    wait_for_another_engine(&server, old);
    server.wait_for_log("it has closed its control socket");
    server.stop();
}

/// A child that a script forked has the control socket too, which then stays open.
#[test]
fn an_engine_whose_child_holds_its_socket_is_missed_all_the_same() {
    if php::is_in_processes() {
        return; // they refuse it: tests/tests/processes.rs
    }
    const SCRIPT: &str = "<?php $child = pcntl_fork(); if ($child === 0) { sleep(600); exit; } \
        file_put_contents(__DIR__ . '/child', $child); pcntl_exec('/bin/sleep', ['infinity']);";
    let server = Setup::new().file("index.php", "<?php echo 'ok';").file("exec.php", SCRIPT).start();
    let old = server.engine();
    assert_eq!(server.get("/exec.php").status, 502);
    wait_for_another_engine(&server, old);
    server.wait_for_log("it hangs: it does not answer");
    let child = server.wait_for_file("child").parse().expect("a number");
    until("the child was killed with it", || (!is_alive(child)).then_some(()));
    server.stop();
}

#[test]
fn what_became_of_an_engine_dies_with_a_server_that_is_killed() {
    if php::is_in_processes() {
        return; // they refuse it: tests/tests/processes.rs
    }
    const SCRIPT: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
        while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } \
        pcntl_exec('/bin/sleep', ['infinity']);";
    let mut server = Setup::new().file("exec.php", SCRIPT).start();
    let engine = server.engine();
    let _conn = server.ask("/exec.php");
    server.wait_for_file("started");
    // So that it does not see to it itself.
    server.signal(Signal::STOP);
    until("the server has stopped", || is_stopped(server.pid()).then_some(()));
    server.write("go", "now");
    until("the engine has become another program", || runs(engine, "sleep").then_some(()));
    server.signal(Signal::KILL);
    server.wait();
    until("that program has ended", || (!is_alive(engine)).then_some(()));
}

#[test]
fn an_engine_that_was_stopped_is_replaced_though_nobody_waits() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    server.get("/").expect(200);
    let old = server.engine();
    assert!(signal(old, Signal::STOP));
    until("it was killed", || (!is_alive(old)).then_some(()));
    wait_for_another_engine(&server, old);
    server.stop();
}

/* ---- Engines that are only slow --------------------------------------------------------------------------------- */

#[test]
fn an_engine_whose_threads_all_compute_is_left_alone() {
    const BUSY: &str = "<?php $end = microtime(true) + 3; while (microtime(true) < $end); echo 'done';";
    let server = Setup::new()
        .php_options("num_threads 12\n\t\tmax_threads 12\n\t\tmax_wait_time off")
        .file("busy.php", BUSY)
        .file("index.php", "<?php echo 'ok';")
        .start();
    let engine = server.engine();
    in_parallel(24, |_| assert_eq!(server.get("/busy.php").expect(200).text(), "done"));
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn a_worker_that_takes_its_time_between_requests_is_left_alone() {
    const WORKER: &str = "<?php while (frankenphp_handle_request(fn () => print 'ok')) { sleep(3); }";
    let server = Setup::new().file("index.php", WORKER).php_options("worker ROOT/index.php 1").start();
    let engine = server.engine();
    for _ in 0..2 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    assert_eq!(server.engine(), engine);
    server.stop();
}

/* ---- The shared memory ------------------------------------------------------------------------------------------ */

/// Finds the shared memory as `include/regent_wire.h` describes it; `put($at, $byte, $count)` fills a part of it.
const MEMORY: &str = r#"<?php
$libc = FFI::cdef('void *memset(void *, int, size_t); uint32_t *memcpy(void *, const void *, size_t);');
foreach (file('/proc/self/maps') as $line) {
    if (str_contains($line, 'memfd:regent-wire')) { $base = hexdec(explode('-', $line)[0]); break; }
}
function at($offset) { global $libc, $base; return $libc->cast('char *', $base + $offset); }
function put($offset, $byte, $count) { global $libc; $libc->memset(at($offset), $byte, $count); }
$header = unpack('V7', FFI::string(at(8), 28));
[, $ios, $slots, $pools, $threads, $head, $request, $response] = [0, ...$header];
$up = fn ($n, $to) => intdiv($n + $to - 1, $to) * $to;
for ($capacity = 1; $capacity < $ios * $slots * 4; $capacity *= 2);
$pool0 = 4096;
$thread0 = $pool0 + $pools * 320;
$cells = $thread0 + $threads * 128 + $ios * 128 + $ios * $up(intdiv($slots, 8), 64);
$slot0 = $up($cells + $pools * $capacity * 8, 4096);
$slot_size = $up(512 + $head, 4096) + $request + $response;
"#;

/// What the log says, and how a script does it. Which of several damages is found first is chance; that each is found by
/// itself is shown by the tests of `regent_wire`.
const DAMAGES: [(&str, &str, &str); 7] = [
    ("queue", UNFIT, "while (true) { put($pool0, 0xFF, 128); usleep(100); }"),
    ("threads", UNFIT, "put($thread0 + 128, 0xFF, 128); sleep(600);"),
    (
        "states",
        UNFIT,
        "for ($i = 0; $i < $slots; $i++) { put($slot0 + $i * $slot_size, 0x77, 8); } sleep(600);",
    ),
    (
        "rings",
        UNFIT,
        "for ($i = 0; $i < $slots; $i++) { put($slot0 + $i * $slot_size + 72, 0x77, 8); } sleep(600);",
    ),
    // Threads that wait are never woken again.
    (
        "idle",
        "its idle threads do not take the requests that wait",
        "while (true) { put($pool0 + 192, 0, 128); usleep(100); }",
    ),
    ("cells", UNFIT, "while (true) { put($cells, 0xFF, $capacity * 8); usleep(100); }"),
    ("everything", UNFIT, "while (true) { put($pool0, random_int(0, 255), $slot0 - $pool0); usleep(100); }"),
];
const UNFIT: &str = "the engine is unfit";

#[test]
fn an_engine_that_damages_the_shared_memory_is_replaced() {
    let site = DAMAGES.iter().fold(hostile_site(), |site, (name, _, script)| {
        site.file(&format!("{name}.php"), format!("{MEMORY} {script}"))
    });
    let server = site.start();
    for (name, reason, _) in DAMAGES {
        let old = server.engine();
        let before = server.log().len();
        let mut damaging = server.ask(&format!("/{name}.php"));
        // Of a damage that only requests can meet there has to be one; and clients that give up soon, so that none waits
        // for long.
        let mut clients = VecDeque::new();
        until(&format!("the engine that damaged its memory ({name}) is gone"), || {
            clients.push_back(server.ask("/"));
            clients.drain(..clients.len().saturating_sub(20));
            (!is_alive(old)).then_some(())
        });
        drop(clients);
        damaging.response().expect(502);
        wait_for_another_engine(&server, old);
        let said = server.log()[before..].to_owned();
        assert!(said.contains(reason), "{name}: {said}");
    }
    server.stop();
}

/* ---- The control socket ----------------------------------------------------------------------------------------- */

const WRITE: &str = "<?php $libc = FFI::cdef('ssize_t write(int, const char *, size_t);'); \
    $say = fn ($text) => $libc->write(4, $text, strlen($text));";

/// Bytes that the server may take more than it had.
const MORE_MEMORY: u64 = 48 << 20;

fn private_memory(server: &Server) -> u64 {
    process::memory(server.pid()).expect("the server runs").private
}

#[test]
fn a_line_without_an_end_takes_no_memory_of_the_server() {
    let script = format!("{WRITE} $part = str_repeat('x', 1 << 20); while (true) {{ $say($part); }}");
    let server = hostile_site().file("endless.php", script).start();
    let (old, before) = (server.engine(), private_memory(&server));
    assert_eq!(server.get("/endless.php").status, 502);
    wait_for_another_engine(&server, old);
    server.wait_for_log("a line to its control socket that has no end");
    assert!(private_memory(&server) < before + MORE_MEMORY);
    server.stop();
}

#[test]
fn an_engine_that_talks_nonsense_is_replaced() {
    let script = format!("{WRITE} while (true) {{ $say(\"nonsense\\n\"); }}");
    let server = hostile_site().file("nonsense.php", script).start();
    let old = server.engine();
    assert_eq!(server.get("/nonsense.php").status, 502);
    wait_for_another_engine(&server, old);
    server.wait_for_log("what is no event to its control socket");
    server.stop();
}

#[test]
fn a_flood_of_events_keeps_nobody_from_anything() {
    let event = r#"{\"log\":{\"level\":3,\"message\":\"flood\"}}\n"#;
    let script = format!("{WRITE} $part = str_repeat(\"{event}\", 500); while (true) {{ $say($part); }}");
    let server = hostile_site().file("flood.php", script).file("style.css", "a {}").start();
    let (engine, before) = (server.engine(), private_memory(&server));
    let _flood = server.ask("/flood.php");
    server.wait_for_log("flood");
    let answers = keep_asking(&server, 2, "/", || {
        // The flood goes on all the time.
        for _ in 0..500 {
            assert_eq!(server.get("/style.css").expect(200).text(), "a {}");
            regent_tests::pause(Duration::from_millis(5));
        }
    });
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert!(private_memory(&server) < before + MORE_MEMORY);
    assert_eq!(server.engine(), engine);
    // Killed with the server: its script does not end.
    drop(server);
}

#[test]
fn a_script_that_logs_for_ever_holds_up_nobody_else() {
    const BEFORE: &str = "<?php while (true) { error_log('flood'); }";
    const WITHIN: &str = "<?php echo 'begun'; flush(); while (true) { error_log('flood'); }";
    let server = Setup::new()
        .php_options("num_threads 5\n\t\tmax_threads 5")
        .file("before.php", BEFORE)
        .file("within.php", WITHIN)
        .file("index.php", "<?php echo 'ok';")
        .file("style.css", "a {}")
        .start();
    let engine = server.engine();
    let _floods: Vec<_> =
        ["/before.php", "/within.php", "/before.php", "/within.php"].map(|flood| server.ask(flood)).into();
    server.wait_for_log("flood");
    for _ in 0..50 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
        assert_eq!(server.get("/style.css").expect(200).text(), "a {}");
    }
    assert_eq!(server.engine(), engine);
    drop(server);
}

#[test]
fn lines_that_a_worker_logs_in_a_loop_while_it_boots_are_dropped_and_counted() {
    const WORKER: &str = "<?php for ($i = 0; $i < 5000; $i++) { error_log('flood' . str_repeat('.', 10000)); } error_log('the end'); \
        sleep(1); error_log('afterwards'); while (frankenphp_handle_request(fn () => print 'ok')) {}";
    let server = Setup::new().file("index.php", WORKER).php_options("worker ROOT/index.php 1").start();
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.wait_for_log("afterwards");
    let log = server.log();
    // Half a megabyte a second is 50 of them; a machine that took a minute for the loop would still drop some.
    assert!(log.matches("flood").count() < 4_000);
    assert!(log.contains("lines were dropped here"), "their number is logged");
    server.stop();
}

/* ---- What PHP can reach ----------------------------------------------------------------------------------------- */

/// The user is the same, so only what the kernel keeps from everybody else is out of reach; and who may trace any process
/// can do all, so nobody is given that here.
#[test]
fn scripts_cannot_reach_the_memory_of_the_server() {
    const SCRIPT: &str = "<?php $server = \"/proc/$_GET[pid]\"; \
        foreach (['mem', 'environ', 'maps'] as $part) { echo $part, @fopen(\"$server/$part\", 'r') ? ' open ' : ' closed '; } \
        echo 'fd', @readlink(\"$server/fd/1\") ? ' open' : ' closed';";
    let site = || {
        let powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        let is_root = rustix::process::geteuid().is_root();
        Setup::new().file("index.php", SCRIPT).launcher(if is_root { &powerless } else { &[] })
    };
    let server = site().env("REGENT_DUMPABLE", "0").start();
    let target = format!("/?pid={}", server.pid());
    assert_eq!(server.get(&target).expect(200).text(), "mem closed environ closed maps closed fd closed");
    server.stop();
    let server = site().env("REGENT_DUMPABLE", "1").start();
    let target = format!("/?pid={}", server.pid());
    assert_eq!(server.get(&target).expect(200).text(), "mem open environ open maps open fd open");
    server.wait_for_log("scripts can read and change the memory of this process");
    server.stop();
}

/// systemd's `AmbientCapabilities=`, which every program inherits, and keeps when it becomes another user.
#[test]
fn scripts_do_not_get_the_servers_rights() {
    const SCRIPT: &str = "<?php $sets = fn ($status) => preg_match_all('/^Cap(?:Inh|Prm|Eff|Amb):\\s*(\\w+)/m', $status, $found) \
        ? implode(' ', array_unique($found[1])) : 'none'; \
        echo $sets(file_get_contents('/proc/thread-self/status')), ' ', $sets(shell_exec('cat /proc/self/status'));";
    let words = [
        "setpriv",
        "--reuid=65534",
        "--inh-caps=-all,+net_bind_service",
        "--ambient-caps=-all,+net_bind_service",
    ];
    let works = Command::new(words[0]).args(&words[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        println!("SKIPPED: setpriv (util-linux) cannot give the right here");
        return;
    }
    let server = Setup::new().for_every_user().file("index.php", SCRIPT).launcher(&words).start();
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    assert!(status.contains("CapPrm:\t0000000000000400"), "the server itself has it: {status}");
    assert_eq!(server.get("/").expect(200).text(), "0000000000000000 0000000000000000");
    server.stop();
}

#[test]
fn scripts_inherit_no_descriptor_of_the_server() {
    const SCRIPT: &str = "<?php foreach (scandir('/proc/self/fd') as $fd) { \
        if (is_numeric($fd)) { echo $fd, ' ', @readlink(\"/proc/self/fd/$fd\"), \"\\n\"; } }";
    let server = Setup::new()
        .admin("unix//DIRECTORY/admin.sock")
        .global_options("log {\n\t\toutput file DIRECTORY/server.log\n\t}")
        .site("log {\n\t\toutput file DIRECTORY/access.log\n\t}\n\tphp_server")
        .file("index.php", SCRIPT)
        .start();
    let list = server.get("/").expect(200).text().to_owned();
    let mut sockets: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| name.starts_with("socket:"))
        .map(|(_, name)| name)
        .collect();
    sockets.dedup();
    // Processes have another one, to the process that speaks with the server.
    let own = 1 + usize::from(php::is_in_processes());
    assert_eq!(sockets.len(), own, "the control socket, and no other:\n{list}");
    assert_eq!(list.matches("memfd:regent-wire").count(), 1, "{list}");
    for name in ["server.log", "access.log", "admin", "epoll"] {
        assert!(!list.contains(name), "{name}:\n{list}");
    }
    server.stop();
}

/* ---- What the server keeps of engines --------------------------------------------------------------------------- */

fn open_thread_files(server: &Server) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("the server runs");
    let targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    targets.filter(|target| target.starts_with("/proc") && target.ends_with("stat")).count()
}

#[test]
fn descriptors_of_threads_that_have_ended_are_closed() {
    const THREADS: usize = 24;
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 2\n\t\tmax_threads 40\n\t\tmax_idle_time 200ms")
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    for _ in 0..3 {
        let conns: Vec<_> = (0..THREADS).map(|number| server.ask(&format!("/gated.php?{number}"))).collect();
        let visitors = gate.wait_for(THREADS);
        until("the server looks at the threads", || (open_thread_files(&server) >= THREADS).then_some(()));
        drop(visitors);
        for mut conn in conns {
            conn.response().expect(200);
        }
        server.admin().wait_for_size("classic", 2);
        until("their files are closed", || (open_thread_files(&server) <= 2).then_some(()));
    }
    server.stop();
}
