//! `task`: scripts that run beside the pools.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, process, regent_command, until};
use rustix::process::Signal;
use std::fs;

/// Appends its number to a file of the site, and ends as it is told.
const TICK: &str = "<?php file_put_contents(__DIR__ . '/www/' . $argv[1], getmypid() . \"\\n\", FILE_APPEND); exit((int) ($argv[2] ?? 0));";

/// Appends its number too, and stays until it is told to end.
const LOOP: &str = "<?php
    pcntl_async_signals(true);
    pcntl_signal(SIGTERM, function () { file_put_contents(__DIR__ . '/www/ended', 'x', FILE_APPEND); exit; });
    echo 'says ', getenv('GREETING'), ' ', implode(',', array_slice($argv, 1)), \"\\n\";
    fwrite(STDERR, \"complains\\n\");
    file_put_contents(__DIR__ . '/www/pids', getmypid() . \"\\n\", FILE_APPEND);
    while (true) { sleep(1); }";

/// Ends by no signal that can be caught.
const STUBBORN: &str = "<?php pcntl_signal(SIGTERM, SIG_IGN);
    file_put_contents(__DIR__ . '/www/pids', getmypid() . \"\\n\", FILE_APPEND);
    while (true) { sleep(1); }";

fn caddyfile(tasks: &str) -> String {
    format!(
        "{{\n\tadmin off\n\tfrankenphp {{\n\t\tnum_threads 1\n\t\t{tasks}\n\t}}\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\tphp_server\n}}\n"
    )
}

fn with_tasks(tasks: &str) -> Setup {
    let setup =
        Setup::new().file("../tick.php", TICK).file("../loop.php", LOOP).file("../stubborn.php", STUBBORN);
    setup.caddyfile(&caddyfile(tasks))
}

fn lines(server: &Server, path: &str) -> Vec<String> {
    let text = fs::read_to_string(server.root().join(path)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn wait_for_lines(server: &Server, path: &str, count: usize) -> Vec<String> {
    until(&format!("{path} has {count} lines"), || {
        Some(lines(server, path)).filter(|lines| lines.len() >= count)
    })
}

fn is_alive(pid: &str) -> bool {
    process::is_alive(pid.parse().unwrap())
}

#[test]
fn a_script_runs_beside_the_pools_and_ends_with_the_server() {
    let options = "name looper\n\t\t\tenv GREETING hello\n\t\t\tnum 2";
    let mut server =
        with_tasks(&format!("task DIRECTORY/loop.php one --two {{\n\t\t\t{options}\n\t\t}}")).start();
    server.wait_for_log("says hello one,--two");
    server.wait_for_log("complains");
    let pids = wait_for_lines(&server, "pids", 2);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert_eq!(fs::read_to_string(server.root().join("ended")).unwrap(), "xx", "they were told to end");
    assert!(!pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn one_that_ends_is_started_again_as_its_rule_says() {
    let server = with_tasks(
        "task DIRECTORY/tick.php always\n\t\ttask DIRECTORY/tick.php never {\n\t\t\trestart never\n\t\t}\n\t\t\
         task DIRECTORY/tick.php fails 3 {\n\t\t\trestart on_failure\n\t\t}\n\t\t\
         task DIRECTORY/tick.php works {\n\t\t\trestart on_failure\n\t\t}\n\t\t\
         task DIRECTORY/tick.php every {\n\t\t\tevery 50ms\n\t\t}",
    )
    .start();
    wait_for_lines(&server, "always", 3);
    wait_for_lines(&server, "fails", 3);
    wait_for_lines(&server, "every", 5);
    server.wait_for_log("the task has failed");
    assert_eq!((lines(&server, "never").len(), lines(&server, "works").len()), (1, 1));
    server.stop();
}

#[test]
fn figures_of_tasks_are_in_the_metrics() {
    let tasks = "task DIRECTORY/tick.php fails 3 {\n\t\t\tname tick\n\t\t}\n\t\ttask DIRECTORY/loop.php {\n\t\t\tname loop\n\t\t}";
    let text = caddyfile(tasks).replace("admin off", "admin ADMIN");
    let server = with_tasks(tasks).caddyfile(&text).start();
    let has = |line: &str| server.admin().get("/metrics").text().lines().any(|found| found == line);
    until("one runs", || has("regent_tasks_running{task=\"loop\"} 1").then_some(()));
    until("the other has failed twice", || has("regent_task_failures_total{task=\"tick\"} 2").then_some(()));
    server.stop();
}

#[test]
fn one_that_does_not_end_is_killed() {
    // PHP has to have started by then.
    let tasks = "task DIRECTORY/stubborn.php {\n\t\t\ttimeout 2s\n\t\t\tstop_timeout 100ms\n\t\t}";
    let mut server = with_tasks(tasks).start();
    let pids = wait_for_lines(&server, "pids", 2);
    until("the first was killed", || (!is_alive(&pids[0])).then_some(()));
    server.wait_for_log("longer than its `timeout`");
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!lines(&server, "pids").iter().any(|pid| is_alive(pid)));
}

#[test]
fn a_new_configuration_stops_and_starts_what_has_changed() {
    let task = |greeting: &str| {
        format!("task DIRECTORY/loop.php {{\n\t\t\tname looper\n\t\t\tenv GREETING {greeting}\n\t\t}}")
    };
    let server = with_tasks(&task("hello")).start();
    let first = wait_for_lines(&server, "pids", 1).remove(0);
    let reload = |tasks: &str| {
        server.write_caddyfile(&caddyfile(tasks));
        server.signal(Signal::HUP);
    };
    reload(&format!("max_requests 9\n\t\t{}", task("hello")));
    server.wait_for_log("the new configuration is in use");
    assert!(is_alive(&first), "it is as it was");
    reload(&task("goodbye"));
    server.wait_for_log("says goodbye");
    assert!(!is_alive(&first), "the one before has ended");
    assert_eq!(lines(&server, "ended"), ["x"]);
    reload("");
    until("the last has ended", || (lines(&server, "ended") == ["xx"]).then_some(()));
    server.stop();
}

#[test]
fn tasks_do_not_outlive_a_server_that_is_killed() {
    let server = with_tasks("task DIRECTORY/stubborn.php").start();
    let pid = wait_for_lines(&server, "pids", 1).remove(0);
    server.signal(Signal::KILL);
    until("the task has ended", || (!is_alive(&pid)).then_some(()));
}

#[test]
fn tasks_are_told_what_to_do_by_the_admin_api() {
    let tasks = "task DIRECTORY/tick.php ticks {\n\t\t\tname tick\n\t\t\tevery 1h\n\t\t}\n\t\t\
                 task DIRECTORY/tick.php fails 3 {\n\t\t\tname once\n\t\t\trestart never\n\t\t}\n\t\t\
                 task DIRECTORY/loop.php {\n\t\t\tname loop\n\t\t\tnum 2\n\t\t}";
    let text = caddyfile(tasks).replace("admin off", "admin ADMIN");
    let server = with_tasks(tasks).caddyfile(&text).start();
    let list = || server.admin().get("/regent/tasks").expect(200).json()["tasks"].clone();
    let state = |index: usize| list()[index]["state"].clone();
    let tell = |order: &str, task: &str, status: u16| {
        let target = format!("/regent/tasks/{order}?task={task}");
        server.admin().request("POST", &target).send().expect(status).json()
    };
    wait_for_lines(&server, "ticks", 1);
    wait_for_lines(&server, "fails", 1);
    let pids = wait_for_lines(&server, "pids", 2);
    until("all have settled", || (state(0) == "waiting" && state(1) == "over").then_some(()));
    let all = list();
    assert_eq!(all.as_array().map(Vec::len), Some(4), "each process by itself: {all}");
    let tick = &all[0];
    assert!(tick["task"] == "tick" && tick["starts"] == "every" && tick["pid"].is_null(), "{tick}");
    assert!(tick["next_start_unix_ms"].as_u64() > tick["last"]["ended_at_unix_ms"].as_u64(), "{tick}");
    assert_eq!((&tick["last"]["end"], &tick["failures"]), (&"succeeded".into(), &0.into()));
    let once = &all[1];
    assert!(
        once["last"]["code"] == 3 && once["failures"] == 1 && once["next_start_unix_ms"].is_null(),
        "{once}"
    );
    assert_eq!((all[2]["number"].clone(), all[3]["number"].clone()), (1.into(), 2.into()));
    assert!(pids.contains(&all[2]["pid"].to_string()), "{all}");

    assert_eq!(tell("run", "tick", 200)["told"], 1);
    wait_for_lines(&server, "ticks", 2);
    tell("run", "once", 200);
    wait_for_lines(&server, "fails", 2);
    let error = tell("run", "loop", 409)["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("the task `loop` is running"), "{error}");
    assert!(
        tell("stop", "none", 404)["error"]
            .as_str()
            .is_some_and(|error| error.contains("`tick`, `once`, `loop`"))
    );
    server.admin().request("POST", "/regent/tasks/run").send().expect(400);

    assert_eq!(tell("restart", "loop", 200)["told"], 2);
    let again = wait_for_lines(&server, "pids", 4);
    assert!(pids.iter().all(|pid| !is_alive(pid)) && again[2..].iter().all(|pid| is_alive(pid)));
    assert_eq!(tell("stop", "loop", 200)["told"], 2);
    until("they have stopped", || (state(2) == "stopped" && state(3) == "stopped").then_some(()));
    assert!(again.iter().all(|pid| !is_alive(pid)));
    assert_eq!(tell("stop", "loop", 200)["told"], 0);
    assert_eq!(list()[2]["last"]["end"], "told");
    assert_eq!(tell("run", "loop", 200)["told"], 2);
    wait_for_lines(&server, "pids", 6);
    server.stop();
}

#[test]
fn the_command_lists_tasks_and_tells_them() {
    let tasks = "task DIRECTORY/tick.php ticks {\n\t\t\tname \"my tick\"\n\t\t\tevery 1h\n\t\t}";
    let text = caddyfile(tasks).replace("admin off", "admin ADMIN");
    let server = with_tasks(tasks).caddyfile(&text).start();
    let regent = |arguments: &[&str]| {
        let mut command = regent_command(server.directory());
        let admin = server.admin().address().to_string();
        let output = command.arg("tasks").args(arguments).args(["--admin", &admin]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    wait_for_lines(&server, "ticks", 1);
    until("the run is over", || regent(&[]).1.contains("ended well").then_some(()));
    let (_, list, _) = regent(&[]);
    assert!(list.contains("my tick") && list.contains("starts in 59 min"), "{list}");
    assert_eq!(regent(&["run", "my tick"]).1, "my tick starts\n");
    wait_for_lines(&server, "ticks", 2);
    let (is_done, _, error) = regent(&["stop", "other"]);
    assert!(!is_done && error.contains("there is no task `other`; there are `my tick`"), "{error}");
    assert!(regent(&["--json"]).1.contains("\"task\": \"my tick\""));
    server.stop();
}
