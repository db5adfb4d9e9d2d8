//! The admin API of a running server: what it tells, what it changes, and whom it turns away.
#![forbid(unsafe_code)]

use regent_tests::process::{listening_ports, runs, signal};
use regent_tests::{
    Admin, Conn, Gate, Response, STOP_AT_GATE, Server, Setup, Visitor, in_parallel, keep_asking,
    regent_command, until,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A worker `app` beside the classic script `classic.php`, both with room to grow.
const ROOMY: &str = "num_threads 8\n\t\tmax_threads 200\n\t\tmax_idle_time 10m\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\
                     \t\t\tname app\n\t\t\tnum 4\n\t\t}";

/// A site with a worker that tells its version and how many requests it has had, and the script `gated.php`.
fn site(php_options: &str) -> (Server, Gate) {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(php_options)
        .file("index.php", worker("one"))
        .file("classic.php", "<?php echo 'classic';")
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    (setup.start(), gate)
}

/// A worker script of this version: `one 1`, `one 2` …
fn worker(version: &str) -> String {
    format!(
        "<?php $n = 0; while (frankenphp_handle_request(function () use (&$n) {{ $n++; echo \"{version} $n\"; }})) {{ }}"
    )
}

/// Requests that are at the gate, each of which holds a thread.
fn hold_threads(server: &Server, gate: &Gate, count: usize) -> (Vec<Conn>, Vec<Visitor>) {
    let conns = (0..count).map(|number| server.ask(&format!("/gated.php?{number}"))).collect();
    (conns, gate.wait_for(count))
}

fn let_go((conns, visitors): (Vec<Conn>, Vec<Visitor>)) {
    drop(visitors);
    for mut conn in conns {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
}

fn change(admin: Admin, method: &str, query: &str) -> Response {
    admin.request(method, &format!("/regent/threads?{query}")).send()
}

fn restart(admin: Admin) -> Response {
    admin.request("POST", "/regent/workers/restart").send()
}

/// The reason that an error gives.
fn reason(answer: &Response) -> String {
    answer.json()["error"].as_str().expect("a sentence").to_owned()
}

#[test]
fn the_log_says_where_the_api_is_and_everything_there_answers() {
    let (server, _gate) = site(ROOMY);
    let admin = server.admin();
    POOLS.into_iter().for_each(|pool| admin.wait_for_size(pool, 4));
    server.wait_for_log(&format!("the dashboard and the admin API are at http://{}", admin.address()));
    for (path, content_type) in [
        ("/", "text/html"),
        ("/metrics", "text/plain"),
        ("/config/", "application/json"),
        ("/config/apps/frankenphp", "application/json"),
        ("/regent/openapi.json", "application/json"),
        ("/regent/threads", "application/json"),
        ("/regent/queue", "application/json"),
        ("/regent/statistics", "application/json"),
        ("/regent/ready", "application/json"),
        ("/regent/live", "application/json"),
        ("/frankenphp/threads", "application/json"),
        ("/frankenphp/queue", "application/json"),
        ("/frankenphp/ready", "application/json"),
    ] {
        let answer = admin.get(path).expect(200);
        let found = answer.header("content-type").expect("a type");
        assert!(found.starts_with(content_type), "{path}: {found}");
        assert!(!answer.body.is_empty(), "{path}");
    }
    assert_eq!(admin.get("/regent/ready").json(), json!({ "ready": true }));
    let application = admin.get("/config/apps/frankenphp").json();
    assert_eq!(application["workers"][0]["name"], "app");
    assert_eq!(application["workers"][0]["file_name"], server.root().join("index.php").display().to_string());
    assert_eq!((&application["num_threads"], &application["workers"][0]["num"]), (&json!(8), &json!(4)));
    server.stop();
}

#[test]
fn the_list_of_threads_shows_what_a_busy_one_is_at() {
    let (server, gate) = site("num_threads 2");
    server.admin().wait_for_size("classic", 2);
    // What means something in JSON or JavaScript, as far as it may stand in a request line.
    let uri = "/gated.php?}]'\\u0000\\\\{`é";
    let mut conn = server.connect();
    conn.send(format!("PATCH {uri} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    let visitor = gate.next();
    let list = server.admin().get("/frankenphp/threads").expect(200).json();
    let threads = list["ThreadDebugStates"].as_array().expect("a list");
    assert_eq!((threads.len(), &list["ReservedThreadCount"]), (2, &json!(0)));
    let (busy, idle): (Vec<&Value>, Vec<&Value>) =
        threads.iter().partition(|thread| thread["IsBusy"] == true);
    let (busy, idle) = (busy[0], idle[0]);
    assert_eq!((&busy["CurrentURI"], &busy["CurrentMethod"]), (&json!(uri), &json!("PATCH")));
    assert_eq!((&busy["Name"], &busy["State"]), (&json!("Regular PHP Thread"), &json!("ready")));
    assert!(busy["RequestStartedAt"].as_u64() > Some(1_700_000_000_000), "{busy}");
    assert_eq!((&idle["IsWaiting"], &idle["CurrentURI"]), (&json!(true), &json!("")));
    drop(visitor);
    assert_eq!(conn.response().expect(200).text(), "done");
    until("both are idle", || server.admin().busy_threads().is_empty().then_some(()));
    let list = server.admin().get("/frankenphp/threads").expect(200).json();
    let used = |thread: &Value| thread["MemoryUsage"].as_u64() > Some(100_000);
    assert!(list["ThreadDebugStates"].as_array().expect("a list").iter().any(used), "{list}");
    server.stop();
}

/// What one pool does not have, another may: the bound is that of all.
#[test]
fn the_threads_that_may_still_be_started_were_those_of_one_pool() {
    let server = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 3\nmax_threads 8\nworker {\nfile ROOT/w.php\nnum 2\n}")
        .file("w.php", "<?php while (frankenphp_handle_request(function () {}));")
        .start();
    let list = server.admin().get("/frankenphp/threads").expect(200).json();
    let threads = list["ThreadDebugStates"].as_array().expect("a list").len();
    assert_eq!((threads, &list["ReservedThreadCount"]), (3, &json!(5)));
    let classic = server.admin().request("PUT", "/frankenphp/threads?count=2").send();
    classic.expect(200);
    let list = server.admin().get("/frankenphp/threads").expect(200).json();
    assert_eq!(list["ReservedThreadCount"], json!(3));
    server.stop();
}

/// Dashboards had rows for workers that nobody has any more.
#[test]
fn a_worker_of_a_former_configuration_is_in_no_metrics() {
    let caddyfile = |name: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 2\n\t\tworker {{\n\t\t\tfile ./www/{name}.php\n\t\t\tnum 1\n\t\t}}\n\t}}\n}}\n\
             http://:PORT {{\n\tbind LOOPBACK\n\troot DIRECTORY/www\n\tphp_server\n}}\n"
        )
    };
    let setup = Setup::new().caddyfile(&caddyfile("one"));
    let code = "<?php while (frankenphp_handle_request(function () { echo 'seen'; }));";
    let server = setup.file("one.php", code).file("two.php", code).start();
    let label = |name: &str| format!("worker=\"{}\"", server.root().join(format!("{name}.php")).display());
    assert_eq!(server.get("/one.php").text(), "seen");
    let metrics = || server.admin().get("/metrics").expect(200).text();
    let before = metrics();
    assert!(before.contains(&label("one")) && !before.contains("./www"), "{before}");
    let text = std::fs::read_to_string(server.directory().join("Caddyfile")).expect("it was started with it");
    std::fs::write(server.directory().join("Caddyfile"), text.replace("one.php", "two.php"))
        .expect("it is ours");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    let after = metrics();
    assert!(after.contains(&label("two")) && !after.contains(&label("one")), "{after}");
    server.stop();
}

