//! Native modules that crash, hang, leak and lie, or that cannot be loaded: the server and PHP do not notice, and the log
//! says what happened.
#![forbid(unsafe_code)]

use regent_tests::native::{build_crate, compile, crate_of, fixture};
use regent_tests::process::{children_running, is_alive, memory};
use regent_tests::{Conn, Response, Server, Setup, keep_asking, own_address, regent_command, until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const ENGINE: &str = "regent-native";
const MIB: u64 = 1 << 20;

#[test]
fn a_module_that_crashes_costs_its_request_and_neither_php_nor_the_server() {
    let server = troubled("").start();
    let php = server.engine();
    let answers = keep_asking(&server, 4, "/", || {
        for crash in ["segv", "abort", "exit", "overflow"] {
            let engine = native_engine(&server);
            server.get(&format!("/m/{crash}")).expect(502);
            wait_for_another_engine(&server, engine);
            assert_eq!(server.get("/m/ok").expect(200).text(), "ok", "after {crash}");
        }
    });
    assert_untouched(&answers);
    assert_eq!(server.engine(), php);
    // Each death is told with how it came about.
    for what in ["signal 11", "signal 6", "exit code 0"] {
        assert!(
            deaths(&server).any(|line| line.contains(what)),
            "{what} is not in the log:\n{}",
            server.log()
        );
    }
    server.stop();
}

#[test]
fn a_crash_behind_the_first_bytes_cuts_the_answer_short() {
    let server = troubled("request_buffering off").start();
    assert_cut_short(&server, "/m/begun");
    until("the module answers again", || (server.get("/m/ok").status == 200).then_some(()));
    server.stop();
}

#[test]
fn an_exception_that_leaves_a_module_is_a_crash_with_a_reason() {
    let server = Setup::new()
        .module("throws", &fixture("throws.cpp"), &[])
        .file("index.php", "<?php echo 'php';")
        .site("handle_path /m/* {\n\t\tnative DIRECTORY/libthrows.so\n\t}\n\tphp_server")
        .start();
    let engine = native_engine(&server);
    let answers = keep_asking(&server, 2, "/", || {
        server.get("/m/throws").expect(502);
        wait_for_another_engine(&server, engine);
    });
    assert_untouched(&answers);
    assert_eq!(server.get("/m/ok").expect(200).text(), "ok");
    server.wait_for_log("throws: an exception has left");
    server.stop();
}

#[test]
fn exceptions_and_panics_that_a_wrapper_catches_are_500_and_a_line_in_the_log() {
    let server = with_panics("request_buffering off").start();
    let (php, engine) = (server.engine(), native_engine(&server));
    let logged = [
        ("/cpp/throws", "GET /throws: thrown"),
        ("/rust/panic", "GET /panic: panicked: on /panic"),
        ("/rust/failed", "GET /failed: invalid digit found in string"),
        ("/rust/header", "GET /header: header `no token` cannot be used"),
    ];
    for (target, line) in logged {
        assert_eq!(server.get(target).expect(500).json()["status"], 500);
        server.wait_for_log(line);
    }
    assert_eq!(server.get("/rust/refused").expect(409).json()["detail"], "\"quoted\"");
    assert_cut_short(&server, "/rust/late");
    server.wait_for_log("POST /late: too late for that");
    assert_eq!((server.engine(), native_engine(&server)), (php, engine));
    restart(&server);
    server.wait_for_log("the handler was dropped");
    server.wait_for_log("cleanup: panicked: even in a drop");
    server.stop();
}

#[test]
fn a_module_in_rust_sees_the_whole_request() {
    let server = with_panics("").start();
    let asked = server
        .request("PURGE", "/rust/any/a%20b/c?id=1&x=y&id=-2")
        .header("X-Number", "7")
        .body("text/plain", "body");
    assert_eq!(
        asked.send().expect(200).text(),
        "PURGE /any/a b/c a b/c id=1&x=y&id=-2 [1, -2] Some(7) [(\"x-number\", \"7\")] Some(\"http\") body"
    );
    let refused = asked.header("X-Number", "x").send().expect(400).json();
    assert!(refused["detail"].as_str().unwrap().starts_with("header `x-number` is `7, x`"), "{refused}");
    let bare = server.post("/rust/bare", "text/plain", "12345");
    assert_eq!(bare.header("x-length"), None, "that is GET's");
    bare.expect(405);
    assert_eq!(server.get("/rust/bare").expect(204).header("x-length"), Some("Some(0)"));
    server.stop();
}

#[test]
fn a_client_that_leaves_ends_the_handler_that_reads_and_is_no_failure() {
    let server = with_panics("request_buffering off").start();
    let mut conn = server.connect();
    conn.send(format!(
        "POST /rust/any/x HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n",
        server.address()
    ));
    let figures = || server.get("/rust/stats").expect(200).json();
    until("the handler reads", || (figures()["running"] == 2).then_some(()));
    conn.send("half");
    drop(conn);
    let figures = until("the handler has ended", || Some(figures()).filter(|now| now["running"] == 1));
    assert_eq!(figures["answers"]["broken_off"], 1, "{figures}");
    assert!(!server.log().contains("has failed"), "{}", server.log());
    server.stop();
}

#[test]
fn a_module_in_cpp_calls_one_in_rust() {
    let server = with_panics("").start();
    assert_eq!(server.get("/cpp/double/21").expect(200).text(), "42");
    server.stop();
}

#[test]
fn a_module_in_rust_that_fails_at_the_start_says_why() {
    for (config, reason) in [
        ("panic \"no database\"", "panicked: no database"),
        ("size 256", "config `size` is `256`: number too large to fit in target type"),
        ("twice yes", "adds the route GET /ok twice"),
    ] {
        let setup = Setup::new();
        panics_into(setup.directory());
        assert_refused(setup.directory(), &format!("libpanics.so {{\n\t\tconfig {config}\n\t}}"), "", reason);
    }
}

#[test]
fn a_module_that_hangs_holds_its_own_thread_and_what_waits_for_it_is_refused_in_time() {
    let server = troubled("threads 1\n\t\t\tmax_threads 1\n\t\t\tdeadline 2s").start();
    let _hanging = hang(&server);
    let answers = keep_asking(&server, 2, "/", || {
        let refused = server.get("/m/ok").expect(503);
        assert!(refused.header("retry-after").is_some());
    });
    assert_untouched(&answers);
    restart(&server);
    assert_eq!(server.get("/m/ok").expect(200).text(), "ok", "the restart does not wait for what hangs");
}

#[test]
fn a_pool_grows_past_threads_that_hang() {
    let server = troubled("threads 1\n\t\t\tmax_threads 8").start();
    let _hanging: Vec<_> = (0..3).map(|_| hang(&server)).collect();
    assert_eq!(server.get("/m/ok").expect(200).text(), "ok");
    assert_eq!(server.get("/").expect(200).text(), "php");
}

#[test]
fn what_a_module_leaks_is_given_back_by_a_restart() {
    let server = troubled("").start();
    let before = memory(server.pid()).unwrap().private;
    let engine = native_engine(&server);
    let answers = keep_asking(&server, 2, "/", || {
        for _ in 0..8 {
            server.get("/m/leak/32").expect(200);
        }
    });
    assert_untouched(&answers);
    assert!(memory(engine).unwrap().private > 256 * MIB, "it is the engine's memory");
    let after = memory(server.pid()).unwrap().private;
    assert!(after < before + 64 * MIB, "the server grew from {before} to {after}");
    restart(&server);
    until("the old engine has ended", || (!is_alive(engine)).then_some(()));
    assert!(memory(native_engine(&server)).unwrap().private < 128 * MIB);
    assert_eq!(server.get("/m/ok").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn lies_about_sizes_are_seen_and_hurt_nobody_else() {
    let server = troubled("").start();
    let php = server.engine();
    for route in ["ten", "three", "more"] {
        let mut conn = server.ask(&format!("/m/lies/{route}"));
        let whole = conn.try_response("GET").ok().flatten();
        assert!(whole.is_none_or(|answer| answer.status >= 500), "/lies/{route} passes for a whole answer");
    }
    until("the module answers again", || (server.get("/m/ok").status == 200).then_some(()));
    // A text that cannot be is empty; a body that cannot be is REGENT_INVALID, as is each of the words.
    let huge = server.get("/m/lies/huge").expect(200);
    assert_eq!((huge.text().as_str(), huge.header("x-huge")), ("0 -4", Some("")));
    let words = server.get("/m/lies/words").expect(200);
    assert_eq!(words.text(), "-4 -4 -4");
    assert_eq!(words.header("x-injected"), None);
    server.get("/m/lies/status").expect(500);
    assert_eq!(server.get("/").expect(200).text(), "php");
    assert_eq!(server.engine(), php);
    server.stop();
}

#[test]
fn only_handlers_that_promise_it_run_in_the_server_and_only_where_the_site_says_so() {
    let server = troubled("inline").start();
    let pid = |target: &str| server.get(target).expect(200).text().parse::<u32>().unwrap();
    assert_eq!(pid("/m/inline/pid"), server.pid());
    assert_eq!(pid("/m/pid"), native_engine(&server));
    server.stop();
    let server = troubled("").start();
    assert_eq!(server.get("/m/inline/pid").text(), native_engine(&server).to_string());
    server.stop();
}

#[test]
fn requests_beyond_max_connections_are_refused() {
    let server = troubled("threads 4\n\t\t\tmax_connections 2").start();
    let _hanging = [hang(&server), hang(&server)];
    let refused = server.get("/m/ok").expect(503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.get("/").expect(200).text(), "php");
}

#[test]
fn one_wildcard_site_serves_many_names() {
    let server = Setup::new()
        .module_text(
            "names",
            "names.cpp",
            "#include \"regent.hpp\"\nREGENT_MODULE(\"names\", \"1\") { app.get(\"/\", [](auto& request) {\n\
             return std::string(request.variable(\"SERVER_NAME\")); }); }\n",
        )
        .caddyfile(
            "{\n\tadmin off\n}\nhttp://*.example.com:PORT {\n\tbind LOOPBACK\n\troot ROOT\n\tnative DIRECTORY/libnames.so\n}\n\
             http://ADDRESS {\n\trespond other\n}\n",
        )
        .start();
    for name in ["one.example.com", "two.example.com"] {
        let answer = server.request("GET", "/").header("Host", name).send();
        assert_eq!(answer.expect(200).text(), name);
    }
    assert_eq!(server.get("/").expect(200).text(), "other");
    server.stop();
}

#[test]
fn a_library_that_was_replaced_serves_after_a_restart_and_a_broken_one_does_not() {
    let library = |version: &str, directory: &Path| {
        let built = directory.join("built.so");
        compile(&fixture("described.c"), &built, &[&format!("-DVERSION=\"{version}\"")]);
        fs::rename(built, directory.join("libdescribed.so")).unwrap();
    };
    let setup =
        Setup::new().admin("ADMIN").site("handle_path /m/* {\n\t\tnative DIRECTORY/libdescribed.so\n\t}");
    library("1.0", setup.directory());
    let server = setup.start();
    let version = || server.get("/m/version").expect(200).text();
    assert_eq!(version(), "1.0");
    library("2.0", server.directory());
    let answers = keep_asking(&server, 4, "/m/version", || restart(&server));
    assert!(answers.iter().all(|answer| answer.status == 200), "no request is lost");
    assert_eq!(version(), "2.0");
    fs::write(server.directory().join("broken.so"), "this is no library").unwrap();
    fs::rename(server.directory().join("broken.so"), server.directory().join("libdescribed.so")).unwrap();
    let refused = server.admin().request("POST", "/regent/native/restart").send();
    assert!(refused.status >= 400, "{}", refused.text());
    assert!(refused.text().contains("not a shared library"), "{}", refused.text());
    assert_eq!(version(), "2.0");
    server.stop();
}

#[test]
fn modules_that_cannot_be_loaded_keep_the_server_from_starting_and_it_says_why() {
    let described: &[(&[&str], &str)] = &[
        (&["-DMISSING_FUNCTION"], "is_defined_nowhere"),
        (&["-DDESCRIBED_ABI=99"], "made for version 99 of the module interface"),
        (&["-DSIZE=8"], "what it says of itself cannot be"),
        (&["-DSIZE=SIZE_MAX"], "what it says of itself cannot be"),
        (&["-DNAME=0"], "what it says of itself cannot be"),
        (&["-DNEED_COUNT=SIZE_MAX"], "what it says of itself cannot be"),
        (&["-DNEEDS={\"db\", 0}"], "depends on db, which is not loaded"),
        (&["-DNEEDS={\"described\", 0}"], "in a circle: described → described"),
        (&["-DSECOND_ROUTE=\"/version\""], "adds the route GET /version twice"),
        (&["-DSECOND_ROUTE=\"/{open\""], "adds a route that cannot be"),
        (&["-DFAILURE=\"there is no database\""], "could not be initialised: there is no database"),
        (&["-DNO_ROUTES"], "its init has added no route"),
    ];
    for (flags, reason) in described {
        let setup = Setup::new().module("described", &fixture("described.c"), flags);
        assert_refused(setup.directory(), "libdescribed.so", "", reason);
    }
    let setup = Setup::new().module_text("empty", "empty.c", "int nothing;\n");
    fs::write(setup.directory().join("libtext.so"), "this is no library").unwrap();
    assert_refused(setup.directory(), "libempty.so", "", "exports no function regent_module");
    assert_refused(setup.directory(), "libtext.so", "", "not a shared library");
    assert_refused(setup.directory(), "libnone.so", "", "the library does not exist");
}

#[test]
fn modules_that_do_not_fit_together_keep_the_server_from_starting_and_it_says_why() {
    let setup = Setup::new()
        .module("shop", &fixture("described.c"), &["-DNAME=\"shop\"", "-DNEEDS={\"stock\", \"1.10\"}"])
        .module("old", &fixture("described.c"), &["-DNAME=\"stock\"", "-DVERSION=\"1.9\""])
        .module(
            "circle",
            &fixture("described.c"),
            &["-DNAME=\"stock\"", "-DVERSION=\"2.0\"", "-DNEEDS={\"shop\", 0}"],
        )
        .module("same", &fixture("described.c"), &["-DNAME=\"shop\""]);
    let refused = |module, reason| assert_refused(setup.directory(), "libshop.so", module, reason);
    refused("", "depends on stock, which is not loaded");
    refused("libold.so", "depends on stock 1.10 or newer, but 1.9 is loaded");
    refused("libcircle.so", "in a circle: ");
    refused("libsame.so", "both are modules named shop");
}

/// A site with the module of troubles below `/m/`, and PHP.
fn troubled(options: &str) -> Setup {
    Setup::new()
        .module("troubles", &fixture("troubles.c"), &[])
        .file("index.php", "<?php echo 'php';")
        .admin("ADMIN")
        .site(&format!(
            "handle_path /m/* {{\n\t\tnative DIRECTORY/libtroubles.so {{\n\t\t\tconfig hanging DIRECTORY/hanging\n\
             \t\t\t{options}\n\t\t}}\n\t}}\n\tphp_server"
        ))
}

/// A site with two modules that fail in their own ways, in Rust below `/rust/` and in C++ below `/cpp/`, and PHP.
fn with_panics(options: &str) -> Setup {
    let setup = Setup::new()
        .module("thrower", &fixture("thrower.cpp"), &[])
        .file("index.php", "<?php echo 'php';")
        .admin("ADMIN")
        .site(&format!(
            "handle_path /cpp/* {{\n\t\tnative DIRECTORY/libthrower.so\n\t}}\n\thandle_path /rust/* {{\n\
             \t\tnative DIRECTORY/libpanics.so {{\n\t\t\t{options}\n\t\t}}\n\t}}\n\tphp_server"
        ));
    panics_into(setup.directory());
    setup
}

fn panics_into(directory: &Path) {
    let library = build_crate("panics", &crate_of(&fixture("panics")));
    fs::copy(library, directory.join("libpanics.so")).unwrap();
}

/// Waits for there to be exactly one.
fn native_engine(server: &Server) -> u32 {
    until("the server has one engine for native modules", || {
        match children_running(server.pid(), ENGINE).as_slice() {
            [engine] => Some(*engine),
            _ => None,
        }
    })
}

fn wait_for_another_engine(server: &Server, old: u32) {
    until("there is another engine", || (native_engine(server) != old).then_some(()));
}

/// A request whose handler hangs, and has begun to.
fn hang(server: &Server) -> Conn {
    let told = server.directory().join("hanging");
    let _ = fs::remove_file(&told);
    let conn = server.ask("/m/hang");
    until("the handler hangs", || fs::read_to_string(&told).ok().filter(|text| text == "hanging"));
    conn
}

fn restart(server: &Server) {
    server.admin().request("POST", "/regent/native/restart").send().expect(200);
}

fn assert_untouched(answers: &[Response]) {
    assert!(!answers.is_empty());
    for answer in answers {
        assert_eq!((answer.status, answer.text().as_str()), (200, "php"));
    }
}

/// Such a route answers `begun`, waits for a byte of the body, and then goes wrong.
fn assert_cut_short(server: &Server, target: &str) {
    let mut conn = server.connect();
    conn.send(format!("POST {target} HTTP/1.1\r\nHost: {}\r\nContent-Length: 1\r\n\r\n", server.address()));
    conn.read_until("begun");
    conn.send("x");
    let mut rest = Vec::new();
    let mut buffer = [0; 256];
    while let Ok(count @ 1..) = conn.read_some(&mut buffer) {
        rest.extend_from_slice(&buffer[..count]);
    }
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the client would take it for whole");
}

/// Log lines about engines of native modules that died.
fn deaths(server: &Server) -> impl Iterator<Item = String> {
    let log = server.log();
    log.lines()
        .filter(|line| line.contains("native modules"))
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

/// The server does not start with this library as a service and, unless it is empty, this module beside it.
fn assert_refused(directory: &Path, service: &str, module: &str, reason: &str) {
    let module =
        if module.is_empty() { String::new() } else { format!("\tregent {{\n\t\tmodule {module}\n\t}}\n") };
    let configuration = format!(
        "{{\n\tadmin off\n{module}}}\nhttp://{} {{\n\troot www\n\tnative {service}\n}}\n",
        own_address()
    );
    fs::write(directory.join("Caddyfile"), configuration).unwrap();
    let log = fs::File::create(directory.join("log")).unwrap();
    let mut server = run(directory, log);
    let status = until("the server ends", || server.0.try_wait().expect("it is our child"));
    let log = fs::read_to_string(directory.join("log")).unwrap();
    assert!(!status.success(), "{service} was loaded:\n{log}");
    assert!(log.contains(reason), "{service}: {reason:?} is not in the log:\n{log}");
    let file = service.split(' ').next().unwrap();
    assert!(log.contains(file) || log.contains("circle"), "the file is not in the log:\n{log}");
}

/// Killed when dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Errors are of a process that has ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(directory: &Path, log: fs::File) -> Running {
    let mut command: Command = regent_command(directory);
    command.args(["run", "--config", "Caddyfile"]).stdout(Stdio::null()).stderr(log);
    Running(command.spawn().unwrap())
}
