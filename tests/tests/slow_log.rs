//! `slow_log`: what slow requests are at, without ending them.
#![forbid(unsafe_code)]

use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, own_address, regent_command, until};
use std::fs;

fn site(slow_log: &str) -> Setup {
    // Waits in a function of PHP, three calls deep.
    let waits = format!(
        "<?php class Db {{ static function query() {{ wait_a_bit(); }} }}\n\
         function wait_a_bit() {{\n\
         {STOP_AT_GATE} }}\n\
         Db::query(); echo 'done';"
    );
    Setup::new()
        .php_options(&format!("num_threads 2\n\t\tslow_log {slow_log}"))
        .file("index.php", "<?php echo 'ok';")
        .file("slow.php", waits)
}

/// What there is of the slow log, when it has this.
fn wait_for_entry(server: &Server, text: &str) -> String {
    let file = server.directory().join("slow.log");
    until("the slow log has it", || fs::read_to_string(&file).ok().filter(|log| log.contains(text)))
}

#[test]
fn a_slow_request_is_told_of_with_what_it_waits_in() {
    let setup = site("1s DIRECTORY/slow.log");
    let gate = Gate::of(&setup);
    let server = setup.start();
    server.get("/").expect(200);
    let mut slow = server.ask("/slow.php?a=b");
    let at_gate = gate.next();
    let log = wait_for_entry(&server, "uri = /slow.php?a=b");
    let root = server.root().canonicalize().unwrap();
    let stack = format!(
        "#0 fgets()\n#1 wait_a_bit() {0}/slow.php:3\n#2 Db::query() {0}/slow.php:1\n#3 {{main}} {0}/slow.php:4\n\n",
        root.display()
    );
    assert!(log.ends_with(&stack), "{log}");
    assert!(log.contains("pool classic, thread ") && !log.contains("index.php"), "{log}");
    drop(at_gate);
    assert_eq!(slow.response().expect(200).text(), "done");
    let mut slow = server.ask("/slow.php");
    let at_gate = gate.next();
    until("the second one is there too", || {
        (wait_for_entry(&server, "uri = /slow.php\n").matches("script = ").count() == 2).then_some(())
    });
    drop(at_gate);
    slow.response().expect(200);
    server.stop();
}

#[test]
fn a_worker_is_told_of_and_the_servers_log_is_where_no_file_is_named() {
    let worker = format!(
        "<?php while (frankenphp_handle_request(function () {{ {STOP_AT_GATE} echo 'done'; }})) {{ }}"
    );
    let setup = Setup::new()
        .php_options(
            "num_threads 2\n\t\tslow_log 200ms\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}",
        )
        .file("index.php", worker);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut slow = server.ask("/?x");
    let at_gate = gate.next();
    server.wait_for_log("a request is slow");
    server.wait_for_log("#0 fgets()");
    server.wait_for_log("frankenphp_handle_request()");
    drop(at_gate);
    assert_eq!(slow.response().expect(200).text(), "done");
    server.stop();
}

/// Its frames change all the time.
#[test]
fn a_script_that_computes_is_told_of() {
    const SCRIPT: &str = "<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } \
        while (!file_exists(__DIR__ . '/go')) { clearstatcache(); fib(15); } echo 'done';";
    let server = site("100ms DIRECTORY/slow.log").file("computes.php", SCRIPT).start();
    for count in 1..=3 {
        let mut computing = server.ask("/computes.php");
        until("it is told of", || {
            (wait_for_entry(&server, "script = ").matches("script = ").count() == count).then_some(())
        });
        server.write("go", "now");
        assert_eq!(computing.response().expect(200).text(), "done");
        fs::remove_file(server.root().join("go")).unwrap();
    }
    // One look in a few may find no stack.
    wait_for_entry(&server, "{main}");
    server.stop();
}

#[test]
fn a_file_that_cannot_be_written_any_more_is_reported() {
    let setup = site("200ms DIRECTORY/logs/slow.log");
    let gate = Gate::of(&setup);
    let directory = setup.directory().join("logs");
    fs::create_dir(&directory).unwrap();
    let server = setup.start();
    fs::remove_dir_all(&directory).unwrap();
    let mut slow = server.ask("/slow.php");
    let at_gate = gate.next();
    server.wait_for_log("the slow log cannot be written");
    drop(at_gate);
    assert_eq!(slow.response().expect(200).text(), "done");
    server.stop();
}

#[test]
fn a_file_that_cannot_be_made_stops_the_start() {
    let setup = Setup::new();
    let caddyfile = format!(
        "{{\nadmin off\nregent {{\nslow_log 1s none/slow.log\n}}\n}}\nhttp://{} {{\nphp_server\n}}\n",
        own_address()
    );
    fs::write(setup.directory().join("Caddyfile"), caddyfile).unwrap();
    let output = regent_command(setup.directory()).arg("run").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("none/slow.log: No such file or directory"), "{said}");
}

#[test]
fn a_request_that_is_ended_is_told_of_with_what_it_was_at() {
    let server = Setup::new()
        .php_options("num_threads 1\n\t\tmax_threads 1\n\t\trequest_timeout 300ms")
        .file(
            "long.php",
            "<?php function f() { hash_pbkdf2('sha512', 'password', 'salt', 2_000_000_000); } f();",
        )
        .start();
    server.get("/long.php").expect(504);
    server.wait_for_log("#0 hash_pbkdf2()");
    server.stop();
}

#[test]
fn a_thread_can_be_looked_into_at_any_time() {
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tmax_threads 2")
        .admin("ADMIN")
        .file("index.php", "<?php echo 'ok';")
        .file("waits.php", "<?php function f() {\nsleep(600); }\nf();")
        .start();
    let _conn = server.ask("/waits.php");
    let admin = server.admin();
    let busy = until("it runs", || admin.busy_threads().pop());
    let look = |index: u64| admin.get(&format!("/regent/threads/stack?index={index}")).expect(200).json();
    let stack = until("it sleeps", || Some(look(busy.index)).filter(|look| look["stack"][0] == "#0 sleep()"));
    let place = format!("#1 f() {}/waits.php:2", server.root().canonicalize().unwrap().display());
    assert_eq!(stack["stack"][1], place);
    assert_eq!(look(1 - busy.index)["stack"].as_array().map(Vec::len), Some(0), "it is idle");
    admin.get("/regent/threads/stack?index=999").expect(404);
    server.get("/").expect(200);
    server.stop();
}