#[test]
fn threads_are_added_and_removed_under_load() {
    let (server, _gate) = site(ROOMY);
    let admin = server.admin();
    // More clients than threads would make the pool grow by itself.
    let answers = keep_asking(&server, 2, "/", || {
        for (method, query, total) in [
            ("PUT", "worker=app&count=3", 7),
            ("PUT", "", 5),
            ("DELETE", "worker=app&count=2", 5),
            ("DELETE", "count=2", 3),
            ("DELETE", "worker=app", 4),
        ] {
            let answer = change(admin, method, query).expect(200).json();
            let pool = if query.contains("app") { "app" } else { "classic" };
            assert_eq!(
                (&answer["total"], &answer["pool"]),
                (&json!(total), &json!(pool)),
                "{method} {query}"
            );
            admin.wait_for_size(pool, total);
        }
    });
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let reasons: Vec<Value> = admin.scale_events().iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "added by hand").count(), 2, "{reasons:?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "removed by hand").count(), 3, "{reasons:?}");
    server.stop();
}

#[test]
fn a_worker_is_named_by_its_file_too() {
    let (server, _gate) = site(ROOMY);
    let file = server.root().join("index.php").display().to_string();
    let answer = change(server.admin(), "PUT", &format!("worker={file}")).expect(200).json();
    assert_eq!(answer, json!({ "pool": "app", "worker": file, "added": 1, "total": 5 }));
    server.stop();
}

