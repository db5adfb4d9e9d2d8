//! Against a Redis of the tests' own, the distribution's.

use super::super::Store;
use super::*;
use crate::Compression;
use regent_redis::RedisServer;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends when it is dropped.
struct Server {
    process: Child,
    options: RedisStorage,
}

impl Server {
    /// On a socket in the directory. `None`: there is none on this machine, and that was said.
    fn start(directory: &Path) -> Option<Self> {
        let socket = directory.join("redis.sock");
        let mut command = Command::new(program()?);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--requirepass", "secret"]);
        command.arg("--unixsocket").arg(&socket).arg("--dir").arg(directory);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let options = RedisStorage::on(RedisServer {
            password: Some("secret".to_owned()),
            ..RedisServer::at(socket.to_str().unwrap(), 6379)
        });
        let server = Self { process, options };
        let end = Instant::now() + Duration::from_secs(60);
        while UnixStream::connect(&socket).is_err() {
            // clock: a round of a loop that ends with an event, or when the test hangs.
            assert!(Instant::now() < end, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(10)); // clock: as above.
        }
        Some(server)
    }

    fn store(&self, copies: &Path) -> Store {
        Store::of_redis(&self.options, copies).unwrap()
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &str, arguments: &[&str]) -> T {
        let link = Link::new(&self.options.server).unwrap();
        link.run("", |connection| cmd(command).arg(arguments).query(connection)).unwrap()
    }
}

/// On `$PATH`, or else out of the distribution's packages, as the black-box tests have it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|directory| directory.join("redis-server"));
    installed.into_iter().find(|file| file.is_file()).or_else(|| {
        let text = "SKIPPED: a storage in Redis: install redis-server";
        writeln!(std::io::stderr(), "{text}").unwrap();
        None
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn values_lie_where_caddy_looks_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let store = server.store(directory.path());
    store.write_all(&[("certificates/ca/a/a.key", b"key"), ("certificates/ca/a/a.crt", b"crt")]).unwrap();
    let text: String = server.ask("GET", &["caddy/certificates/ca/a/a.key"]);
    assert!(text.starts_with(r#"{"value":"a2V5","modified":""#), "{text}");
    let listed = |directory: &str| server.ask::<Vec<String>>("ZRANGE", &[directory, "0", "-1"]);
    assert_eq!(listed("caddy/certificates/ca/a"), ["a.crt", "a.key"]);
    assert_eq!(listed("caddy/certificates/ca"), ["a/"]);
    assert_eq!(listed("caddy"), ["certificates/"]);
    store.remove("certificates/ca/a/a.key").unwrap();
    assert_eq!(listed("caddy/certificates/ca/a"), ["a.crt"]);
    assert!(store.read("certificates/ca/a/a.key").unwrap().is_none());
    store.remove("certificates/ca/a/a.crt").unwrap();
    assert!(listed("caddy").is_empty());
}

#[test]
fn two_instances_share_what_one_writes() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut server) = Server::start(directory.path()) else { return };
    server.options.encryption_key = Some([1; 32]);
    server.options.compression = Compression::Zlib;
    let (one, two) = (server.store(&directory.path().join("1")), server.store(&directory.path().join("2")));
    let pem = "certificate ".repeat(100);
    one.write("a/b", pem.as_bytes()).unwrap();
    assert_eq!(two.read("a/b").unwrap().unwrap(), pem.as_bytes());
    assert_eq!(std::fs::read(two.file("a/b").unwrap().unwrap()).unwrap(), pem.as_bytes());
    assert!(two.file("a/c").unwrap().is_none());
    let text: String = server.ask("GET", &["caddy/a/b"]);
    assert!(text.contains(r#""compression":2,"encryption":1"#), "{text}");
}

#[test]
fn a_lock_is_held_by_one_and_ends_with_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let (one, two) = (server.store(&directory.path().join("1")), server.store(&directory.path().join("2")));
    let lock = one.try_lock("issue_cert_a.test").unwrap().expect("it is free");
    assert!(two.try_lock("issue_cert_a.test").unwrap().is_none());
    assert!(two.try_lock("issue_cert_b.test").unwrap().is_some());
    let life: i64 = server.ask("PTTL", &["caddy/locks/issue_cert_a.test"]);
    assert!((1..=10_000).contains(&life), "a dead holder's lock ends by itself, in {life} ms");
    drop(lock);
    assert!(two.try_lock("issue_cert_a.test").unwrap().is_some());
    // What has become another's is not released.
    let lock = one.lock("issue_cert_c.test").unwrap();
    () = server.ask("SET", &["caddy/locks/issue_cert_c.test", "another"]);
    drop(lock);
    assert_eq!(server.ask::<String>("GET", &["caddy/locks/issue_cert_c.test"]), "another");
}

#[test]
fn while_redis_is_away_copies_are_read_and_nothing_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let options = server.options.clone();
    let copies = directory.path().join("copies");
    server.store(&copies).write("a/known", b"certificate").unwrap();
    let running = server.store(&copies);
    assert!(running.read("a/known").unwrap().is_some());
    drop(server);
    let started_since = Store::of_redis(&options, &copies).unwrap();
    for store in [&running, &started_since] {
        assert_eq!(store.read("a/known").unwrap().unwrap(), b"certificate");
        let error = store.read("a/other").unwrap_err().to_string();
        assert!(error.contains("redis+unix:/"), "{error}");
        store.write("a/known", b"new").unwrap_err();
        store.try_lock("x").unwrap_err();
    }
    let _again = Server::start(directory.path());
    let end = Instant::now() + Duration::from_secs(60);
    while running.write("a/known", b"new").is_err() {
        // clock: a round of a loop that ends with an event, or when the test hangs.
        assert!(Instant::now() < end, "it is used again when it is back");
        std::thread::sleep(Duration::from_millis(100)); // clock: as above.
    }
    assert_eq!(started_since.read("a/known").unwrap().unwrap(), b"new");
}

#[test]
fn a_wrong_password_is_said_and_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut server) = Server::start(directory.path()) else { return };
    server.options.server.password = Some("hunter2".to_owned());
    let error = server.store(directory.path()).write("a", b"b").unwrap_err().to_string();
    assert!(error.contains("redis+unix:/") && !error.contains("hunter2"), "{error}");
    assert!(!format!("{:?}", server.options).contains("hunter2"));
}
