//! What a script does to its process does not reach the requests beside it, or the next one.
#![forbid(unsafe_code)]

use regent_tests::process::signal;
use regent_tests::{Conn, Response, Server, Setup, until};
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// Tells the test that it has come so far, and goes on when the file `go` is there.
const WAIT: &str =
    "file_put_contents(__DIR__ . '/waits', '1'); while (!file_exists(__DIR__ . '/go')) { usleep(1000); }";

/// Asks for `first`, which waits as above, then for `other`, and lets the first one end: both answers.
fn beside(server: &Server, first: &str, other: &str) -> (Response, Response) {
    let mut conn: Conn = server.ask(first);
    server.wait_for_file("waits");
    let other = server.get(other);
    server.write("go", "1");
    (conn.response(), other)
}

#[test]
fn a_script_s_signals_do_not_end_the_engine() {
    let numbers = "[SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGRTMIN, SIGRTMAX - 2, SIGRTMAX]";
    let script = format!(
        "<?php foreach ({numbers} as $number) {{ posix_kill(getmypid(), $number); exec(\"kill -$number \\$PPID\"); }}
         pcntl_alarm(1); usleep(1300000); echo 'ends';"
    );
    let server = Setup::new().file("index.php", "<?php echo 'ok';").file("signals.php", script).start();
    let engine = server.engine();
    let mut conn = server.ask("/signals.php");
    for _ in 0..20 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    assert_eq!(conn.response().expect(200).text(), "ends");
    assert!(signal(engine, Signal::TERM));
    server.wait_for_log("Signal 15 (Terminated) was sent to the PHP engine");
    server.get("/").expect(200);
    assert_eq!(server.engine(), engine, "the engine lives on");
    assert_eq!(server.log().matches("Signal 10 (").count(), 1, "said once");
    server.stop();
}

#[test]
fn handlers_of_two_requests_do_not_mix() {
    let handler =
        "pcntl_async_signals(true); $got = 0; pcntl_signal(SIGUSR1, function () use (&$got) { $got++; });";
    let send = "posix_kill(getmypid(), SIGUSR1);";
    let server = Setup::new()
        .file("waits.php", format!("<?php {handler} {send} {WAIT} echo $got;"))
        .file("index.php", format!("<?php {handler} {send} {send} {send} echo $got;"))
        .file("none.php", format!("<?php {send} echo json_encode(pcntl_signal_get_handler(SIGUSR1));"))
        .start();
    let (first, other) = beside(&server, "/waits.php", "/");
    assert_eq!((first.expect(200).text(), other.expect(200).text()), ("1".into(), "3".into()));
    for _ in 0..4 {
        assert_eq!(server.get("/none.php").expect(200).text(), "0");
    }
    server.stop();
}

#[test]
fn a_child_s_signal_reaches_the_script_that_waits_for_it() {
    let script = "<?php pcntl_async_signals(true); $got = null; pcntl_signal(SIGUSR2, function ($number) use (&$got) { $got = $number; });
        exec('kill -USR2 $PPID'); for ($i = 0; $i < 1000 && $got === null; $i++) { usleep(10000); } echo $got;";
    let server = Setup::new().file("index.php", script).start();
    for _ in 0..3 {
        assert_eq!(server.get("/").expect(200).text(), "12");
    }
    server.stop();
}

#[test]
fn a_umask_does_not_show_in_the_files_of_others() {
    let make = "$file = tempnam(__DIR__, 'f'); unlink($file); touch($file); $mode = fileperms($file) & 0777; unlink($file);";
    let server = Setup::new()
        .file("waits.php", format!("<?php umask(0); {make} {WAIT} printf('%o', $mode);"))
        .file("index.php", format!("<?php {make} printf('%o', $mode);"))
        .start();
    let before = server.get("/").expect(200).text();
    let (first, other) = beside(&server, "/waits.php", "/");
    assert_eq!(first.expect(200).text(), "666");
    assert_eq!(other.expect(200).text(), before);
    for _ in 0..4 {
        assert_eq!(server.get("/").expect(200).text(), before);
    }
    server.stop();
}

#[test]
fn a_locale_does_not_show_in_the_numbers_of_others() {
    let locales = tempfile::tempdir().unwrap();
    let made = Command::new("localedef")
        .args(["--no-archive", "-i", "de_DE", "-f", "UTF-8"])
        .arg(locales.path().join("de_DE.UTF-8"))
        .output();
    if made.is_err() || !locales.path().join("de_DE.UTF-8/LC_NUMERIC").is_file() {
        println!("skipped: localedef cannot make de_DE.UTF-8 here (Debian: packages libc-bin and locales)");
        return;
    }
    let number = "sprintf('%.1f', 1.5), ' ', localeconv()['decimal_point']";
    let server = Setup::new()
        .env("LOCPATH", &locales.path().display().to_string())
        .file(
            "waits.php",
            format!("<?php $set = setlocale(LC_ALL, 'de_DE.UTF-8'); {WAIT} echo $set, ' ', {number};"),
        )
        .file("index.php", format!("<?php echo setlocale(LC_NUMERIC, 0), ' ', {number};"))
        .start();
    let (first, other) = beside(&server, "/waits.php", "/");
    assert_eq!(first.expect(200).text(), "de_DE.UTF-8 1,5 ,");
    assert_eq!(other.expect(200).text(), "C 1.5 .");
    for _ in 0..4 {
        assert_eq!(server.get("/").expect(200).text(), "C 1.5 .");
    }
    server.stop();
}