#[test]
fn a_thread_that_is_removed_finishes_its_request() {
    let (server, gate) = site("num_threads 4\n\t\tmax_threads 8");
    let admin = server.admin();
    let held = hold_threads(&server, &gate, 4);
    assert_eq!(change(admin, "DELETE", "count=3").expect(200).json()["total"], 1);
    let leaving: Vec<_> = admin.threads().into_iter().filter(|thread| thread.activity == "leaving").collect();
    assert_eq!(leaving.len(), 3);
    assert!(leaving.iter().all(|thread| thread.uri.starts_with("/gated.php?")), "{leaving:?}");
    let_go(held);
    admin.wait_for_size("classic", 1);
    assert_eq!(admin.threads().len(), 1);
    assert_eq!(server.get("/classic.php").expect(200).text(), "classic");
    server.stop();
}

#[test]
fn what_cannot_be_done_is_refused_as_a_whole() {
    let (server, gate) = site("num_threads 3\n\t\tmax_threads 6");
    let admin = server.admin();
    let held = hold_threads(&server, &gate, 3);
    for (method, query, hint) in
        [("PUT", "count=4", "may have 6"), ("DELETE", "count=3", "has 3"), ("DELETE", "count=65535", "has 3")]
    {
        let answer = change(admin, method, query).expect(409);
        assert!(reason(&answer).contains(hint), "{method} {query}: {}", reason(&answer));
        assert_eq!(admin.size("classic"), 3, "{method} {query}");
    }
    let_go(held);
    assert_eq!(change(admin, "PUT", "count=3").expect(200).json()["total"], 6);
    change(admin, "PUT", "").expect(409);
    server.stop();
}

#[test]
fn bad_input_gets_its_error_and_changes_nothing() {
    let (server, _gate) = site(ROOMY);
    let admin = server.admin();
    admin.wait_for_size("app", 4);
    let sent = |method: &str, target: &str, fields: &[(&str, &str)]| {
        let request = admin.request(method, target);
        fields.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
    };
    let mut refused = Vec::new();
    for method in ["PUT", "DELETE"] {
        for count in ["0", "-1", "x", "1000000000", "65536", "", "1.5", "+1", "%00"] {
            refused.push((400, sent(method, &format!("/regent/threads?count={count}"), &[])));
        }
        refused.push((400, sent(method, "/regent/threads?count=1&count=1", &[])));
        refused.push((400, sent(method, "/regent/threads?number=1", &[])));
        for unknown in ["nobody.php", "", "../index.php", "app%20", "%ff"] {
            refused.push((404, sent(method, &format!("/frankenphp/threads?worker={unknown}"), &[])));
        }
        refused.push((409, sent(method, "/regent/threads?count=1000", &[])));
    }
    for (method, target) in [
        ("POST", "/regent/threads"),
        ("PATCH", "/regent/threads?count=1"),
        ("GET", "/regent/workers/restart"),
        ("GET", "/stop"),
        ("PUT", "/stop"),
        ("DELETE", "/metrics"),
        ("BREW", "/regent/queue"),
    ] {
        let answer = sent(method, target, &[]);
        assert!(answer.header("allow").is_some(), "{method} {target}");
        refused.push((405, answer));
    }
    refused.push((400, sent("POST", "/stop?now", &[])));
    refused.push((400, sent("POST", "/regent/workers/restart?x=1", &[])));
    refused.push((404, sent("PUT", "/regent/thread", &[])));
    refused.push((404, sent("PUT", "/regent/threads/", &[])));
    let site = format!("http://{}", server.address());
    for field in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", site.as_str()),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Host", "evil.example"),
        ("Host", "127.0.0.1.evil.example:2019"),
        ("Host", "192.0.2.1"),
    ] {
        for (method, target) in [
            ("PUT", "/regent/threads"),
            ("POST", "/stop"),
            ("POST", "/regent/workers/restart"),
            ("GET", "/config/"),
        ] {
            refused.push((403, sent(method, target, &[field])));
        }
    }
    for (status, answer) in refused {
        let answer = answer.expect(status);
        assert!(!reason(&answer).is_empty());
    }
    assert_eq!((admin.size("app"), admin.size("classic")), (4, 4));
    assert_eq!(admin.scale_events(), Vec::<Value>::new());
    assert_eq!(admin.metric("regent_generations_total", &[]), 1.0);
    assert!(server.get("/").expect(200).text().starts_with("one "));
    server.stop();
}

