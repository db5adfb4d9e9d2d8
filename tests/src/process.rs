//! What Linux says about a process: its children, its memory, whether it is alive. Signals by pid.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Memory of a process in bytes, from `/proc/PID/smaps_rollup` (proc(5)).
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Resident, shared pages counted in full.
    pub rss: u64,
    /// Resident, shared pages counted by their share.
    pub pss: u64,
    /// Resident and only this process's. Grows when another process ends that ran the same program.
    pub private: u64,
    /// Of that, what it has written itself.
    pub written: u64,
}

/// Writes a script that can be run at once. Another process does: of a file that this one has open for writing, each child that
/// another test starts at that moment has a copy for a while, and what is open for writing is not run ("Text file busy").
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("there is a shell");
    writer.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(writer.wait().expect("it is our child").success(), "{} is written", path.display());
}

/// Copies a program that can be run at once, also by another process, as [`write_program`] writes one.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("there is cp");
    assert!(copied.success(), "{} is copied", from.display());
}

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Whether all threads of the process have stopped (SIGSTOP); each takes its own time.
pub fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let number = |thread: fs::DirEntry| thread.file_name().to_str()?.parse().ok();
    threads.filter_map(|thread| number(thread.ok()?)).all(|thread| state_of(thread) == Some('T'))
}

/// The live children of `pid` that run the program with this file name.
pub fn children_running(pid: u32, program: &str) -> Vec<u32> {
    children(pid).into_iter().filter(|child| runs(*child, program)).collect()
}

/// The live children of `pid`, by number.
pub fn children(pid: u32) -> Vec<u32> {
    let mut found: Vec<u32> = fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|candidate| parent_of(*candidate) == Some(pid) && is_alive(*candidate))
        .collect();
    found.sort_unstable();
    found
}

/// Whether `pid` runs the program with this file name (also when the file has been replaced since).
pub fn runs(pid: u32, program: &str) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .ok()
        .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .is_some_and(|name| name.trim_end_matches(" (deleted)") == program)
}

/// The memory of `pid`, or `None` when it has gone.
pub fn memory(pid: u32) -> Option<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
            .map(|kib| kib * 1024)
    };
    Some(Memory {
        rss: field("Rss:")?,
        pss: field("Pss:")?,
        private: field("Private_Clean:")? + field("Private_Dirty:")?,
        written: field("Private_Dirty:")?,
    })
}

/// The threads of `pid`; none when it has gone.
pub fn thread_count(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// What `pid` and all processes below it have had of the CPU, of those that are alive: a hundredth of a second exactly.
pub fn cpu_time(pid: u32) -> Duration {
    children(pid).into_iter().fold(own_cpu_time(pid), |sum, child| sum + cpu_time(child))
}

/// proc_pid_stat(5): `utime` and `stime`, of which Linux tells programs in hundredths of a second.
fn own_cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = behind_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// The TCP ports that `pid` itself listens on, by number, from `/proc/net/tcp` and `tcp6`.
pub fn listening_ports(pid: u32) -> Vec<u16> {
    const LISTEN: &str = "0A";
    let sockets = sockets_of(pid);
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        ports.extend(table.lines().filter_map(|line| {
            // As below.
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
            let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
            sockets.contains(&format!("socket:[{inode}]")).then_some(port)
        }));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Sends `signal`; `false` when the process has gone already.
pub fn signal(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is a positive number");
    kill_process(pid, signal).is_ok()
}

/// The sockets that a process has open, as its descriptors name them.
fn sockets_of(pid: u32) -> Vec<String> {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the process is alive and ours")
        .filter_map(|entry| Some(fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .filter(|target| target.starts_with("socket:"))
        .collect()
}

fn state_of(pid: u32) -> Option<char> {
    stat_after_name(pid)?.chars().next()
}

fn parent_of(pid: u32) -> Option<u32> {
    stat_after_name(pid)?.split(' ').nth(1)?.parse().ok()
}

/// `/proc/PID/stat` from the state on: the name before it is in parentheses and may hold anything.
fn stat_after_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_itself() {
        let me = std::process::id();
        assert!(is_alive(me));
        assert!(memory(me).expect("this process has memory").rss > 100_000);
        let program = std::env::current_exe().expect("this program has a path");
        assert!(runs(me, program.file_name().and_then(|n| n.to_str()).expect("a name")));
    }

    #[test]
    fn a_child_is_seen_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        crate::until("the child runs sleep", || runs(child.id(), "sleep").then_some(()));
        assert!(children_running(std::process::id(), "sleep").contains(&child.id()));
        assert!(signal(child.id(), Signal::KILL));
        child.wait().expect("it was ours");
        assert!(!is_alive(child.id()));
        assert!(memory(child.id()).is_none());
    }
}
