//! Another process of the program takes a running server's place.
#![forbid(unsafe_code)]

use regent_tests::h3::{Http3, block_on};
use regent_tests::process::{children_running, is_alive, listening_ports, runs};
use regent_tests::{Conn, Response, Server, Setup, TlsClient, keep_asking, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The engine is the first of its process group, also where each thread of PHP is a process.
const PID: &str = "<?php echo posix_getpgrp();";
/// Sends a part, and the rest when the file `go` is there.
const STREAM: &str = "<?php echo 'first '; flush(); file_put_contents(__DIR__ . '/started', '1'); \
                      while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'last';";

fn upgrade(server: &Server) -> Response {
    server.admin().request("POST", "/regent/upgrade").send()
}

/// The pid of the process that has taken the server's place.
fn upgraded(server: &Server) -> u32 {
    let answer = upgrade(server).expect(200).json();
    u32::try_from(answer["process"].as_u64().expect("a number")).unwrap()
}

fn error(answer: Response) -> String {
    answer.expect(503).json()["error"].as_str().expect("a text").to_owned()
}

fn setup() -> Setup {
    Setup::new().admin("ADMIN").global_options("grace_period 20s").file("index.php", PID)
}

/// Clients that keep their connections may take as long as a busy machine makes them.
fn patient() -> Setup {
    setup().global_options("grace_period 1m\n\tservers {\n\t\ttimeouts {\n\t\t\tlast_request 1m\n\t\t}\n\t}")
}

fn regent(directory: &Path, arguments: &[&str]) -> Output {
    regent_command(directory).args(arguments).output().expect("regent can be run")
}

fn get(conn: &mut Conn, target: &str) -> Response {
    conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    conn.response()
}

/// Asks again and again, on a connection that is kept as long as the server keeps it.
fn ask_on_kept_connections(server: &Server, done: &AtomicBool, answered: &AtomicUsize) {
    let mut conn = server.connect();
    while !done.load(Ordering::Relaxed) {
        let answer = get(&mut conn, "/index.php").expect(200);
        answered.fetch_add(1, Ordering::Relaxed);
        if answer.header("connection") == Some("close") {
            conn = server.connect();
        }
    }
}

#[test]
fn every_request_is_answered_and_no_connection_is_refused() {
    let mut server = patient().php_options("num_threads 4\n\t\tmax_wait_time off").start();
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let before = server.engine();
    let successor = std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..3).map(|_| scope.spawn(|| ask_on_kept_connections(&server, &done, &answered))).collect();
        let mut successor = 0;
        let answers = keep_asking(&server, 3, "/index.php", || {
            successor = upgraded(&server);
            // The engine ends with the process before.
            until("the engine has ended", || (!runs(before, "regent-php")).then_some(()));
        });
        assert!(answers.iter().all(|answer| answer.status == 200));
        done.store(true, Ordering::Relaxed);
        asking.into_iter().for_each(|asking| asking.join().expect("all are answered"));
        successor
    });
    assert!(answered.into_inner() > 0);
    server.follow(successor);
    assert_ne!(server.get("/index.php").expect(200).text(), before.to_string());
    server.stop();
}

#[test]
fn what_runs_is_answered_by_the_process_before() {
    let mut server = patient().file("stream.php", STREAM).start();
    let before = server.engine();
    let mut stream = server.ask("/stream.php");
    server.wait_for_file("started");
    let mut kept = server.connect();
    assert_eq!(get(&mut kept, "/index.php").expect(200).text(), before.to_string());
    let successor = upgraded(&server);
    let last = until("the connection is to end", || {
        let answer = get(&mut kept, "/index.php").expect(200);
        assert_eq!(answer.text(), before.to_string());
        (answer.header("connection") == Some("close")).then_some(answer)
    });
    assert_eq!(last.status, 200);
    assert!(kept.is_closed());
    assert_ne!(server.get("/index.php").expect(200).text(), before.to_string());
    server.write("go", "now");
    assert_eq!(stream.response().expect(200).text(), "first last");
    // It is kept, and would be waited for.
    drop(stream);
    server.follow(successor);
    server.stop();
}

#[test]
fn engines_have_none_of_the_sockets() {
    let mut server = setup().start();
    let successor = upgraded(&server);
    server.follow(successor);
    assert!(listening_ports(server.pid()).contains(&server.address().port()));
    assert!(listening_ports(server.engine()).is_empty());
    assert_eq!(fs::read_link(format!("/proc/{}/fd/0", server.pid())).unwrap(), Path::new("/dev/null"));
    server.stop();
}