#[test]
fn a_restart_of_the_workers_loads_new_code_and_loses_no_request() {
    let (server, _gate) = site(ROOMY);
    let admin = server.admin();
    server.get("/").expect(200);
    let answers = keep_asking(&server, 4, "/", || {
        for version in ["two", "three"] {
            server.write("index.php", worker(version));
            // More if the load has made the pool grow meanwhile.
            let restarted = restart(admin).expect(200).json()["restarted"].as_u64();
            assert!(restarted.is_some_and(|threads| threads >= 4), "{restarted:?}");
            assert!(server.get("/").expect(200).text().starts_with(version));
        }
    });
    for answer in &answers {
        let text = answer.clone().expect(200).text();
        assert!(["one ", "two ", "three "].iter().any(|version| text.starts_with(version)), "{text}");
    }
    let texts: Vec<String> = answers.iter().map(Response::text).collect();
    assert!(texts.iter().any(|text| text.starts_with("one ")), "the load began too late");
    server.stop();
}

/// A worker script of this version that stops at the gate when it boots.
fn gated_worker(version: &str) -> String {
    let gate = STOP_AT_GATE
        .replace("$_SERVER['DOCUMENT_ROOT']", "__DIR__")
        .replace("$_SERVER['QUERY_STRING']", "'boot'");
    worker(version).replacen("<?php", &format!("<?php {gate}"), 1)
}

/// A call that the server has received, and whose answer is to be read.
fn ask_for_restart(admin: Admin) -> Conn {
    let mut conn = Conn::open(admin.address());
    conn.send(format!("POST /regent/workers/restart HTTP/1.1\r\nHost: {}\r\n\r\n", admin.address()));
    conn.wait_until_read();
    // Calls are carried out in their order.
    admin.get("/regent/queue").expect(200);
    conn
}

#[test]
fn a_restart_that_is_asked_for_during_another_loads_what_is_newer_still() {
    let (server, gate) =
        site("num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tname app\n\t\t\tnum 1\n\t\t}");
    let admin = server.admin();
    server.get("/").expect(200);
    server.write("index.php", gated_worker("two"));
    let mut first = ask_for_restart(admin);
    let boot_of_two = gate.next();
    server.write("index.php", gated_worker("three"));
    let mut second = ask_for_restart(admin);
    drop(boot_of_two);
    first.response().expect(200);
    drop(gate.next());
    second.response().expect(200);
    assert!(server.get("/").expect(200).text().starts_with("three "));
    server.stop();
}

#[test]
fn a_restarted_worker_has_no_state_of_before() {
    let (server, _gate) =
        site("num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tname app\n\t\t\tnum 1\n\t\t}");
    for n in 1..=3 {
        assert_eq!(server.get("/").expect(200).text(), format!("one {n}"));
    }
    assert_eq!(restart(server.admin()).expect(200).json()["restarted"], 1);
    assert_eq!(server.get("/").expect(200).text(), "one 1");
    // As Laravel Octane does it.
    let application = server.admin().get("/config/apps/frankenphp").expect(200).body;
    let reload =
        server.admin().request("PATCH", "/config/apps/frankenphp").body("application/json", application);
    reload.send().expect(200);
    assert_eq!(server.get("/").expect(200).text(), "one 1");
    server.stop();
}

#[test]
fn a_broken_script_leaves_the_old_workers_serving() {
    let (server, _gate) = site(
        "num_threads 3\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tname app\n\t\t\tnum 2\n\
         \t\t\tmax_consecutive_failures 2\n\t\t}",
    );
    let admin = server.admin();
    server.get("/").expect(200);
    server.write("index.php", "<?php throw new RuntimeException('broken by a deployment');");
    let answers = keep_asking(&server, 3, "/", || {
        let refused = restart(admin).expect(503);
        assert!(reason(&refused).contains("the old ones go on"), "{}", reason(&refused));
    });
    assert!(
        answers.iter().all(|answer| answer.status == 200 && answer.text().starts_with("one ")),
        "{answers:?}"
    );
    server.wait_for_log("broken by a deployment");
    assert_eq!(admin.get("/regent/ready").status, 200);
    server.write("index.php", worker("repaired"));
    assert_eq!(restart(admin).expect(200).json()["restarted"], 2);
    assert!(server.get("/").expect(200).text().starts_with("repaired "));
    server.stop();
}

