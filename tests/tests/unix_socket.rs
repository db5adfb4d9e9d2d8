//! Sites that listen on Unix sockets.
#![forbid(unsafe_code)]

use regent_tests::{DEADLINE, Gate, STOP_AT_GATE, Server, Setup, regent_command, until};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SITE: &str = "bind unix/DIRECTORY/site.sock|0660\n\tphp_server";

fn site_socket(server: &Server) -> PathBuf {
    server.directory().join("site.sock")
}

fn connect(path: &Path) -> UnixStream {
    let stream =
        UnixStream::connect(path).unwrap_or_else(|error| panic!("connecting to {}: {error}", path.display()));
    stream.set_read_timeout(Some(DEADLINE)).expect("a time limit can be set");
    stream
}

/// Sends these bytes, and gives all that comes back until the server closes the connection.
fn raw(path: &Path, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(path);
    stream.write_all(bytes.as_ref()).expect("the server takes what is sent");
    rest(&mut stream)
}

fn rest(stream: &mut UnixStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, to its end");
    answer
}

/// The body of the answer to a GET, which must be 200.
fn get(path: &Path, target: &str) -> String {
    let answer =
        raw(path, format!("GET {target} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    body.to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the socket has a file").permissions().mode() & 0o777
}

#[test]
fn a_site_answers_on_its_unix_socket_and_on_tcp() {
    let server = Setup::new().site(SITE).file("index.php", "<?php echo 'php';").file("a.txt", "file").start();
    let socket = site_socket(&server);
    assert_eq!((get(&socket, "/").as_str(), get(&socket, "/a.txt").as_str()), ("php", "file"));
    assert_eq!(server.get("/").expect(200).text(), "php");
    assert_eq!(mode(&socket), 0o660);
    server.stop();
}

#[test]
fn without_a_mode_only_the_own_user_can_connect() {
    let server = Setup::new().site("bind unix/DIRECTORY/site.sock").start();
    assert_eq!(mode(&site_socket(&server)), 0o200);
    server.stop();
}

#[test]
fn the_site_of_a_unix_socket_is_chosen_by_host_alone() {
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n}\nhttp://:PORT {\n\tbind LOOPBACK\n\troot * ROOT\n\tfile_server\n}\n\
             http://example.com:1 {\n\tbind unix/DIRECTORY/site.sock\n\trespond one\n}\n\
             :2 {\n\tbind unix/DIRECTORY/site.sock\n\trespond any\n}\n",
        )
        .start();
    let socket = site_socket(&server);
    assert_eq!(get(&socket, "/"), "one");
    assert!(raw(&socket, "GET / HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n").ends_with("any"));
    server.stop();
}

#[test]
fn a_connection_serves_many_requests_with_large_bodies() {
    const ECHO: &str = "<?php echo strlen(file_get_contents('php://input')), str_repeat('~', 500_000);";
    let server = Setup::new().site(SITE).file("index.php", ECHO).start();
    let body = "b".repeat(300_000);
    let one = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut stream = connect(&site_socket(&server));
    let mut writer = stream.try_clone().expect("a second handle of the connection");
    let writing = std::thread::spawn(move || writer.write_all(format!("{one}{one}{last}").as_bytes()));
    let answer = rest(&mut stream);
    writing.join().expect("no panic").expect("the server takes what is sent");
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(answer.matches("300000~").count(), 2);
    assert_eq!(answer.matches('~').count(), 3 * 500_000);
    server.stop();
}

