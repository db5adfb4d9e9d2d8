//! A server that can make no more threads.
//!
//! The one test of this program puts the program itself into a control group while it starts the server, which inherits it.
//! It needs groups that can be written to, and is skipped where there are none.
#![forbid(unsafe_code)]

use regent_tests::{Setup, until};
use rustix::process::Signal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A control group with a limit on processes and threads, of version 1 or 2. Its end removes it, once nobody is in it.
struct ThreadGroup {
    directory: PathBuf,
    /// The one that this program came from.
    parent: PathBuf,
}

impl ThreadGroup {
    fn new() -> io::Result<Self> {
        let parent = own_group();
        let directory = parent.join(format!("regent-test-{}", std::process::id()));
        fs::create_dir(&directory)?;
        let group = Self { directory, parent };
        // A group without this file counts nothing.
        fs::write(group.file("pids.max"), "max")?;
        Ok(group)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// What `start` starts is in the group.
    fn within<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        enter(&self.directory)?;
        let started = start();
        enter(&self.parent)?;
        Ok(started)
    }

    /// From now on nobody in it makes another thread.
    fn close(&self) {
        fs::write(self.file("pids.max"), "1").expect("the group is ours");
    }

    fn open(&self) {
        fs::write(self.file("pids.max"), "max").expect("the group is ours");
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        // Somebody is still in it if the test has failed.
        let _ = fs::remove_dir(&self.directory);
    }
}

fn own_group() -> PathBuf {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of =
        |prefix: &str| text.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path.to_owned()));
    let in_root = |root: &str, path: String| Path::new(root).join(path.trim_start_matches('/'));
    match of(":pids:") {
        Some(path) => in_root("/sys/fs/cgroup/pids", path),
        None => in_root("/sys/fs/cgroup", of("0::").unwrap_or_default()),
    }
}

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Whether an engine has the thread that it makes when all others are there.
fn follows_orders(engine: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{engine}/task")).into_iter().flatten().flatten();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|name| name.trim_end() == "orders")
}

/// Longer than what is encoded on an I/O thread.
fn page() -> String {
    (0..20_000).map(|line| format!("line {line} of a page\n")).collect()
}

fn caddyfile(site: &str) -> String {
    format!("{{\n\tadmin off\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\t{site}\n}}\n")
}

#[test]
fn a_server_at_its_limit_of_threads_goes_on_compressing_and_takes_configurations() {
    let group = match ThreadGroup::new() {
        Ok(group) => group,
        Err(error) => {
            eprintln!("skipped: no control group can be made here: {error}");
            return;
        }
    };
    let setup = Setup::new().caddyfile(&caddyfile("encode gzip\n\tfile_server")).file("page.txt", page());
    let server = group.within(|| setup.start()).expect("this program may enter its own group");
    server.wait_for_log("serving http");
    until("the engine has made its last thread", || follows_orders(server.engine()).then_some(()));
    group.close();
    let compressed = |path: &str| {
        let response = server.request("GET", path).header("Accept-Encoding", "gzip").send().expect(200);
        let mut text = String::new();
        let read = io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&response.body[..]), &mut text);
        read.map(|_| text).unwrap_or_default()
    };
    for _ in 0..20 {
        assert_eq!(compressed("/page.txt"), page());
    }
    server.write_caddyfile(&caddyfile("no_such_directive"));
    server.signal(Signal::HUP);
    server.wait_for_log("the configuration was not loaded");
    for word in ["one", "two"] {
        server.write_caddyfile(&caddyfile(&format!("respond {word}")));
        server.signal(Signal::HUP);
        until("the configuration is taken", || (server.get("/").text() == word).then_some(()));
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
    group.open();
    server.stop();
}
