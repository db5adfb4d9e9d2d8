//! A new configuration for a running server: requests that run, connections that are kept, engines that go on or are
//! replaced, and configurations that are refused.
#![forbid(unsafe_code)]

use regent_tests::native::fixture;
use regent_tests::process::{listening_ports, runs, thread_count, write_program};
use regent_tests::{Conn, Response, Server, Setup, own_address, own_addresses, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An engine is a process group, whether its threads are processes or not.
const CLASSIC: &str = "<?php echo 'classic ', posix_getpgrp();";
const WORKER: &str =
    "<?php while (frankenphp_handle_request(function () { echo 'worker ', posix_getpgrp(); })) {}";
/// Says when it has started, and runs until the file `go` is there.
const UNTIL_GO: &str = "<?php file_put_contents(__DIR__ . '/started', '1'); \
                        while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'finished';";

/// Lines of the `frankenphp` block, and of the site.
fn caddyfile(php: &str, site: &str) -> String {
    format!(
        "{{\n\tadmin ADMIN\n\tgrace_period 20s\n\tfrankenphp {{\n\t\tmax_wait_time off\n\t\t{php}\n\t}}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\t{site}\n}}\n"
    )
}

fn started(php: &str, site: &str, files: &[(&str, &str)]) -> Server {
    let setup = Setup::new().caddyfile(&caddyfile(php, site)).file("index.php", CLASSIC);
    files.iter().fold(setup, |setup, (name, text)| setup.file(name, text)).start()
}

fn ask_to_reload(server: &Server) -> Response {
    server.admin().request("POST", "/regent/reload").send()
}

/// Has the server load this Caddyfile.
fn reload(server: &Server, caddyfile: &str) -> serde_json::Value {
    server.write_caddyfile(caddyfile);
    ask_to_reload(server).expect(200).json()
}

fn assert_refused(answer: Response, reason: &str) {
    let answer = answer.expect(400);
    let error = answer.json()["error"].as_str().expect("a text").to_owned();
    assert!(error.contains(reason), "{error}");
}

fn get(conn: &mut Conn, target: &str) -> Response {
    conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    conn.response()
}

fn is_gone(engine: u32) {
    until("the engine has ended", || (!runs(engine, "regent-php")).then_some(()));
}

#[test]
fn a_kept_connection_s_next_request_goes_to_the_new_configuration() {
    let server = started("num_threads 2", "respond /a before\n\tphp_server", &[]);
    let engine = server.engine();
    let mut conn = server.connect();
    assert_eq!(get(&mut conn, "/a").text(), "before");
    let answer = reload(&server, &caddyfile("num_threads 2", "respond /a after\n\tphp_server"));
    assert_eq!(answer, serde_json::json!({ "changed": true, "warnings": [] }));
    assert_eq!(get(&mut conn, "/a").text(), "after");
    assert_eq!(get(&mut conn, "/index.php").text(), format!("classic {engine}"), "the engine goes on");
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn the_same_configuration_changes_nothing_unless_it_is_forced() {
    let server = started("num_threads 2", "php_server", &[]);
    let engine = server.engine();
    assert_eq!(ask_to_reload(&server).expect(200).json()["changed"], false);
    assert_eq!(server.engine(), engine);
    let forced = server.admin().request("POST", "/regent/reload?force=true").send().expect(200);
    assert_eq!(forced.json()["changed"], true);
    is_gone(engine);
    assert_eq!(server.get("/index.php").text(), format!("classic {}", server.engine()));
    server.stop();
}

#[test]
fn no_request_fails_while_configurations_follow_each_other_under_load() {
    let text = |round: usize| {
        let php = format!("num_threads {}\n\t\tworker ROOT/worker.php 2", 4 + round / 2 % 2);
        caddyfile(&php, &format!("header X-Round {round}\n\tphp_server"))
    };
    let setup = Setup::new().caddyfile(&text(0)).file("index.php", CLASSIC).file("worker.php", WORKER);
    let server = setup.start();
    let done = AtomicBool::new(false);
    let keep = |target: &'static str| {
        let (server, done) = (&server, &done);
        move || {
            let (mut conn, mut count) = (server.connect(), 0);
            while !done.load(Ordering::Relaxed) {
                get(&mut conn, target).expect(200);
                count += 1;
                regent_tests::pause(Duration::from_millis(5));
            }
            count
        }
    };
    let renew = |target: &'static str| {
        let (server, done) = (&server, &done);
        move || {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                server.get(target).expect(200);
                count += 1;
                regent_tests::pause(Duration::from_millis(5));
            }
            count
        }
    };
    let count: usize = std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for target in ["/index.php", "/worker.php"] {
            clients.extend((0..4).map(|_| scope.spawn(keep(target))));
            clients.push(scope.spawn(renew(target)));
        }
        for round in 1..=10 {
            // Every second one takes another engine.
            reload(&server, &text(round));
            assert_eq!(server.get("/index.php").header("X-Round"), Some(&*round.to_string()));
        }
        done.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("every request is answered")).sum()
    });
    assert!(count > 200, "only {count} requests");
    server.engine();
    server.stop();
}

