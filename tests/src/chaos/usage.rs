//! Memory and descriptors of the server, and what it leaves running.

use super::Clock;
use crate::{Server, process, until};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// What the server's process has at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub at: Duration,
    pub pid: u32,
    /// Bytes, as `/proc/PID/smaps_rollup` has them.
    pub resident: u64,
    /// Of these, what it has written itself.
    pub written: u64,
    pub descriptors: usize,
    pub threads: usize,
}

impl Usage {
    /// Of this process, if it is there.
    pub fn of(pid: u32, clock: &Clock) -> Option<Self> {
        let memory = process::memory(pid)?;
        let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.filter_map(Result::ok);
        let descriptors = open.filter(|descriptor| !is_of_running_thread(&descriptor.path())).count();
        let threads = process::thread_count(pid);
        let (resident, written) = (memory.rss, memory.written);
        Some(Self { at: clock.now(), pid, resident, written, descriptors, threads })
    }

    /// Of a server that nobody asks for anything: each of its engines has been replaced by no more than one, and what the
    /// load had open is closed.
    fn at_rest(server: &Server, clock: &Clock) -> Self {
        let mut last = usize::MAX;
        until("the server comes to rest", || {
            if server.engines().len() != 1 || server.native_engines().len() != 1 {
                return None;
            }
            let usage = Self::of(server.pid(), clock)?;
            let is_steady = std::mem::replace(&mut last, usage.descriptors) == usage.descriptors;
            std::thread::sleep(Duration::from_millis(200));
            is_steady.then_some(usage)
        })
    }
}

/// The server looks at each thread of its engines through a file of /proc: a pool that has grown is no leak, a file of a
/// thread that has ended would be.
fn is_of_running_thread(descriptor: &Path) -> bool {
    fs::read_link(descriptor).is_ok_and(|file| file.starts_with("/proc") && file.exists())
}

/// How long what is over may have descriptors open still: connections that linger, an engine that drains.
const AFTERMATH: Duration = Duration::from_secs(20);

impl Usage {
    /// Of a server that nobody asks for anything, after waiting for as few descriptors as this. Of a server that keeps more, what it has then.
    pub fn settled(server: &Server, clock: &Clock, most_descriptors: usize) -> Self {
        let begun = Instant::now();
        loop {
            let usage = Self::at_rest(server, clock);
            if usage.descriptors <= most_descriptors || begun.elapsed() > AFTERMATH {
                return usage;
            }
        }
    }
}

/// Looks again and again at the process with this number, until told that it is over.
pub fn follow(pid: &AtomicU32, clock: &Clock, is_over: &AtomicBool) -> Vec<Usage> {
    let mut usages = Vec::new();
    while !is_over.load(Relaxed) {
        usages.extend(Usage::of(pid.load(Relaxed), clock));
        std::thread::sleep(LOOK);
    }
    usages
}

/// Makes orphans of what this program starts its own children, so that [`descendants`] finds them, wherever they have gone.
///
/// # Errors
/// When the kernel does not do that.
pub fn adopt_orphans() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Into::into)
}

/// All processes below this program that are alive, with their commands.
pub fn descendants() -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        for child in process::children(parent) {
            let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            found.push((child, String::from_utf8_lossy(&command).replace('\0', " ")));
            parents.push(child);
        }
    }
    found
}
