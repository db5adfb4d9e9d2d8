//! Requests that are run once more when their engine dies: those that may be, once, and never the one that is to blame.
#![forbid(unsafe_code)]

use regent_tests::process::{is_alive, signal};
use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, php, until};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// Reads where nothing is.
const CRASH: &str = "FFI::cdef('size_t strlen(const char *s);')->strlen(FFI::cast('char *', 0));";
/// Says that it has run, in a file that outlives the engine.
const COUNT: &str = "file_put_contents(__DIR__ . '/' . basename(__FILE__) . '.runs', 'x', FILE_APPEND);";

/// A site with scripts that stop at a gate.
fn site(options: &str) -> Setup {
    Setup::new()
        .admin("ADMIN")
        .php_options(&format!(
            "num_threads 10\n\t\tmax_wait_time off\n\t\tphp_ini ffi.enable true\n\t\t{options}"
        ))
        .site("log {\n\t\toutput file DIRECTORY/access.log\n\t}\nphp_server")
        .file("index.php", format!("<?php {STOP_AT_GATE} echo 'ok ', file_get_contents('php://input');"))
        .file("plain.php", "<?php echo 'plain';")
}

fn kill_engine(server: &Server) {
    assert!(signal(server.engine(), Signal::KILL));
}

fn runs(server: &Server, script: &str) -> usize {
    fs::read(server.root().join(format!("{script}.runs"))).map_or(0, |marks| marks.len())
}

fn retries(server: &Server) -> f64 {
    let page = server.admin().get("/metrics").expect(200).text();
    let series = page.lines().filter(|line| line.starts_with("regent_retries_total{"));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn what_may_be_repeated_is_run_by_the_next_engine() {
    let setup = site("retry");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conns: Vec<_> = (0..10).map(|n| server.ask(&format!("/?{n}"))).collect();
    let visitors = gate.wait_for(10);
    kill_engine(&server);
    let again = gate.wait_for(10);
    let mut names: Vec<_> = again.iter().map(|visitor| visitor.name.clone()).collect();
    names.sort();
    assert_eq!(names, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    drop((visitors, again));
    conns.iter_mut().for_each(|conn| assert_eq!(conn.response().expect(200).text(), "ok "));
    assert_eq!(retries(&server), 10.0);
    let marked = || {
        let log = fs::read_to_string(server.directory().join("access.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("\"retried\":true")).count()
    };
    until("the access log says so", || (marked() == 10).then_some(()));
    server.stop();
}

#[test]
fn the_script_that_crashes_runs_once_and_what_ran_beside_it_again() {
    let setup = site("retry").file("crash.php", format!("<?php {COUNT} {STOP_AT_GATE} {CRASH}"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut crash = server.ask("/crash.php?crash");
    let guilty = gate.next();
    let mut beside: Vec<_> = (0..3).map(|_| server.ask("/?beside")).collect();
    let mut visitors = gate.wait_for(3);
    drop(guilty);
    crash.response().expect(502);
    // Where PHP runs in processes they have not noticed.
    if !php::is_in_processes() {
        visitors = gate.wait_for(3);
    }
    assert!(visitors.iter().all(|visitor| visitor.name == "beside"));
    drop(visitors);
    beside.iter_mut().for_each(|conn| assert_eq!(conn.response().expect(200).text(), "ok "));
    assert_eq!(runs(&server, "crash.php"), 1);
    server.stop();
}

#[test]
fn a_script_that_is_always_killed_from_outside_kills_two_engines_and_counts_for_its_circuit() {
    let circuit = "retry\n\t\tcircuit {\n\t\t\tfailures 1\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let setup = site(circuit)
        .file("kill.php", format!("<?php {COUNT} posix_kill(getmypid(), SIGKILL); usleep(10000000);"));
    let server = setup.start();
    server.get("/kill.php").expect(502);
    assert_eq!(runs(&server, "kill.php"), 2);
    if !php::is_in_processes() {
        server.get("/kill.php").expect(503);
        assert_eq!(runs(&server, "kill.php"), 2);
        assert_eq!(server.admin().metric("regent_engine_deaths_total", &[]), 2.0);
    }
    assert_eq!(server.get("/plain.php").expect(200).text(), "plain");
    server.stop();
}

#[test]
fn nothing_is_run_again_where_one_of_several_must_be_why() {
    if php::is_in_processes() {
        println!("SKIPPED: this PHP runs in processes, where it is always known");
        return;
    }
    let exit = format!("<?php {COUNT} {STOP_AT_GATE} FFI::cdef('void _exit(int status);')->_exit(0);");
    let setup = site("retry").file("exit.php", exit);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut guilty = server.ask("/exit.php");
    let visitor = gate.next();
    let mut beside = server.ask("/");
    let _beside = gate.next();
    drop(visitor);
    guilty.response().expect(502);
    beside.response().expect(502);
    assert_eq!((runs(&server, "exit.php"), retries(&server)), (1, 0.0));
    server.stop();
}

#[test]
fn what_runs_again_waits_no_longer_than_it_may() {
    let setup = site("retry").php_options("num_threads 1\n\t\tmax_wait_time 3s\n\t\tretry");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut first = server.ask("/?first");
    let _first = gate.next();
    // It ends by its time in the queue, not by the first one's on the thread.
    let mut waiting = server.ask("/?waiting");
    waiting.response().expect(503);
    kill_engine(&server);
    drop(gate.next());
    assert_eq!(first.response().expect(200).text(), "ok ");
    server.stop();
}

#[test]
fn the_process_of_a_request_that_is_killed_costs_nothing() {
    if !php::is_in_processes() {
        println!("SKIPPED: this PHP has threads");
        return;
    }
    let setup = site("retry").file(
        "pid.php",
        format!(
            "<?php {COUNT} file_put_contents(__DIR__ . '/pid', getmypid()); {STOP_AT_GATE} echo getmypid();"
        ),
    );
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut conn = server.ask("/pid.php");
    let _visitor = gate.next();
    let killed: u32 = server.wait_for_file("pid").parse().expect("a number");
    assert!(signal(killed, Signal::KILL));
    drop(gate.next());
    assert_ne!(conn.response().expect(200).text(), killed.to_string());
    assert_eq!((runs(&server, "pid.php"), retries(&server)), (2, 1.0));
    server.stop();
}

/// It may hang, and has had all the time that there is.
#[test]
#[ignore = "long: waits for half a minute until an engine that drains is killed"]
fn what_is_cut_off_while_its_engine_drains_is_not_run_again() {
    let slow = format!(
        "<?php {COUNT} file_put_contents(__DIR__ . '/started', '1'); set_time_limit(0); while (true) {{ sleep(1); }}"
    );
    let server = site("retry").file("slow.php", slow).start();
    let old = server.engine();
    let mut conn = server.ask("/slow.php");
    server.wait_for_file("started");
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    regent_tests::until_within(Duration::from_secs(300), "the old engine is killed", || {
        assert_eq!(server.get("/plain.php").expect(200).text(), "plain");
        regent_tests::pause(Duration::from_millis(100));
        (!is_alive(old)).then_some(())
    });
    conn.response().expect(502);
    assert_eq!((runs(&server, "slow.php"), retries(&server)), (1, 0.0));
    server.stop();
}