#[test]
fn clients_have_no_address() {
    const SHOW: &str = "<?php $keys = ['REMOTE_ADDR', 'REMOTE_PORT', 'SERVER_ADDR', 'SERVER_NAME', 'SERVER_PORT']; \
                        echo json_encode(array_intersect_key($_SERVER, array_flip($keys)));";
    let site = "bind unix/DIRECTORY/site.sock\n\tlog {\n\t\toutput file DIRECTORY/access.log\n\t}\n\t\
                @known remote_ip 0.0.0.0/0 ::/0\n\terror @known 403\n\trespond /placeholder [{remote_host}]\n\tphp_server";
    let server = Setup::new().site(site).file("show.php", SHOW).start();
    let socket = site_socket(&server);
    let seen: serde_json::Value = serde_json::from_str(&get(&socket, "/show.php")).expect("JSON");
    let expected = json!({
        "REMOTE_ADDR": "", "REMOTE_PORT": "", "SERVER_ADDR": "", "SERVER_NAME": "example.com", "SERVER_PORT": "",
    });
    assert_eq!(seen, expected);
    assert_eq!(get(&socket, "/placeholder"), "[]");
    server.get("/show.php").expect(403);
    let log = server.directory().join("access.log");
    let line = until("the request is logged", || {
        let log = fs::read_to_string(&log).ok()?;
        log.lines().find(|line| line.contains("/placeholder")).map(str::to_owned)
    });
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&line["request"]["remote_ip"], &line["status"]), (&json!(""), &json!(200)));
    server.stop();
}

#[test]
fn what_runs_is_answered_before_the_end_and_the_file_goes() {
    let setup = Setup::new().site(SITE).file("slow.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let mut server = setup.start();
    let socket = site_socket(&server);
    let mut stream = connect(&socket);
    stream.write_all(b"GET /slow.php?a HTTP/1.1\r\nHost: x\r\n\r\n").expect("the server takes it");
    let visitor = gate.next();
    server.signal(Signal::TERM);
    until("the socket's file is removed", || (!socket.exists()).then_some(()));
    drop(visitor);
    assert!(rest(&mut stream).ends_with("done"));
    assert!(server.wait().success());
}

#[test]
fn the_file_of_a_killed_server_is_replaced() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let socket = directory.path().join("site.sock");
    let site = format!("bind unix/{}\n\trespond /unix ok\n\tphp_server", socket.display());
    let mut first = Setup::new().site(&site).start();
    first.signal(Signal::KILL);
    first.wait();
    assert!(socket.exists(), "nobody was left to remove it");
    let second = Setup::new().site(&site).start();
    assert_eq!(get(&socket, "/unix"), "ok");
    second.stop();
    assert!(!socket.exists());
}

/// What a server says that does not start on this socket.
fn refused(socket: &Path) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let file = directory.path().join("Caddyfile");
    let text =
        format!("{{\n\tadmin off\n}}\nhttp:// {{\n\tbind unix/{}\n\trespond other\n}}\n", socket.display());
    fs::write(&file, text).expect("the directory is ours");
    let output = regent_command(directory.path())
        .args(["run", "--config"])
        .arg(&file)
        .output()
        .expect("regent can be started");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_socket_that_someone_listens_on_is_left_to_them() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let socket = directory.path().join("other.sock");
    let listener = UnixListener::bind(&socket).expect("the directory is fresh");
    let said = refused(&socket);
    assert!(said.contains("other.sock") && said.contains("another program listens there"), "{said}");
    UnixStream::connect(&socket).expect("it still listens");
    drop(listener);
}

#[test]
fn what_is_in_the_way_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let file = directory.path().join("precious");
    fs::write(&file, "data").expect("the directory is ours");
    let said = refused(&file);
    assert!(said.contains("precious") && said.contains("is no socket; remove it"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "data");
    let said = refused(&directory.path().join("none/site.sock"));
    assert!(said.contains("make its directory first"), "{said}");
}

#[test]
fn php_server_listens_on_one_too() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    fs::write(directory.path().join("index.php"), "<?php echo 'hello';").expect("the directory is ours");
    let socket = directory.path().join("php.sock");
    let mut server = regent_command(directory.path())
        .args(["php-server", "-l", &format!("unix/{}|0600", socket.display())])
        .stderr(Stdio::null())
        .spawn()
        .expect("regent can be started");
    let answer = std::panic::catch_unwind(|| {
        until("it listens", || UnixStream::connect(&socket).ok().map(drop));
        (get(&socket, "/"), mode(&socket))
    });
    server.kill().expect("it is our child");
    server.wait().expect("it is our child");
    assert_eq!(answer.expect("an answer"), ("hello".to_owned(), 0o600));
}
