//! `regent profile`: which functions of PHP the threads are in, seen for a while and without stopping them.
#![forbid(unsafe_code)]

use regent_tests::process::signal;
use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, in_parallel, php, regent_command, until};
use rustix::process::Signal;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Three quarters of its time it waits, and one it computes.
const MIXED: &str = "<?php
    class Shop {
        static function waits() { usleep(30_000); }
        static function computes() { $end = hrtime(true) + 10_000_000; while (hrtime(true) < $end) { md5('x'); } }
    }
    function page() { Shop::waits(); Shop::computes(); }
    page(); echo 'done';";

/// Is never in the same function for long.
const HASTY: &str = "<?php
    class Hasty { static function call($depth) { return $depth > 0 ? self::call($depth - 1) : strlen('x'); } }
    function page() { for ($i = 0; $i < 20_000; $i++) { array_map('Hasty::call', [1, 5, $i % 20]); } }
    page(); echo 'done';";

/// The answer of this call, while clients ask for these paths one after the other.
fn during<T: Send>(server: &Server, paths: &[&str], call: impl FnOnce() -> T + Send) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for path in paths {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    server.get(path).expect(200);
                }
            });
        }
        let answer = panic::catch_unwind(AssertUnwindSafe(call));
        is_over.store(true, Ordering::Relaxed);
        answer.unwrap_or_else(|reason| panic::resume_unwind(reason))
    })
}

fn profile(server: &Server, query: &str) -> serde_json::Value {
    server.admin().get(&format!("/regent/profile?format=json&{query}")).expect(200).json()
}

/// The first profile that has enough: a busy machine lets few samples be taken.
fn profile_with(
    server: &Server,
    query: &str,
    has_enough: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    until("a profile has enough samples", || Some(profile(server, query)).filter(&has_enough))
}

/// Samples and microseconds of CPU time of the stacks with a function whose name begins so, on paths that begin so.
fn of(profile: &serde_json::Value, function: &str, path: &str) -> (u64, u64) {
    let text = |list: &str, index: &serde_json::Value, name: Option<&str>| {
        let entry = &profile[list][index.as_u64().unwrap() as usize];
        name.map_or(entry, |name| &entry[name]).as_str().unwrap().to_owned()
    };
    let is_meant = |stack: &&serde_json::Value| {
        let mut functions = stack["functions"].as_array().unwrap().iter();
        functions.any(|index| text("functions", index, Some("name")).starts_with(function))
            && text("paths", &stack["path"], None).starts_with(path)
    };
    let stacks = profile["stacks"].as_array().unwrap().iter().filter(is_meant);
    stacks.fold((0, 0), |(samples, cpu), stack| {
        (samples + stack["samples"].as_u64().unwrap(), cpu + stack["cpu_microseconds"].as_u64().unwrap())
    })
}

#[test]
fn where_a_page_waits_and_where_it_computes_is_seen() {
    let server = Setup::new().admin("ADMIN").php_options("num_threads 3").file("page.php", MIXED).start();
    let shows_both = |profile: &serde_json::Value| {
        let (all, _) = of(profile, "page", "/page.php");
        let (waits, waited_cpu) = of(profile, "Shop::waits", "/page.php");
        let (computes, computed_cpu) = of(profile, "Shop::computes", "/page.php");
        all > 20 && waits > computes && computes > 0 && computed_cpu > waited_cpu
    };
    let profile = during(&server, &["/page.php?a=b", "/page.php"], || {
        profile_with(&server, "seconds=2&hertz=200", shows_both)
    });
    let paths = profile["paths"].as_array().unwrap();
    assert!(paths.iter().any(|path| path == "/page.php"), "without the query: {paths:?}");
    server.stop();
}

/// A sample of a stack that changes while it is read would have a part of it, and names that are none.
#[test]
fn every_stack_begins_with_the_script_however_fast_functions_follow_each_other() {
    let server = Setup::new().admin("ADMIN").php_options("num_threads 3").file("page.php", HASTY).start();
    let mut samples = 0;
    during(&server, &["/page.php", "/page.php"], || {
        until("there are enough samples", || {
            samples += assert_whole_stacks(&profile(&server, "seconds=2&hertz=1000"));
            (samples > 100).then_some(())
        });
    });
    server.stop();
}

