//! What the server does around native modules: crashes, hangs, restarts, what runs in the server itself, bounds, lists.
#![forbid(unsafe_code)]

use regent_tests::native::{compile, fixture};
use regent_tests::{Response, Server, Setup, keep_asking, own_address, regent_command, until};
use std::path::Path;
use std::process::Stdio;

/// A site whose `/m/*` is a module's, with these options, and whose PHP says that it is PHP.
fn setup(options: &str) -> Setup {
    Setup::new()
        .admin("ADMIN")
        .module("server", &fixture("server.c"), &[])
        .file("index.php", "<?php echo 'php';")
        .site(&site(options))
}

fn site(options: &str) -> String {
    format!(
        "handle_path /m/* {{\n\t\tnative DIRECTORY/libserver.so {{\n{options}\n\t\t}}\n\t}}\n\tphp_server"
    )
}

/// Puts another build of the module in the place of the one that is loaded, as an installation does.
fn replace_module(server: &Server, flags: &[&str]) {
    let new = server.directory().join("new.so");
    compile(&fixture("server.c"), &new, flags);
    std::fs::rename(&new, server.directory().join("libserver.so")).expect("the directory is ours");
}

fn native_engine(server: &Server) -> u32 {
    until("there is one engine for native modules", || match server.native_engines().as_slice() {
        [engine] => Some(*engine),
        _ => None,
    })
}

fn text(server: &Server, path: &str) -> String {
    server.get(path).expect(200).text()
}

#[test]
fn a_module_answers_beside_php_in_a_process_of_its_own() {
    let server = setup("threads 2").start();
    assert_eq!(text(&server, "/m/hello"), "hello");
    assert_eq!(text(&server, "/"), "php");
    let engine = native_engine(&server);
    assert_ne!(engine, server.engine());
    assert_eq!(text(&server, "/m/pid"), engine.to_string());
    server.wait_for_log("running native modules: server 1");
    server.wait_for_log("module server 1 is here");
    server.get("/m/no").expect(404);
    assert_eq!(
        server.request("POST", "/m/hello").send().expect(405).header("allow").map(str::is_empty),
        Some(false)
    );
    server.stop();
}

#[test]
fn without_services_there_is_no_engine_for_them() {
    let server = Setup::new().file("index.php", "<?php echo 'php';").start();
    assert_eq!(text(&server, "/"), "php");
    assert!(server.native_engines().is_empty());
    server.stop();
}

#[test]
fn a_module_sees_the_request_as_the_site_has_rewritten_it() {
    let site = "handle_path /m/* {\n\t\trewrite * {path}?more=1\n\t\tnative DIRECTORY/libserver.so {\n\t\t\tenv COLOUR green\n\t\t}\n\t}";
    let server = setup("").site(site).start();
    let variable = |name: &str| text(&server, &format!("/m/variable/{name}?a=b"));
    assert_eq!(variable("COLOUR"), "green");
    assert_eq!(variable("PATH_INFO"), "/variable/PATH_INFO");
    assert_eq!(variable("SCRIPT_NAME"), "");
    assert_eq!(variable("QUERY_STRING"), "more=1");
    assert_eq!(variable("REQUEST_URI"), "/m/variable/REQUEST_URI?a=b");
    assert_eq!(variable("REMOTE_ADDR"), "127.0.0.1");
    server.stop();
}

#[test]
fn a_module_that_crashes_under_load_costs_its_running_requests_and_nothing_of_php() {
    let server = setup("threads 4").start();
    text(&server, "/m/hello");
    let php = server.engine();
    let of_php = keep_asking(&server, 2, "/", || {
        let of_module = keep_asking(&server, 4, "/m/hello", || {
            for _ in 0..3 {
                let old = native_engine(&server);
                server.get("/m/crash?why=test").expect(502);
                until("another engine runs modules", || (native_engine(&server) != old).then_some(()));
                until("the module answers", || (server.get("/m/hello").status == 200).then_some(()));
            }
        });
        let lost = of_module.iter().filter(|answer| answer.status == 502).count();
        assert!(of_module.iter().all(|answer| [200, 502].contains(&answer.status)), "neither 200 nor 502");
        // Each death can take what the other three threads were running.
        assert!(lost <= 3 * 3, "{lost} of {}", of_module.len());
    });
    assert!(
        of_php.iter().all(|answer| answer.status == 200 && answer.body == b"php"),
        "neither 200 nor PHP's"
    );
    assert_eq!(server.engine(), php);
    server.stop();
}