#[test]
fn one_upgrade_follows_another_and_stop_ends_the_last() {
    let mut server = setup()
        .arguments(&["run", "--config", "DIRECTORY/Caddyfile", "--pidfile", "DIRECTORY/regent.pid"])
        .start();
    let file = server.directory().join("regent.pid");
    let pid = || fs::read_to_string(&file).unwrap().trim().parse::<u32>().ok();
    let first = server.pid();
    assert_eq!(pid(), Some(first));
    server.signal(Signal::USR2);
    let second = until("another process serves", || pid().filter(|pid| *pid != first));
    server.follow(second);
    let admin = server.admin().address().to_string();
    let output = regent(server.directory(), &["upgrade", "--address", &admin]);
    assert!(output.status.success(), "{output:?}");
    let third = pid().expect("a process");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("process {third} serves; the one before answers what it has begun, and ends\n")
    );
    server.follow(third);
    assert_eq!(pid(), Some(third));
    let output = regent(server.directory(), &["stop", "--address", &admin]);
    assert!(output.status.success(), "{output:?}");
    until("the server has ended", || (!is_alive(third)).then_some(()));
    until("its file has gone", || (!file.exists()).then_some(()));
}

#[test]
fn a_configuration_that_is_wrong_by_now_leaves_the_server_as_it_is() {
    let server = setup().start();
    let engine = server.engine();
    server.write_caddyfile("http://ADDRESS {\n\tnonsense\n}\n");
    let reason = error(upgrade(&server));
    assert!(reason.contains("Caddyfile:2:2") && reason.contains("nonsense"), "{reason}");
    let output = regent(server.directory(), &["upgrade", "--address", &server.admin().address().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Caddyfile:2:2"), "{output:?}");
    assert_eq!(server.get("/index.php").expect(200).text(), engine.to_string());
    assert!(children_running(server.pid(), "regent").is_empty());
    server.stop();
}

#[test]
fn a_worker_that_does_not_boot_leaves_the_server_as_it_is() {
    let worker = "<?php if (file_exists(__DIR__ . '/broken')) { exit(1); } \
                  while (frankenphp_handle_request(function () { echo 'served'; })) {}";
    let setup = setup().file("worker.php", worker);
    let server = setup
        .php_options(
            "worker {\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t\tmax_consecutive_failures 1\n\t\t}",
        )
        .start();
    assert_eq!(server.get("/worker.php").expect(200).text(), "served");
    server.write("broken", "");
    let reason = error(upgrade(&server));
    assert!(reason.contains("a worker script does not boot"), "{reason}");
    assert_eq!(server.get("/worker.php").expect(200).text(), "served");
    server.stop();
}

#[test]
fn what_the_admin_api_has_loaded_goes_on() {
    let mut server = setup().site("respond file").start();
    let loaded = format!(
        "{{\n\tadmin {}\n}}\nhttp://{} {{\n\trespond loaded\n}}\n# {}\n",
        server.admin().address(),
        server.address(),
        "much ".repeat(20_000)
    );
    server.admin().request("POST", "/load").body("text/caddyfile", loaded).send().expect(200);
    let successor = upgraded(&server);
    server.follow(successor);
    assert_eq!(server.get("/").text(), "loaded");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    let successor = upgraded(&server);
    server.follow(successor);
    assert_eq!(server.get("/").text(), "file");
    server.stop();
}

/// A server that was started by a link in its directory, which can be made to lead elsewhere.
fn linked() -> Server {
    let setup = setup().launcher(&["sh", "-c", "shift; exec ./regent \"$@\"", "sh"]);
    let program = regent_command(setup.directory()).get_program().to_owned();
    symlink(program, setup.directory().join("regent")).unwrap();
    setup.start()
}

fn replace_program(server: &Server, script: &str) {
    let program = server.directory().join("regent");
    let next = server.directory().join("next");
    regent_tests::process::write_program(&next, script);
    fs::rename(next, program).unwrap();
}

#[test]
fn a_program_that_fails_or_is_not_ready_in_time_is_ended() {
    let mut server = linked();
    let own = fs::read_link(server.directory().join("regent")).unwrap();
    replace_program(&server, "#!/bin/sh\nexit 3\n");
    let reason = error(upgrade(&server));
    assert!(reason.contains("ended before it served (exit status: 3)"), "{reason}");

    replace_program(&server, "#!/bin/sh\necho $$ > sleeping\nexec sleep 600\n");
    let answer = server.admin().request("POST", "/regent/upgrade?timeout=1").send();
    let reason = error(answer);
    assert!(reason.contains("was not ready within 1 s"), "{reason}");
    let sleeping = fs::read_to_string(server.directory().join("sleeping")).unwrap();
    assert!(!is_alive(sleeping.trim().parse().unwrap()));

    fs::remove_file(server.directory().join("regent")).unwrap();
    let reason = error(upgrade(&server));
    assert!(reason.contains("could not be started"), "{reason}");
    server.get("/index.php").expect(200);

    symlink(own, server.directory().join("regent")).unwrap();
    let successor = upgraded(&server);
    server.follow(successor);
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn a_stop_ends_an_upgrade_that_is_under_way() {
    let mut server = linked();
    replace_program(&server, "#!/bin/sh\necho $$ > sleeping\nexec sleep 600\n");
    let sleeping = server.directory().join("sleeping");
    server.signal(Signal::USR2);
    let pid =
        until("the program has started", || fs::read_to_string(&sleeping).ok()?.trim().parse::<u32>().ok());
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!is_alive(pid));
}

/// What the server says at a Unix socket.
fn ask_unix(path: &Path, target: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn unix_sockets_go_over_with_their_files() {
    let caddyfile = "{\n\tadmin unix/DIRECTORY/admin.sock\n}\n\
                     http:// {\n\tbind unix/DIRECTORY/site.sock\n\trespond hello\n}\n\
                     http://:PORT {\n\tbind LOOPBACK\n\trespond hello\n}\n";
    let mut server = Setup::new().caddyfile(caddyfile).start();
    let (admin, site) = (server.directory().join("admin.sock"), server.directory().join("site.sock"));
    let admin_address = format!("unix/{}", admin.display());
    let output = regent(server.directory(), &["upgrade", "--address", &admin_address]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let successor = said.split(' ').nth(1).and_then(|pid| pid.parse().ok()).expect("a process");
    server.follow(successor);
    assert!(ask_unix(&site, "/").ends_with("hello"));
    assert!(ask_unix(&admin, "/regent/live").contains("true"));
    server.stop();
    assert!(!admin.exists() && !site.exists());
}

#[test]
fn the_service_manager_is_told_whom_to_follow() {
    let setup = setup().env("NOTIFY_SOCKET", "DIRECTORY/notify");
    let socket = UnixDatagram::bind(setup.directory().join("notify")).unwrap();
    socket.set_read_timeout(Some(regent_tests::DEADLINE)).unwrap();
    let next = || {
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).expect("the server says something");
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    let mut server = setup.start();
    assert_eq!(next(), "READY=1");
    let successor = upgraded(&server);
    assert_eq!(next(), format!("MAINPID={successor}"));
    assert_eq!(next(), "READY=1");
    server.follow(successor);
    server.signal(Signal::TERM);
    assert_eq!(next(), "STOPPING=1", "of the new process only");
    until("the server ends", || (!is_alive(successor)).then_some(()));
}

#[test]
fn an_upgrade_is_refused_where_systemd_would_end_the_service_with_it() {
    let server = setup().launcher(&["sh", "-c", "export SYSTEMD_EXEC_PID=$$; exec \"$@\"", "sh"]).start();
    let reason = error(upgrade(&server));
    assert!(reason.contains("Type=notify"), "{reason}");
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn http3_goes_over_when_the_process_before_has_no_connection_of_it() {
    let caddyfile = "{\n\tadmin ADMIN\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n}\n\
                     localhost {\n\trespond hello\n}\n";
    let mut server = Setup::new().caddyfile(caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let client = TlsClient::credulous();
    block_on(async {
        let address = server.tls_address();
        let mut before = Http3::connect(&client, address, "localhost").await.expect("a connection");
        before.get("/").await.expect(200);
        let successor = upgraded(&server);
        assert_eq!(before.closed().await, 0x100, "in good order");
        server.follow(successor);
        let mut after = Http3::connect(&client, address, "localhost").await.expect("a connection");
        assert_eq!(after.get("/").await.text(), "hello");
    });
    server.stop();
}