#[test]
fn a_stop_by_the_api_is_in_good_order() {
    let (mut server, gate) = site("num_threads 2");
    let held = hold_threads(&server, &gate, 2);
    let mut waiting = server.ask("/classic.php");
    server.admin().wait_for_queue("classic", 1);
    let engine = server.engine();
    assert_eq!(
        server.admin().request("POST", "/stop").send().expect(200).json(),
        json!({ "stopping": true })
    );
    until("new connections are refused", || Conn::try_open(server.address()).is_err().then_some(()));
    let_go(held);
    assert_eq!(waiting.response().expect(200).text(), "classic");
    assert!(server.wait().success());
    until("the engine has ended", || (!runs(engine, "regent-php")).then_some(()));
    assert!(Conn::try_open(server.admin().address()).is_err());
}

#[test]
fn it_is_not_ready_while_no_engine_stays_alive_and_lives_all_the_same() {
    let script = "<?php if (file_exists(__DIR__ . '/deadly')) { posix_kill(getmypid(), SIGKILL); } \
                  while (frankenphp_handle_request(function () { echo 'up'; })) { }";
    let (server, _gate) = site("num_threads 2\n\t\tworker ROOT/index.php 1");
    let admin = server.admin();
    until("it is ready", || (admin.get("/regent/ready").status == 200).then_some(()));
    server.write("deadly", "1");
    server.write("index.php", script);
    assert!(signal(server.engine(), Signal::KILL));
    let not_ready =
        until("it is not ready", || Some(admin.get("/regent/ready")).filter(|ready| ready.status == 503));
    assert!(reason(&not_ready).starts_with("not ready: "), "{}", reason(&not_ready));
    admin.get("/regent/live").expect(200);
    admin.get("/metrics").expect(200);
    admin.get("/regent/threads").expect(200);
    fs::remove_file(server.root().join("deadly")).expect("it is there");
    until("it is ready again", || (admin.get("/regent/ready").status == 200).then_some(()));
    assert_eq!(server.get("/").expect(200).text(), "up");
    server.stop();
}

#[test]
fn it_is_not_ready_without_a_thread_of_a_worker() {
    let server = Setup::new()
        .admin("ADMIN")
        .php_options(
            "num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/broken.php\n\t\t\tname broken\n\t\t\tnum 1\n\t\t\tmax_consecutive_failures 1\n\t\t}",
        )
        .file("broken.php", "<?php throw new RuntimeException('it does not boot');")
        .file("classic.php", "<?php echo 'classic';")
        .start();
    server.wait_for_log("the worker script failed too often");
    server.admin().wait_for_size("classic", 1);
    let answer = server.admin().get("/regent/ready").expect(503);
    assert!(reason(&answer).contains("`broken`"), "{}", reason(&answer));
    server.admin().get("/regent/live").expect(200);
    assert_eq!(server.get("/classic.php").expect(200).text(), "classic");
    server.stop();
}

#[test]
fn switched_off_it_listens_nowhere() {
    let ports = |admin: &str| {
        let server = Setup::new().admin(admin).file("index.php", "<?php echo 'ok';").start();
        assert_eq!(server.get("/").expect(200).text(), "ok");
        let ports = listening_ports(server.pid());
        let mut expected = vec![server.address().port()];
        expected.extend((admin != "off").then(|| server.admin().address().port()));
        expected.sort_unstable();
        server.stop();
        (ports, expected)
    };
    for admin in ["off", "ADMIN"] {
        let (ports, expected) = ports(admin);
        assert_eq!(ports, expected, "admin {admin}");
    }
}