#[test]
fn a_request_that_runs_ends_on_its_configuration() {
    let server = started("num_threads 2", "header X-From before\n\tphp_server", &[("slow.php", UNTIL_GO)]);
    let old = server.engine();
    let mut slow = server.ask("/slow.php");
    server.wait_for_file("started");
    reload(&server, &caddyfile("num_threads 3", "header X-From after\n\tphp_server"));
    let answer = server.get("/index.php");
    assert_eq!(answer.header("X-From"), Some("after"));
    assert_ne!(answer.text(), format!("classic {old}"));
    assert!(runs(old, "regent-php"), "it still runs the slow request");
    server.write("go", "now");
    let answer = slow.response().expect(200);
    assert_eq!((answer.text(), answer.header("X-From")), ("finished".into(), Some("before")));
    is_gone(old);
    assert_eq!(get(&mut slow, "/index.php").header("X-From"), Some("after"), "the connection is kept");
    server.stop();
}

#[test]
fn requests_that_wait_for_the_old_engine_are_answered() {
    let server = started("num_threads 1", "php_server", &[("slow.php", UNTIL_GO)]);
    let old = server.engine();
    let mut slow = server.ask("/slow.php");
    server.wait_for_file("started");
    let mut waiting: Vec<_> = (0..5).map(|_| server.ask("/index.php")).collect();
    Conn::wait_until_all_read(&waiting);
    reload(&server, &caddyfile("num_threads 2", "php_server"));
    server.write("go", "now");
    slow.response().expect(200);
    for conn in &mut waiting {
        assert_eq!(conn.response().expect(200).text(), format!("classic {old}"));
    }
    is_gone(old);
    server.stop();
}

