//! Programs that the bench starts, waits for and ends.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::interrupt::Interrupt;
use crate::procfs;

/// Time that a server has to answer its first connection.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Time that a server has to end after SIGTERM, before it is killed. A PHP that is being trained (`make php-fast`) has a
/// thousand small files to write.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between two attempts to connect while a server starts.
const RETRY: Duration = Duration::from_millis(10);

/// A server program in the foreground, in a process group of its own. Dropping it ends the group and all descendants.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts the program; its standard output and error go to `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| {
                format!("{name} ({}) could not be started", command.get_program().to_string_lossy())
            })?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// The process id, and that of the process group.
    pub fn leader(&self) -> i32 {
        i32::try_from(self.child.id()).expect("invariant: Linux process ids fit in 31 bits")
    }

    /// Tries `ready` until it is true; an error with the end of the log when the program ends or takes too long.
    pub fn wait_until_ready(&mut self, interrupt: &Interrupt, mut ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        while !ready() {
            interrupt.check()?;
            self.check_alive()?;
            if Instant::now() > deadline {
                bail!(
                    "{} did not accept a connection within {START_DEADLINE:?}{}",
                    self.name,
                    self.log_end()
                );
            }
            std::thread::sleep(RETRY);
        }
        Ok(())
    }

    /// An error with the end of the log when the program has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} has ended ({status}){}", self.name, self.log_end());
        }
        Ok(())
    }

    /// The last lines of the program's output, for an error message.
    fn log_end(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        match &lines[lines.len().saturating_sub(10)..] {
            [] => "; it wrote nothing".to_owned(),
            last => format!("; its last words:\n  {}", last.join("\n  ")),
        }
    }

    fn stop(&mut self) {
        let leader = Pid::from_child(&self.child);
        // Descriptors, not ids: an id that is signalled late may have become another process's.
        let family: Vec<OwnedFd> = procfs::family(&[self.leader()])
            .iter()
            .filter_map(|process| pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok())
            .collect();
        let _ = rustix::process::kill_process(leader, Signal::TERM);
        let _ = wait_for_exit(&self.child, STOP_DEADLINE, || Ok(()));
        // The leader is not reaped yet, so its id, the group's, cannot be anyone else's. Errors: already gone.
        let _ = kill_process_group(leader, Signal::KILL);
        for process in &family {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.stop();
    }
}

/// Runs a program to its end and returns its exit status and standard output. Kills it at the deadline or when the
/// bench is interrupted. The output must fit in a pipe (64 KiB).
pub fn run_to_end(
    mut command: Command,
    deadline: Duration,
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("{name} could not be started"))?;
    let waited = wait_for_exit(&child, deadline, || interrupt.check());
    if !matches!(waited, Ok(true)) {
        child.kill()?;
        child.wait()?;
        waited?;
        bail!("{name} did not end within {deadline:?} and was killed");
    }
    let output = child.wait_with_output()?;
    Ok((output.status, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Waits until the child has ended, without reaping it: true when it has, false at the deadline. Asks `check` before
/// each wait; a signal to the bench ends a wait.
fn wait_for_exit(child: &Child, timeout: Duration, check: impl Fn() -> Result<()>) -> Result<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + timeout;
    loop {
        check()?;
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))?;
        match poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let (status, output) =
            run_to_end(shell("echo out; exit 3"), Duration::from_secs(5), &Interrupt::default())
                .expect("it ran");
        assert_eq!((status.code(), output.as_str()), (Some(3), "out\n"));
    }

    #[test]
    fn a_program_past_its_deadline_is_killed() {
        let error = run_to_end(shell("exec sleep 60"), Duration::from_millis(20), &Interrupt::default())
            .expect_err("it takes too long");
        assert!(error.to_string().contains("was killed"), "{error}");
    }

    #[test]
    fn a_server_that_ends_at_once_shows_its_last_words() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut daemon =
            Daemon::start("toy", shell("echo no such port; exit 1"), &directory.path().join("log"))
                .expect("started");
        let error =
            daemon.wait_until_ready(&Interrupt::default(), || false).expect_err("it ended").to_string();
        assert!(error.contains("toy has ended") && error.contains("no such port"), "{error}");
    }

    #[test]
    fn dropping_a_server_ends_its_children_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let ready = directory.path().join("ready");
        let script = format!("sleep 60 & echo $! > {0}.part; mv {0}.part {0}; wait", ready.display());
        let mut daemon =
            Daemon::start("toy", shell(&script), &directory.path().join("log")).expect("started");
        daemon.wait_until_ready(&Interrupt::default(), || ready.exists()).expect("the child has started");
        let child: i32 = fs::read_to_string(&ready).expect("a pid").trim().parse().expect("a number");
        let child = pidfd_open(Pid::from_raw(child).expect("not 0"), PidfdFlags::empty()).expect("it runs");

        drop(daemon);
        let timeout = Timespec { tv_sec: 5, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::from_borrowed_fd(child.as_fd(), PollFlags::IN)], Some(&timeout));
        assert_eq!(ended, Ok(1), "the grandchild outlived its server");
    }
}