/// What the API answers through a Unix socket.
fn ask_socket(socket: &Path, request_line: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    write!(stream, "{request_line} HTTP/1.1\r\nConnection: close\r\n\r\n").expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

#[test]
fn a_unix_socket_is_for_the_own_user_and_goes_with_the_server() {
    let server = Setup::new()
        .admin("unix/DIRECTORY/admin.sock")
        .php_options("num_threads 2\n\t\tmax_threads 4")
        .file("index.php", "<?php echo 'ok';")
        .start();
    let socket = server.directory().join("admin.sock");
    assert_eq!(listening_ports(server.pid()), [server.address().port()]);
    assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(ask_socket(&socket, "GET /regent/live").starts_with("HTTP/1.1 200 "));
    let added = ask_socket(&socket, "PUT /regent/threads?count=2");
    assert!(added.contains("\"total\": 4"), "{added}");
    // The directory goes with the server that owns it: the file has to be looked for before.
    let kept = server.directory().to_owned();
    let mut server = server;
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(kept.is_dir() && !socket.exists());
}

#[test]
fn a_second_server_on_the_same_address_says_what_to_do() {
    let (server, _gate) = site("num_threads 2");
    let directory = server.directory().join("second");
    fs::create_dir(&directory).expect("the directory is ours");
    let file = directory.join("Caddyfile");
    fs::write(&file, format!("{{\n\tadmin {}\n}}\n", server.admin().address())).expect("it can be written");
    let output =
        regent_command(&directory).args(["run", "--config"]).arg(&file).output().expect("regent runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains(&server.admin().address().to_string()), "{said}");
    assert!(said.contains("admin off") && said.contains("admin localhost:2020"), "{said}");
    server.admin().get("/regent/live").expect(200);
    server.stop();
}

/// What one of many impatient operators has done.
#[derive(Default)]
struct Operator {
    /// Threads that the answers say were added, less those removed: of `classic`, and of `app`.
    balance: [i64; 2],
    /// For a sequence that is the same each time.
    state: u64,
}

const POOLS: [&str; 2] = ["classic", "app"];

impl Operator {
    fn new(number: usize) -> Self {
        Self { balance: [0; 2], state: number as u64 * 2 + 1 }
    }

    /// xorshift64*
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    fn act(&mut self, admin: Admin) {
        let pool = self.below(2) as usize;
        match self.below(16) {
            0 => drop(restart(admin).expect(200)),
            1..=5 => drop(admin.threads()),
            6..=10 => self.change(admin, pool, "PUT", 1),
            // It takes back what it gave: the load always has threads enough, and scaling nothing to do.
            _ if self.balance[pool] > 0 => self.change(admin, pool, "DELETE", -1),
            _ => drop(admin.get("/regent/queue").expect(200)),
        }
    }

    fn change(&mut self, admin: Admin, pool: usize, method: &str, sign: i64) {
        let most = if sign < 0 { self.balance[pool].min(3) } else { 3 };
        let count = 1 + self.below(most as u64) as i64;
        let worker = if pool == 1 { "worker=app&" } else { "" };
        let answer = change(admin, method, &format!("{worker}count={count}"));
        match answer.status {
            200 => self.balance[pool] += sign * count,
            // The limit, which many reach together.
            _ => drop(answer.expect(409)),
        }
    }
}

/// Threads that scaling has added on its own, as the log has it; less those that it has taken away.
fn scaled(server: &Server, pool: &str) -> i64 {
    let of_line = |line: &str| {
        let event: Value = serde_json::from_str(line).ok()?;
        let (name, reason) = (event["pool"].as_str()?, event["reason"].as_str()?);
        let repairs = reason.starts_with("below the minimum") || reason.starts_with("above the maximum");
        let (_, change) = reason.rsplit_once(": ").filter(|_| name == pool && !repairs)?;
        let (from, to) = change.split_once(" → ")?;
        Some(to.parse::<i64>().ok()? - from.parse::<i64>().ok()?)
    };
    server.log().lines().filter_map(of_line).sum()
}

fn operators_do_as_they_like(rounds: usize) {
    let (server, _gate) = site(ROOMY);
    let admin = server.admin();
    let mut operators = Vec::new();
    let mut workers = Vec::new();
    let classic = keep_asking(&server, 1, "/classic.php", || {
        workers = keep_asking(&server, 1, "/", || {
            operators = in_parallel(24, |number| {
                let mut operator = Operator::new(number);
                (0..rounds).for_each(|_| operator.act(admin));
                operator
            });
        });
    });
    for answer in classic {
        assert_eq!(answer.expect(200).text(), "classic");
    }
    for answer in workers {
        assert!(answer.expect(200).text().starts_with("one "));
    }
    for (index, pool) in POOLS.into_iter().enumerate() {
        let given: i64 = operators.iter().map(|operator| operator.balance[index]).sum();
        let expected = (4 + given + scaled(&server, pool)) as u64;
        admin.wait_for_size(pool, expected);
    }
    server.stop();
}

#[test]
fn many_operators_at_once_lose_no_request_and_no_count() {
    operators_do_as_they_like(20);
}

#[test]
#[ignore = "long: a thousand rounds"]
fn many_operators_for_a_long_time_lose_no_request_and_no_count() {
    operators_do_as_they_like(1000);
}