#[test]
fn the_log_says_what_ran_when_an_engine_died() {
    let server = setup("threads 2")
        .file("crash.php", "<?php posix_kill(getmypid(), SIGSEGV); usleep(10000000);")
        .start();
    server.get("/m/crash?of=module").expect(502);
    server.wait_for_log("this request was running when the engine died");
    let line = |text: &str| {
        let log = server.log();
        let found = log.lines().find(|line| line.contains("this request was running") && line.contains(text));
        found.unwrap_or_else(|| panic!("no line with {text} in\n{log}")).to_owned()
    };
    let of_module = line("/m/crash?of=module");
    assert!(of_module.contains("\"pool\":\"server\"") && of_module.contains("\"GET\""), "{of_module}");
    server.wait_for_log("it was ended by signal 11");
    server.get("/crash.php?of=script").expect(502);
    server.wait_for_log("crash.php?of=script");
    let of_php = line("crash.php?of=script");
    assert!(of_php.contains("\"pool\":\"classic\"") && of_php.contains("/www/crash.php\""), "{of_php}");
    server.stop();
}

#[test]
fn a_module_that_hangs_holds_its_threads_and_nobody_elses() {
    let options = "threads 1\nmax_threads 1\ndeadline 200ms\nconfig mark DIRECTORY/begun";
    let server = setup(options).start();
    let mut hanging = server.ask("/m/hang");
    until("the handler hangs", || server.directory().join("begun").exists().then_some(()));
    // It cannot be answered in time, and is told so in time.
    let late = server.get("/m/hello").expect(503);
    assert!(late.header("retry-after").is_some());
    assert_eq!(text(&server, "/"), "php");
    let busy = server.admin().busy_threads();
    let of_module: Vec<_> = busy.iter().filter(|thread| thread.pool == "server").collect();
    assert_eq!((of_module.len(), of_module[0].uri.as_str()), (1, "/m/hang"));
    // An operator ends it by a restart: the old engine is drained, and what hangs there is killed with it.
    server.admin().request("POST", "/regent/native/restart").send().expect(200);
    // Its deadline is short for a machine that is busy with the restart.
    let served = until("it is served", || Some(server.get("/m/hello")).filter(|answer| answer.status == 200));
    assert_eq!(served.text(), "hello");
    hanging.send("");
    drop(hanging);
    drop(server);
}

#[test]
fn a_pool_of_a_module_grows_while_its_threads_wait() {
    let server = setup("threads 1\nmax_threads 8").start();
    let answers = regent_tests::in_parallel(8, |_| server.get("/m/slow/300"));
    assert!(answers.iter().all(|answer| answer.status == 200));
    let metrics = server.admin().get("/metrics").expect(200).text();
    let scaled_up = r#"regent_scale_events_total{pool="server",direction="up"} "#;
    assert!(metrics.contains(scaled_up) && !metrics.contains(&format!("{scaled_up}0")), "{metrics}");
    server.stop();
}

#[test]
fn threads_of_a_service_are_listed_added_and_removed_by_its_name() {
    let server = setup("threads 2\nmax_threads 4").start();
    let admin = server.admin();
    admin.wait_for_size("server", 2);
    let list = admin.get("/regent/threads").expect(200).json();
    let threads = list["ThreadDebugStates"].as_array().expect("a list");
    let native: Vec<_> = threads.iter().filter(|thread| thread["Engine"] == "native").collect();
    assert_eq!((threads.len(), native.len()), (4, 2));
    assert!(native.iter().all(|thread| thread["Name"] == "Native Thread - server"));
    let change = |method: &str, count: u16| {
        admin.request(method, &format!("/regent/threads?worker=server&count={count}")).send()
    };
    assert_eq!(change("PUT", 2).expect(200).json()["total"], 4);
    admin.wait_for_size("server", 4);
    change("PUT", 1).expect(409);
    assert_eq!(change("DELETE", 3).expect(200).json()["total"], 1);
    admin.wait_for_size("server", 1);
    assert_eq!(admin.size("classic"), 2);
    server.stop();
}

