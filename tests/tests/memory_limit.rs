//! The number of threads stays within the memory of a control group.
//!
//! The one test of this program puts the program itself into a group while it starts the server, which inherits it. It
//! needs groups that can be written to, and is skipped where there are none.
#![forbid(unsafe_code)]

use regent_tests::{Gate, STOP_AT_GATE, Setup, until};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 400 * MIB;
/// What a request holds.
const HELD: u64 = 8 * MIB;
/// Far more than fit.
const REQUESTS: usize = 100;

/// A control group with a limit on memory, of version 1 or 2. Its end removes it, once nobody is in it.
struct MemoryGroup {
    directory: PathBuf,
    /// The one that this program came from.
    parent: PathBuf,
    files: Files,
}

struct Files {
    limit: &'static str,
    peak: &'static str,
}

impl MemoryGroup {
    fn new(limit: u64) -> io::Result<Self> {
        let (parent, files) = own_group();
        let directory = parent.join(format!("regent-test-{}", std::process::id()));
        fs::create_dir(&directory)?;
        let group = Self { directory, parent, files };
        fs::write(group.directory.join(group.files.limit), limit.to_string())?;
        Ok(group)
    }

    /// What `start` starts is in the group.
    fn within<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        enter(&self.directory)?;
        let started = start();
        enter(&self.parent)?;
        Ok(started)
    }

    /// The most that was ever used, in bytes.
    fn peak(&self) -> u64 {
        let text = fs::read_to_string(self.directory.join(self.files.peak)).expect("the group has this file");
        text.trim().parse().expect("a number")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Somebody is still in it if the test has failed.
        let _ = fs::remove_dir(&self.directory);
    }
}

fn own_group() -> (PathBuf, Files) {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of =
        |prefix: &str| text.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path.to_owned()));
    let in_root = |root: &str, path: String| Path::new(root).join(path.trim_start_matches('/'));
    match of(":memory:") {
        Some(path) => (
            in_root("/sys/fs/cgroup/memory", path),
            Files { limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" },
        ),
        None => (
            in_root("/sys/fs/cgroup", of("0::").unwrap_or_default()),
            Files { limit: "memory.max", peak: "memory.peak" },
        ),
    }
}

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

#[test]
fn a_pool_grows_no_further_than_the_memory_of_its_control_group() {
    let group = match MemoryGroup::new(LIMIT) {
        Ok(group) => group,
        Err(error) => {
            eprintln!("SKIPPED: no control group can be made here ({error}), so growth met no real limit");
            return;
        }
    };
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 2\n\t\tmax_threads 200\n\t\tmax_wait_time off")
        .file(
            "holds.php",
            format!("<?php $held = str_repeat('x', {HELD}); {STOP_AT_GATE} echo strlen($held);"),
        );
    let gate = Gate::of(&setup);
    let server = group.within(|| setup.start()).expect("a group of ours can be entered");
    let (admin, engine) = (server.admin(), server.engine());

    let mut conns: Vec<_> = (0..REQUESTS).map(|_| server.ask("/holds.php")).collect();
    let mut held = gate.wait_for(8);
    // All that is granted has come when nothing has for a while, with requests that wait for threads.
    let mut quiet = 0;
    until("the pool does not grow any more", || {
        let before = held.len();
        held.extend(std::iter::from_fn(|| gate.poll()));
        quiet = if held.len() > before { 0 } else { quiet + 1 };
        (quiet == 400).then_some(())
    });
    let threads = admin.size("classic");
    println!("{threads} threads, {} at the gate, {} MiB at most", held.len(), group.peak() / MIB);
    assert!(threads > 8 && threads * HELD < LIMIT, "{threads} threads");
    assert!(group.peak() < LIMIT, "the kernel had to step in");
    assert_eq!(server.engine(), engine, "the engine was killed");

    // The others take their turns.
    let at_gate = held.len();
    drop(held);
    (at_gate..REQUESTS).for_each(|_| drop(gate.next()));
    for conn in &mut conns {
        assert_eq!(conn.response().expect(200).text(), HELD.to_string());
    }
    server.stop();
}