#[test]
fn ignoring_sigchld_leaves_others_the_status_of_their_children() {
    let server = Setup::new()
        .file(
            "waits.php",
            format!(
                "<?php pcntl_signal(SIGCHLD, SIG_IGN); {WAIT} exec('exit 3', $lines, $code); echo $code;"
            ),
        )
        .file(
            "index.php",
            "<?php $p = proc_open(['sh', '-c', 'exit 7'], [], $pipes); usleep(50000); echo proc_close($p);",
        )
        .start();
    let (first, other) = beside(&server, "/waits.php", "/");
    assert_eq!((first.expect(200).text(), other.expect(200).text()), ("3".into(), "7".into()));
    assert_eq!(server.get("/").expect(200).text(), "7");
    server.stop();
}

const COUNT_CHILDREN: &str = "<?php $children = 0; foreach (glob('/proc/[0-9]*/stat') as $file) {
    $fields = explode(' ', substr(strrchr(@file_get_contents($file) ?: '', ')'), 2));
    $children += ($fields[1] ?? null) == getmypid(); } echo $children;";

#[test]
fn children_whose_status_nobody_wants_do_not_pile_up() {
    let fork = "<?php pcntl_signal(SIGCHLD, SIG_IGN); for ($i = 0; $i < 5; $i++) { if (pcntl_fork() === 0) { exit(0); } }";
    let server = Setup::new()
        .php_options("num_threads 1")
        .file("fork.php", fork)
        .file("keep.php", "<?php for ($i = 0; $i < 5; $i++) { if (pcntl_fork() === 0) { exit(0); } }")
        .file("index.php", COUNT_CHILDREN)
        .start();
    for _ in 0..3 {
        server.get("/fork.php").expect(200);
    }
    until("the children are gone", || (server.get("/").expect(200).text() == "0").then_some(()));
    // One that has not ignored them may still ask.
    server.get("/keep.php").expect(200);
    assert_eq!(server.get("/").expect(200).text(), "5");
    server.stop();
}

/// The worker's script runs on: its children are collected after its requests.
#[test]
fn children_of_a_worker_that_ignores_them_piled_up_until_its_script_ended() {
    let worker = |boot: &str, request: &str| {
        format!(
            "<?php {boot} $handler = function () {{ {request}
                for ($i = 0; $i < ($_GET['children'] ?? 0); $i++) {{ if (pcntl_fork() === 0) {{ exit(0); }} }}
            }};
            while (frankenphp_handle_request($handler)) {{ }}"
        )
    };
    let ignore = "pcntl_signal(SIGCHLD, SIG_IGN);";
    for script in [worker(ignore, ""), worker("", ignore)] {
        let server = Setup::new()
            .php_options("num_threads 2\n\t\tworker ROOT/worker.php 1")
            .file("worker.php", script)
            .file("index.php", COUNT_CHILDREN)
            .start();
        server.get("/worker.php").expect(200);
        for _ in 0..3 {
            server.get("/worker.php?children=5").expect(200);
        }
        until("the children are gone", || {
            server.get("/worker.php").expect(200);
            (server.get("/").expect(200).text() == "0").then_some(())
        });
        server.stop();
    }
}

/// Whether this process, and with it the server, may raise a priority (CAP_SYS_NICE, capabilities(7)).
fn may_raise_priorities() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap() & (1 << 23) != 0
}

fn priority_site() -> Setup {
    Setup::new()
        .php_options("num_threads 1")
        .file("nice.php", "<?php proc_nice(4); echo pcntl_getpriority();")
        .file("index.php", "<?php echo pcntl_getpriority();")
}

#[test]
fn a_lowered_priority_ends_with_its_request() {
    let server = priority_site().start();
    let engine = server.engine();
    let before: i32 = server.get("/").expect(200).text().parse().unwrap();
    for _ in 0..3 {
        assert_eq!(server.get("/nice.php").expect(200).text(), (before + 4).to_string());
        assert_eq!(server.get("/").expect(200).text(), before.to_string());
    }
    assert_eq!(server.engine(), engine);
    server.stop();
}