#[test]
fn a_service_is_in_the_metrics_and_statistics() {
    let server = setup("threads 2").start();
    text(&server, "/m/hello");
    server.get("/m/slow/0").expect(200);
    let admin = server.admin();
    let metrics = until("both requests are counted", || {
        let metrics = admin.get("/metrics").expect(200).text();
        metrics
            .contains(r#"regent_requests_total{pool="server",route="/m/slow/*",class="2xx"} 1"#)
            .then_some(metrics)
    });
    assert!(metrics.contains(r#"regent_threads{pool="server",state="idle"} 2"#), "{metrics}");
    assert!(metrics.contains("frankenphp_total_threads 2"), "{metrics}");
    let statistics = admin.get("/regent/statistics").expect(200).json();
    let pools: Vec<_> = statistics["pools"].as_array().unwrap().iter().map(|pool| &pool["name"]).collect();
    assert_eq!(pools, ["classic", "server"]);
    let engines: Vec<_> =
        statistics["generations"].as_array().unwrap().iter().map(|one| &one["engine"]).collect();
    assert_eq!(engines, ["php", "native"]);
    server.stop();
}

#[test]
fn a_restart_under_load_loses_nothing_and_brings_the_new_code() {
    let server = setup("threads 2\ninline").start();
    assert_eq!((text(&server, "/m/version"), text(&server, "/m/here/version")), ("1".into(), "1".into()));
    let php = server.engine();
    let answers = keep_asking(&server, 4, "/m/slow/2", || {
        for version in ["2", "3"] {
            replace_module(&server, &[&format!("-DVERSION=\"{version}\"")]);
            let answer = server.admin().request("POST", "/regent/native/restart").send().expect(200);
            assert_eq!(answer.json()["restarted"], 2);
            assert_eq!(text(&server, "/m/version"), version);
            assert_eq!(text(&server, "/m/here/version"), version);
        }
    });
    let lost: Vec<&Response> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(server.engine(), php);
    server.stop();
}

#[test]
fn a_cleanup_that_hangs_in_the_server_harms_nobody() {
    let server = setup("threads 1\ninline").start();
    let restart = |flags: &[&str], version: &str| {
        replace_module(&server, &[&format!("-DVERSION=\"{version}\""), flags.concat().as_str()]);
        server.admin().request("POST", "/regent/native/restart").send().expect(200);
        assert_eq!(text(&server, "/m/here/version"), version);
    };
    let go = server.directory().join("go");
    restart(&[&format!("-DWAIT_FOR=\"{}\"", go.display())], "2");
    restart(&["-DPLAIN"], "3");
    server.wait_for_log("the cleanup waits");
    restart(&["-DPLAIN"], "4");
    for _ in 0..20 {
        assert_eq!(text(&server, "/m/here/version"), "4");
    }
    std::fs::write(go, "").unwrap();
    server.wait_for_log("the cleanup has ended");
    server.stop();
}

#[test]
fn a_library_that_is_broken_at_a_restart_leaves_the_old_one_serving() {
    let server = setup("threads 2").start();
    assert_eq!(text(&server, "/m/version"), "1");
    let engine = native_engine(&server);
    let file = server.directory().join("libserver.so");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "no library").unwrap();
    let answer = server.admin().request("POST", "/regent/native/restart").send().expect(503);
    assert!(answer.text().contains("libserver.so"), "{}", answer.text());
    server.wait_for_log("the new generation cannot serve; the current one goes on");
    assert_eq!(text(&server, "/m/version"), "1");
    assert_eq!(native_engine(&server), engine);
    replace_module(&server, &["-DVERSION=\"2\""]);
    server.admin().request("POST", "/regent/native/restart").send().expect(200);
    assert_eq!(text(&server, "/m/version"), "2");
    server.stop();
}

#[test]
fn a_library_that_cannot_be_loaded_is_why_the_server_does_not_start() {
    for (options, expected) in
        [("", "native modules could not be started"), ("inline", "into the server (`inline`)")]
    {
        let directory = tempfile::TempDir::new().unwrap();
        let address = own_address();
        std::fs::write(directory.path().join("libbad.so"), "no library").unwrap();
        let config =
            format!("{{\n\tadmin off\n}}\nhttp://{address} {{\n\tnative libbad.so {{\n{options}\n\t}}\n}}\n");
        std::fs::write(directory.path().join("Caddyfile"), config).unwrap();
        let message = start_and_fail(directory.path());
        assert!(message.contains(expected) && message.contains("libbad.so"), "{message}");
    }
}

fn start_and_fail(directory: &Path) -> String {
    let mut command = regent_command(directory);
    command.args(["run", "--config", "Caddyfile"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().expect("the server can be started");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn handlers_that_never_block_run_in_the_server_where_the_site_allows_it() {
    let server = setup("threads 1\ninline").start();
    assert_eq!(text(&server, "/m/here"), server.pid().to_string());
    assert_eq!(text(&server, "/m/pid"), native_engine(&server).to_string());
    let echo = |bytes: usize| {
        let answer = server.post("/m/here/echo", "text/plain", vec![b'x'; bytes]).expect(200).text();
        let (process, body) = answer.split_once(' ').expect("a process and a body");
        assert!(body.len() == bytes && body.bytes().all(|byte| byte == b'x'), "{} of {bytes}", body.len());
        process.parse::<u32>().expect("a process")
    };
    assert_eq!((echo(0), echo(10), echo(64 * 1024)), (server.pid(), server.pid(), server.pid()));
    assert_eq!(echo(64 * 1024 + 1), native_engine(&server), "a large body is for the engine");
    let chunked = "POST /m/here/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    assert!(server.raw(chunked).ends_with(&format!("{} ab", server.pid())));
    until("it is counted", || {
        let metrics = server.admin().get("/metrics").expect(200).text();
        metrics
            .contains(r#"regent_requests_total{pool="server",route="/m/here",class="2xx"} 1"#)
            .then_some(())
    });
    server.stop();
}

#[test]
fn without_inline_every_handler_runs_in_the_engine() {
    let server = setup("threads 1").start();
    assert_eq!(text(&server, "/m/here"), native_engine(&server).to_string());
    assert!(
        !std::fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap().contains("libserver.so")
    );
    server.stop();
}

#[test]
fn no_more_requests_are_with_a_service_than_it_may_have() {
    let options = "threads 1\nmax_threads 1\nmax_connections 2\nconfig mark DIRECTORY/begun";
    let server = setup(options).start();
    let hanging = server.ask("/m/hang");
    server.admin().wait_for_requests("server", 1);
    let running = [hanging, server.ask("/m/hello")];
    server.admin().wait_for_requests("server", 2);
    let refused = server.get("/m/hello").expect(503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(text(&server, "/"), "php");
    let metrics = server.admin().get("/metrics").expect(200).text();
    let shed = r#"regent_shed_total{pool="server",route="/m/hello",reason="max_connections"} 1"#;
    assert!(metrics.contains(shed), "{metrics}");
    drop(running);
    until("both have left", || {
        let metrics = server.admin().get("/metrics").expect(200).text();
        let left = |route: &str| {
            let shed =
                format!(r#"regent_shed_total{{pool="server",route="{route}",reason="client_gone"}} 1"#);
            metrics.contains(&shed)
        };
        (left("/m/hang") && left("/m/hello")).then_some(())
    });
    // The one whose client has left still hangs; both places are free.
    let conns = [server.ask("/m/hello"), server.ask("/m/hello")];
    server.admin().wait_for_queue("server", 2);
    server.get("/m/hello").expect(503);
    drop(conns);
    drop(server);
}

#[test]
fn what_was_sent_before_an_answer_broke_off_arrives() {
    let server = setup("threads 1").start();
    for _ in 0..50 {
        let answer = server.raw("GET /m/half HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n4\r\nhalf\r\n"), "{answer}");
    }
    server.stop();
}

#[test]
fn trailers_go_to_clients_that_ask_for_them() {
    let server = setup("threads 1\ninline").start();
    for path in ["/m/trailers", "/m/here/trailers", "/m/stream/trailers"] {
        let ask = |te: &str| {
            server
                .raw(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close{te}\r\n\r\n"))
                .to_lowercase()
        };
        let with = ask(", TE\r\nTE: trailers");
        assert!(with.contains("\r\ntrailer: x-sum\r\n"), "{with}");
        assert!(with.ends_with("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n"), "{with}");
        let without = ask("");
        let (length, body) = if path.contains("stream") {
            ("\r\ntransfer-encoding: chunked\r\n", "\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
        } else {
            ("\r\ncontent-length: 4\r\n", "\r\n\r\nbody")
        };
        assert!(without.contains(length) && without.ends_with(body), "{without}");
    }
    server.stop();
}