#[test]
fn what_the_old_engine_does_not_end_is_cut_off_after_the_grace_period() {
    let server = started("num_threads 1", "php_server", &[("slow.php", UNTIL_GO)]);
    let old = server.engine();
    let mut slow = server.ask("/slow.php");
    server.wait_for_file("started");
    let short = caddyfile("num_threads 2", "php_server").replace("grace_period 20s", "grace_period 300ms");
    reload(&server, &short);
    slow.response().expect(502);
    is_gone(old);
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn another_program_for_php_takes_a_new_engine() {
    let server = started("num_threads 2", "php_server", &[("kind.php", "<?php echo getenv('KIND');")]);
    assert_eq!(server.get("/kind.php").expect(200).text(), "");
    let old = server.engine();
    let engine = fs::read_link(format!("/proc/{old}/exe")).expect("the engine runs");
    let other = server.directory().join("other-php");
    write_program(&other, &format!("#!/bin/sh\nKIND=other exec {}\n", engine.display()));
    reload(&server, &caddyfile("num_threads 2\n\t\tphp DIRECTORY/other-php", "php_server"));
    is_gone(old);
    assert_eq!(server.get("/kind.php").expect(200).text(), "other");

    server.write_caddyfile(&caddyfile("num_threads 2\n\t\tphp DIRECTORY/none", "php_server"));
    assert_refused(ask_to_reload(&server), "/none");
    assert_eq!(server.get("/kind.php").expect(200).text(), "other");
    server.stop();
}

#[test]
fn settings_of_php_and_of_workers_take_a_new_engine() {
    let env = "<?php while (frankenphp_handle_request(function () { echo $_SERVER['COLOUR'] ?? '', ini_get('user_agent'); })) {}";
    let php = |ini: &str, num: usize, colour: &str| {
        format!(
            "num_threads 6\n\t\tphp_ini user_agent {ini}\n\t\tworker {{\n\t\t\tfile ROOT/worker.php\n\t\t\tname app\n\
             \t\t\tnum {num}\n\t\t\tenv COLOUR {colour}\n\t\t}}"
        )
    };
    let server = started(&php("one", 1, "red"), "php_server", &[("worker.php", env)]);
    let mut engine = server.engine();
    let mut changed = |ini, num: usize, colour: &str| {
        reload(&server, &caddyfile(&php(ini, num, colour), "php_server"));
        is_gone(engine);
        assert_ne!(server.engine(), engine);
        engine = server.engine();
        assert_eq!(server.admin().size("app"), num as u64);
        server.get("/worker.php").expect(200).text()
    };
    assert_eq!(changed("two", 1, "red"), "redtwo");
    assert_eq!(changed("two", 2, "red"), "redtwo");
    assert_eq!(changed("two", 2, "blue"), "bluetwo");
    server.stop();
}

#[test]
fn ports_come_and_go() {
    let server = started("num_threads 2", "php_server", &[]);
    let engine = server.engine();
    let one = caddyfile("num_threads 2", "php_server");
    let second = own_address();
    let two = format!("{one}http://:{} {{\n\tbind {}\n\trespond second\n}}\n", second.port(), second.ip());
    let mut kept = server.connect();
    get(&mut kept, "/index.php").expect(200);
    reload(&server, &two);
    let mut idle = Conn::open(second);
    assert_eq!(get(&mut idle, "/").text(), "second");
    assert!(listening_ports(server.pid()).contains(&second.port()));
    reload(&server, &one);
    assert!(idle.is_closed(), "an idle connection to a port that is gone ends");
    assert!(Conn::try_open(second).is_err(), "it is refused");
    get(&mut kept, "/index.php").expect(200);
    reload(&server, &two);
    assert_eq!(get(&mut Conn::open(second), "/").text(), "second", "the port can come back");
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn a_request_to_a_port_that_goes_is_answered() {
    let second = own_address();
    let one = caddyfile("num_threads 2", "php_server");
    let two = format!(
        "{one}http://:{} {{\n\tbind {}\n\troot * ROOT\n\tphp_server\n}}\n",
        second.port(),
        second.ip()
    );
    let server = Setup::new().caddyfile(&two).file("index.php", CLASSIC).file("slow.php", UNTIL_GO).start();
    let mut slow = Conn::open(second);
    slow.send("GET /slow.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    reload(&server, &one);
    server.write("go", "now");
    assert_eq!(slow.response().expect(200).text(), "finished");
    assert!(slow.is_closed());
    server.stop();
}

#[test]
fn all_interfaces_can_take_the_place_of_one() {
    let server = started("num_threads 2", "respond one", &[]);
    reload(&server, &caddyfile("num_threads 2", "respond all").replace("\tbind LOOPBACK\n", ""));
    assert_eq!(server.get("/").text(), "all");
    reload(&server, &caddyfile("num_threads 2", "respond one"));
    assert_eq!(server.get("/").text(), "one");
    server.stop();
}

#[test]
fn a_configuration_that_is_wrong_is_refused_with_its_place() {
    let server = started("num_threads 2", "respond /a before\n\tphp_server", &[]);
    let engine = server.engine();
    let mut conn = server.connect();
    get(&mut conn, "/a").expect(200);
    server.write_caddyfile(&caddyfile("num_threads 2", "no_such_directive\n\trespond /a after"));
    assert_refused(ask_to_reload(&server), "Caddyfile:12:2");
    server.signal(Signal::HUP);
    server.wait_for_log("the configuration was not loaded");
    let refused = regent_reload(&server, &[]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("Caddyfile:12:2") && error.contains("no_such_directive"), "{error}");
    assert_eq!(get(&mut conn, "/a").text(), "before");
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn an_address_that_is_taken_is_refused_and_nothing_changes() {
    let [free, address] = own_addresses();
    let taken = TcpListener::bind(address).expect("the address is the test's own");
    let server = started("num_threads 2", "respond before", &[]);
    let text = format!(
        "{}http://{free} {{\n\trespond free\n}}\nhttp://{address} {{\n\trespond taken\n}}\n",
        caddyfile("num_threads 3", "respond after"),
    );
    server.write_caddyfile(&text);
    assert_refused(ask_to_reload(&server), &address.to_string());
    assert_eq!(server.get("/").text(), "before");
    assert!(Conn::try_open(free).is_err(), "what was opened is closed again");
    drop(taken);
    ask_to_reload(&server).expect(200);
    assert_eq!(server.get("/").text(), "after");
    server.stop();
}

#[test]
fn a_worker_that_does_not_boot_is_refused() {
    let server = started("num_threads 2", "php_server", &[("worker.php", WORKER)]);
    let engine = server.engine();
    server.write("broken.php", "<?php throw new RuntimeException('no database');");
    server.write_caddyfile(&caddyfile("num_threads 4\n\t\tworker ROOT/broken.php 1", "php_server"));
    assert_refused(ask_to_reload(&server), "does not boot");
    server.wait_for_log("no database");
    assert_eq!(server.engine(), engine, "and the new engine is gone");
    assert_eq!(server.get("/index.php").text(), format!("classic {engine}"));
    server.write("broken.php", WORKER);
    ask_to_reload(&server).expect(200);
    assert_eq!(server.get("/broken.php").text(), format!("worker {}", server.engine()));
    server.stop();
}

#[test]
fn the_old_configuration_serves_while_a_worker_boots() {
    let boots = "<?php file_put_contents(__DIR__ . '/boots', '1'); \
                 while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } \
                 while (frankenphp_handle_request(function () { echo 'booted'; })) {}";
    let server = started("num_threads 2", "respond /a before\n\tphp_server", &[("worker.php", boots)]);
    let old = server.engine();
    server.write_caddyfile(&caddyfile(
        "num_threads 4\n\t\tworker ROOT/worker.php 1",
        "respond /a after\n\tphp_server",
    ));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask_to_reload(&server));
        server.wait_for_file("boots");
        // The next one waits for its turn.
        let second = scope.spawn(|| ask_to_reload(&server));
        assert_eq!(server.get("/a").text(), "before");
        assert_eq!(server.get("/index.php").text(), format!("classic {old}"));
        server.write("go", "now");
        assert_eq!(first.join().expect("an answer").expect(200).json()["changed"], true);
        assert_eq!(second.join().expect("an answer").expect(200).json()["changed"], false);
    });
    assert_eq!(server.get("/a").text(), "after");
    assert_eq!(server.get("/worker.php").text(), "booted");
    is_gone(old);
    server.stop();
}

#[test]
fn a_server_that_is_to_stop_does_not_wait_for_a_reload() {
    let never = "<?php file_put_contents(__DIR__ . '/boots', '1'); while (true) { usleep(1000); }";
    let mut server = started("num_threads 2", "php_server", &[("worker.php", never)]);
    let old = server.engine();
    server.write_caddyfile(&caddyfile("num_threads 4\n\t\tworker ROOT/worker.php 1", "php_server"));
    server.signal(Signal::HUP);
    server.wait_for_file("boots");
    let engines = server.engines();
    assert_eq!(engines.len(), 2);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    is_gone(old);
    engines.into_iter().for_each(is_gone);
}

#[test]
fn connections_that_were_accepted_under_other_terms_end() {
    let server = started("num_threads 2", "php_server", &[("slow.php", UNTIL_GO)]);
    let (mut idle, mut busy) = (server.connect(), server.connect());
    get(&mut idle, "/index.php").expect(200);
    busy.send("GET /slow.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    let engine = server.engine();
    let timeouts = "{\n\tservers {\n\t\ttimeouts {\n\t\t\tidle 30s\n\t\t}\n\t}\n";
    reload(&server, &caddyfile("num_threads 2", "php_server").replacen("{\n", timeouts, 1));
    assert!(idle.is_closed());
    server.write("go", "now");
    assert_eq!(busy.response().expect(200).text(), "finished");
    assert!(busy.is_closed());
    server.get("/index.php").expect(200);
    assert_eq!(server.engine(), engine, "which has nothing to do with it");
    server.stop();
}

#[test]
fn native_services_come_and_go() {
    let native = |options: &str| {
        let block = format!("native DIRECTORY/libserver.so {{\n\t\t\tthreads 1\n\t\t\t{options}\n\t\t}}");
        caddyfile("num_threads 2", &format!("handle_path /m/* {{\n\t\t{block}\n\t}}\n\tphp_server"))
    };
    let setup = Setup::new().caddyfile(&caddyfile("num_threads 2", "php_server")).file("index.php", CLASSIC);
    let server = setup.module("server", &fixture("server.c"), &[]).start();
    let php = server.engine();
    assert!(server.native_engines().is_empty());
    let one = |what| {
        until(what, || match server.native_engines().as_slice() {
            [engine] => Some(*engine),
            _ => None,
        })
    };
    reload(&server, &native(""));
    let first = one("there is an engine for it");
    let answer = server.get("/m/hello").status;
    reload(&server, &native("inline"));
    assert_eq!(one("the engine goes on"), first, "where handlers run is not its own matter");
    assert_eq!(server.get("/m/hello").status, answer);
    reload(&server, &native("max_connections 7"));
    assert!(
        until("another takes its place", || Some(one("one engine")).filter(|engine| *engine != first)) > 0
    );
    assert_eq!(server.get("/m/hello").status, answer);
    reload(&server, &caddyfile("num_threads 2", "php_server"));
    until("the engine has ended", || server.native_engines().is_empty().then_some(()));
    assert_eq!(server.get("/index.php").text(), format!("classic {php}"), "PHP has not noticed");
    server.stop();
}

/// `curl` for a site of the local CA at this address.
fn curl(server: &Server, address: SocketAddr, url: &str) -> Output {
    let root = server.directory().join("storage/pki/authorities/local/root.crt");
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "10", "--cacert"]).arg(root);
    command.args(["--connect-to", &format!("::{address}"), url]);
    command.output().expect("there is curl")
}