/// `None` if the server cannot be started without the privilege.
fn without_privilege(setup: Setup) -> Option<Setup> {
    if !may_raise_priorities() {
        return Some(setup);
    }
    let words = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"];
    let works = Command::new(words[0]).args(&words[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        println!("skipped: setpriv (util-linux) cannot take the privilege away here");
        return None;
    }
    Some(setup.launcher(&words))
}

/// Without the privilege the thread cannot go back: another one takes its place.
#[test]
fn a_priority_that_cannot_be_raised_again_costs_the_thread() {
    let Some(setup) = without_privilege(priority_site()) else { return };
    let server = setup.start();
    let engine = server.engine();
    let before: i32 = server.get("/").expect(200).text().parse().unwrap();
    for _ in 0..3 {
        assert_eq!(server.get("/nice.php").expect(200).text(), (before + 4).to_string());
        assert_eq!(server.get("/").expect(200).text(), before.to_string());
    }
    assert_eq!(server.engine(), engine, "only the thread is replaced");
    server.stop();
}

#[test]
fn a_worker_that_lowers_its_priority_and_does_not_boot_was_never_given_up() {
    let site = Setup::new()
        .php_options(
            "num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t\tmax_consecutive_failures 2\n\t\t}",
        )
        .file("worker.php", "<?php file_put_contents(__DIR__ . '/boots', '.', FILE_APPEND); proc_nice(1); throw new Exception('no');")
        .file("index.php", "<?php echo strlen(file_get_contents(__DIR__ . '/boots'));");
    let Some(setup) = without_privilege(site) else { return };
    let server = setup.start();
    server.wait_for_log("the worker script failed too often");
    until("requests are refused", || (server.get("/worker.php").status == 503).then_some(()));
    assert_eq!(server.get("/").expect(200).text(), "2");
    server.stop();
}

#[test]
fn identities_and_limits_of_the_process_stay() {
    let change = "<?php echo json_encode([posix_seteuid(65534), posix_setuid(65534), posix_setgid(65534), \
                  posix_setrlimit(POSIX_RLIMIT_NOFILE, 3, 3), posix_strerror(posix_get_last_error())]);";
    let server = Setup::new()
        .file("change.php", change)
        .file("index.php", "<?php echo json_encode([posix_getuid(), posix_geteuid(), posix_getrlimit()]);")
        .start();
    let before = server.get("/").expect(200).text();
    let refused = server.get("/change.php").expect(200).text();
    // As another user than root the server is refused by the kernel in the same way.
    assert_eq!(refused, r#"[false,false,false,false,"Operation not permitted"]"#);
    for _ in 0..4 {
        assert_eq!(server.get("/").expect(200).text(), before);
    }
    server.wait_for_log("A script called posix_setrlimit()");
    server.stop();
}

#[test]
fn a_worker_s_request_leaves_the_worker_as_it_was() {
    let worker = "<?php umask(0027); mb_regex_set_options('ix'); setlocale(LC_CTYPE, 'C');
        pcntl_async_signals(true); pcntl_signal(SIGUSR1, fn () => $GLOBALS['got'][] = 'boot');
        $handler = function () {
            $GLOBALS['got'] = [];
            posix_kill(getmypid(), SIGUSR1);
            posix_kill(getmypid(), SIGUSR2);
            printf('%03o %s %s %s', umask(), mb_regex_set_options(), setlocale(LC_CTYPE, 0), implode($GLOBALS['got']));
            if (isset($_GET['change'])) {
                umask(0); mb_regex_set_options('m'); setlocale(LC_ALL, 'C.UTF-8'); pcntl_alarm(1);
                pcntl_signal(SIGUSR1, fn () => $GLOBALS['got'][] = 'request');
                pcntl_signal(SIGUSR2, fn () => $GLOBALS['got'][] = 'request');
            }
        };
        while (frankenphp_handle_request($handler)) { }";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tworker ROOT/index.php 1")
        .file("index.php", worker)
        .start();
    let engine = server.engine();
    let boot =
        until("the worker answers", || Some(server.get("/")).filter(|answer| answer.status == 200)).text();
    assert_eq!(boot, "027 ixr C boot");
    for _ in 0..3 {
        assert_eq!(server.get("/?change").expect(200).text(), boot);
        assert_eq!(server.get("/").expect(200).text(), boot);
    }
    assert_eq!(server.engine(), engine);
    server.stop();
}

/// Whether the kernel may give the process huge pages (Linux 5.0: proc_pid_status(5), `THP_enabled`).
fn may_have_huge_pages(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is ours");
    let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).expect("a Linux since 5.0");
    line.trim() == "1"
}

#[test]
fn the_server_has_no_huge_pages_and_php_has_what_the_machine_gives() {
    if !fs::exists("/sys/kernel/mm/transparent_hugepage").expect("/sys can be read") {
        println!("SKIPPED: huge pages, which this kernel does not have");
        return;
    }
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    server.get("/").expect(200);
    let engine = server.engine();
    // It takes them back as soon as it runs.
    until("PHP may have them", || may_have_huge_pages(engine).then_some(()));
    assert!(!may_have_huge_pages(server.pid()));
    server.stop();
}