/// Returns the number of samples.
fn assert_whole_stacks(profile: &serde_json::Value) -> u64 {
    let name = |index: &serde_json::Value| {
        profile["functions"][index.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned()
    };
    let stacks = profile["stacks"].as_array().unwrap();
    for stack in stacks {
        let names: Vec<String> = stack["functions"].as_array().unwrap().iter().map(name).collect();
        // Behind a script the engine asks opcache, every few seconds, whether it is full.
        if names == ["opcache_get_status"] {
            continue;
        }
        // The script itself has no name.
        assert_eq!(names[0], "", "{names:?}");
        let is_known =
            |name: &String| ["page", "array_map", "Hasty::call", "strlen"].contains(&name.as_str());
        assert!(names[1..].iter().all(is_known), "{names:?}");
    }
    stacks.iter().map(|stack| stack["samples"].as_u64().unwrap()).sum()
}

#[test]
fn what_runs_when_the_script_is_over_is_seen() {
    let late = MIXED.replace("page();", "register_shutdown_function('page');");
    let server = Setup::new().admin("ADMIN").php_options("num_threads 3").file("late.php", &late).start();
    let is_seen = |profile: &serde_json::Value| of(profile, "Shop::waits", "/late.php").0 > 10;
    during(&server, &["/late.php"], || profile_with(&server, "seconds=1&hertz=200", is_seen));
    server.stop();
}

#[test]
fn only_the_path_or_the_worker_is_seen_that_was_asked_for() {
    const WORKER: &str = "<?php function handle() { usleep(5_000); echo 'ok'; }
        while (frankenphp_handle_request('handle')) { }";
    let server = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 4\n\t\tworker {\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t}")
        .file("worker.php", WORKER)
        .file("page.php", MIXED)
        .file("other.php", MIXED)
        .start();
    let paths = ["/page.php", "/other.php", "/worker.php/x"];
    let is_page_seen = |profile: &serde_json::Value| of(profile, "page", "/page.php").0 > 0;
    let by_path =
        during(&server, &paths, || profile_with(&server, "seconds=1&hertz=200&path=/page", is_page_seen));
    assert_eq!((of(&by_path, "", "/other").0, of(&by_path, "", "/worker").0), (0, 0));
    let worker = server.root().canonicalize().unwrap().join("worker.php");
    let query = format!("seconds=1&hertz=200&worker={}", worker.display());
    let is_worker_seen = |profile: &serde_json::Value| of(profile, "handle", "/worker.php").0 > 0;
    let by_worker = during(&server, &paths, || profile_with(&server, &query, is_worker_seen));
    assert_eq!(of(&by_worker, "page", "").0, 0);
    server.stop();
}

#[test]
fn the_command_writes_a_flame_graph_and_there_is_one_profile_at_a_time() {
    let server = Setup::new().admin("ADMIN").file("page.php", MIXED).start();
    let file = server.directory().join("flames.html");
    let command = |seconds: &str| {
        let mut command = regent_command(server.directory());
        command.args(["profile", "--admin", &server.admin().address().to_string()]);
        command.args(["--seconds", seconds, "--output"]);
        command
    };
    let taken = during(&server, &["/page.php"], || command("1").arg(&file).output().unwrap());
    assert!(taken.status.success(), "{taken:?}");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("Shop::computes") && page.starts_with("<!doctype html>"));
    let both = in_parallel(2, |_| command("2").arg("-").output().unwrap());
    let refused = both.iter().find(|output| !output.status.success()).expect("the second is refused");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("a profile is being taken already"),
        "{refused:?}"
    );
    server.stop();
}

#[test]
fn an_engine_that_dies_or_runs_nothing_is_told_of() {
    let server = Setup::new().admin("ADMIN").start();
    assert_eq!(profile(&server, "seconds=1")["stacks"], serde_json::json!([]));
    let answer = thread::scope(|scope| {
        let asked = scope.spawn(|| server.admin().get("/regent/profile?seconds=60"));
        wait_until_looked_at(&server);
        assert!(signal(server.engine(), Signal::KILL));
        asked.join().unwrap()
    });
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("the engine has ended meanwhile"), "{}", answer.text());
    assert_eq!(profile(&server, "seconds=1")["stacks"], serde_json::json!([]));
    server.stop();
}

/// PHP in processes: the samples are where no script runs.
#[test]
fn a_process_that_dies_takes_no_sample_along() {
    if !php::is_in_processes() {
        println!("SKIPPED: this PHP has threads; REGENT_TEST_PHP=system says that it has not");
        return;
    }
    let dies = format!("<?php function dies() {{ {STOP_AT_GATE} posix_kill(getmypid(), SIGKILL); }} dies();");
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 3")
        .file("dies.php", dies)
        .file("page.php", MIXED);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut dying = server.ask("/dies.php");
    let visitor = gate.next();
    let profile = thread::scope(|scope| {
        let asked = scope.spawn(|| {
            during(&server, &["/page.php", "/page.php"], || profile(&server, "seconds=2&hertz=200"))
        });
        wait_until_looked_at(&server);
        drop(visitor);
        dying.response().expect(502);
        asked.join().unwrap()
    });
    assert!(of(&profile, "dies", "/dies.php").0 > 0);
    assert!(of(&profile, "Shop::waits", "/page.php").0 > 0);
    server.stop();
}

/// The profiler sleeps after each look.
fn wait_until_looked_at(server: &Server) {
    let threads = format!("/proc/{}/task", server.engine());
    until("the engine takes a profile", || {
        let states = std::fs::read_dir(&threads).unwrap().flatten();
        let mut states =
            states.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        let profiler = states.find(|state| state.starts_with("Name:\tprofiler\n"))?;
        let sleeps = profiler.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        sleeps.trim().parse::<u64>().is_ok_and(|sleeps| sleeps > 3).then_some(())
    });
}