#[test]
fn a_site_with_https_is_added_to_a_plain_server() {
    let server = started("num_threads 2", "respond plain", &[]);
    let address = own_address();
    let text = caddyfile("num_threads 2", "respond plain").replacen(
        "{\n",
        "{\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system DIRECTORY/storage\n",
        1,
    );
    reload(
        &server,
        &format!(
            "{text}https://localhost:{} {{\n\tbind {}\n\trespond secret\n}}\n",
            address.port(),
            address.ip()
        ),
    );
    let output = curl(&server, address, &format!("https://localhost:{}/", address.port()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "secret", "{output:?}");
    assert_eq!(server.get("/").text(), "plain");
    server.stop();
}

fn make_certificate(server: &Server, serial: &str) {
    let file = |name: &str| server.directory().join(name);
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    command.args(["-set_serial", serial, "-keyout"]).arg(file("key.pem")).arg("-out").arg(file("cert.pem"));
    let output = command.output().expect("there is openssl");
    assert!(output.status.success(), "{output:?}");
}

fn serial(address: SocketAddr) -> String {
    let shell = format!(
        "openssl s_client -connect {address} -servername localhost </dev/null 2>/dev/null \
         | openssl x509 -noout -serial"
    );
    let output = Command::new("sh").arg("-c").arg(shell).output().expect("there is openssl");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn certificate_files_are_read_again() {
    let server = started("num_threads 2", "respond plain", &[]);
    let address = own_address();
    make_certificate(&server, "4097");
    let text = caddyfile("num_threads 2", "respond plain").replacen(
        "{\n",
        "{\n\tauto_https disable_redirects\n\tstorage file_system DIRECTORY/storage\n",
        1,
    );
    let text = format!(
        "{text}https://localhost:{} {{\n\tbind {}\n\ttls DIRECTORY/cert.pem DIRECTORY/key.pem\n\trespond secret\n}}\n",
        address.port(),
        address.ip()
    );
    reload(&server, &text);
    assert_eq!(serial(address), "serial=1001");
    make_certificate(&server, "4098");
    let engine = server.engine();
    ask_to_reload(&server).expect(200);
    assert_eq!(serial(address), "serial=1002");
    assert_eq!(server.engine(), engine);
    fs::write(server.directory().join("cert.pem"), "no certificate").expect("it is ours");
    assert_refused(ask_to_reload(&server), "cert.pem");
    assert_eq!(serial(address), "serial=1002");
    server.stop();
}

#[test]
fn no_line_of_an_access_log_is_lost_or_doubled() {
    let text = |round: usize| {
        let site = format!("log {{\n\t\toutput file DIRECTORY/access.log\n\t}}\n\trespond /n/* {round}");
        caddyfile("num_threads 2", &site)
    };
    let mut server = Setup::new().caddyfile(&text(0)).start();
    let done = AtomicBool::new(false);
    let count = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut conn, mut count) = (server.connect(), 0);
            while !done.load(Ordering::Relaxed) {
                get(&mut conn, &format!("/n/{count}")).expect(200);
                count += 1;
            }
            count
        });
        for round in 1..=5 {
            reload(&server, &text(round));
            assert_eq!(server.get("/n/x").text(), round.to_string());
        }
        done.store(true, Ordering::Relaxed);
        client.join().expect("every request is answered")
    });
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let log = fs::read_to_string(server.directory().join("access.log")).expect("there is a log");
    let uri = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a whole line of JSON");
        line["request"]["uri"].as_str().expect("a URI").to_owned()
    };
    let numbers: Vec<usize> =
        log.lines().filter_map(|line| uri(line).strip_prefix("/n/")?.parse().ok()).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
}

#[test]
fn a_hangup_loads_the_caddyfile_again() {
    let server = started("num_threads 2", "respond before", &[]);
    server.write_caddyfile(&caddyfile("num_threads 2", "respond after"));
    server.signal(Signal::HUP);
    until("the new configuration is in use", || (server.get("/").text() == "after").then_some(()));
    server.stop();
}

#[test]
fn a_caddyfile_is_loaded_as_a_body() {
    let server = started("num_threads 2", "respond before", &[]);
    server.write_caddyfile(&caddyfile("num_threads 2", "respond after"));
    let text = fs::read_to_string(server.directory().join("Caddyfile")).expect("it was written");
    let load = |kind: &str, text: &str| server.admin().request("POST", "/load").body(kind, text).send();
    load("text/caddyfile", &text).expect(200);
    assert_eq!(server.get("/").text(), "after");
    assert_refused(load("text/caddyfile", &text.replace("respond after", "respnd")), "Caddyfile (body):12:2");
    load("text/yaml", "{}").expect(415);
    let foreign = server.admin().request("POST", "/load").header("Origin", "http://evil.example");
    foreign.body("text/caddyfile", text).send().expect(403);
    assert_eq!(server.get("/").text(), "after");
    let servers = server.admin().get("/config/apps/http/servers").json();
    assert_eq!(servers.as_object().map(serde_json::Map::len), Some(1));
    server.stop();
}

fn regent_reload(server: &Server, arguments: &[&str]) -> Output {
    let mut command = regent_command(server.directory());
    command.arg("reload").arg("--address").arg(server.admin().address().to_string()).args(arguments);
    command.output().expect("regent can be started")
}

#[test]
fn regent_reload_loads_the_caddyfile_of_the_server_or_another() {
    let server = started("num_threads 2", "respond before", &[]);
    server.write_caddyfile(&caddyfile("num_threads 2", "respond after"));
    let done = regent_reload(&server, &[]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(server.get("/").text(), "after");
    let same = regent_reload(&server, &[]);
    assert!(String::from_utf8_lossy(&same.stdout).contains("nothing has changed"), "{same:?}");
    let engine = server.engine();
    assert!(regent_reload(&server, &["--force"]).status.success());
    is_gone(engine);
    let text = fs::read_to_string(server.directory().join("Caddyfile")).expect("it was written");
    fs::write(server.directory().join("Other"), text.replace("respond after", "respond other"))
        .expect("it is ours");
    let other = regent_reload(&server, &["--config", "Other"]);
    assert!(other.status.success(), "{other:?}");
    assert_eq!(server.get("/").text(), "other");
    let missing = regent_reload(&server, &["--config", "Missing"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("Missing"), "{missing:?}");
    server.stop();
}

#[test]
fn what_cannot_change_is_a_warning() {
    let server = started("num_threads 2", "respond before", &[]);
    let moved = caddyfile("num_threads 2", "respond after")
        .replace("admin ADMIN", "admin localhost:12999\n\tlog {\n\t\tlevel DEBUG\n\t}");
    let warnings = reload(&server, &moved)["warnings"].to_string();
    assert!(warnings.contains("`admin`") && warnings.contains("`log`"), "{warnings}");
    assert_eq!(server.get("/").text(), "after");
    server.wait_for_log("the global option `admin` has changed");
    server.stop();
}

#[test]
fn counters_go_on() {
    let server = started("num_threads 2", "php_server", &[]);
    let requests = || server.admin().get("/metrics").text();
    let count = |metrics: &str| -> f64 {
        let of_route =
            |line: &&str| line.starts_with("regent_requests_total") && line.contains("class=\"2xx\"");
        metrics.lines().filter(of_route).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    (0..5).for_each(|_| _ = server.get("/index.php").expect(200));
    let before = until("five requests are counted", || Some(requests()).filter(|text| count(text) >= 5.0));
    reload(&server, &caddyfile("num_threads 3", "php_server"));
    (0..3).for_each(|_| _ = server.get("/index.php").expect(200));
    until("the others are added", || (count(&requests()) >= count(&before) + 3.0).then_some(()));
    server.stop();
}

#[test]
fn a_large_upload_and_a_stream_survive_reloads() {
    let stream = "<?php file_put_contents(__DIR__ . '/started', '1'); echo 'begun '; flush(); \
                  while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'ended';";
    let length = "<?php echo strlen(file_get_contents('php://input'));";
    let server = started("num_threads 2", "php_server", &[("stream.php", stream), ("length.php", length)]);
    let old = server.engine();
    let mut streamed = server.ask("/stream.php");
    let head = streamed.head().expect("a head").expect("a response");
    let mut upload = server.connect();
    upload.send("POST /length.php HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n");
    upload.send("x".repeat(150_000));
    upload.wait_until_read();
    reload(&server, &caddyfile("num_threads 3", "php_server"));
    server.get("/index.php").expect(200);
    upload.send("x".repeat(150_000));
    assert_eq!(upload.response().expect(200).text(), "300000");
    server.write("go", "now");
    assert_eq!(streamed.rest_of(head).expect("a whole body").text(), "begun ended");
    is_gone(old);
    server.stop();
}

#[test]
fn fifty_reloads_leave_nothing_behind() {
    let text = |round: usize| {
        let php = format!("num_threads {}\n\t\tworker ROOT/worker.php 1", 3 + round % 2);
        caddyfile(
            &php,
            &format!(
                "log {{\n\t\toutput file DIRECTORY/access.log\n\t}}\n\theader X-Round {round}\n\tphp_server"
            ),
        )
    };
    let server =
        Setup::new().caddyfile(&text(0)).file("index.php", CLASSIC).file("worker.php", WORKER).start();
    let mut kept = server.connect();
    let mut round = |number: usize| {
        let old = server.engine();
        reload(&server, &text(number));
        assert_eq!(get(&mut kept, "/index.php").expect(200).header("X-Round"), Some(&*number.to_string()));
        server.get("/worker.php").expect(200);
        is_gone(old);
    };
    (1..=10).for_each(&mut round);
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", server.pid())).map_or(0, Iterator::count);
    // The runtime's threads for blocking work come and go.
    let (files, threads) = (descriptors(), thread_count(server.pid()));
    let mut grown_by_fifty = |first: usize| {
        let before = server.memory().0.private;
        (first..first + 50).for_each(&mut round);
        server.memory().0.private.saturating_sub(before)
    };
    // The allocator may take pools for more threads now and then, which is once; what is left behind by each reload comes again.
    let grows = [11, 61, 111].into_iter().all(|first| grown_by_fifty(first) >= 16 << 20);
    assert!(!grows, "16 MiB or more by each fifty reloads");
    until("descriptors are closed", || (descriptors() <= files).then_some(()));
    until("idle threads have ended", || (thread_count(server.pid()) <= threads + 4).then_some(()));
    server.stop();
}
