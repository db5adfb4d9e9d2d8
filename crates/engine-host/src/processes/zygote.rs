//! The process that has the runtime ready, and forks those that run it.

use super::message::{FromProcess, ToZygote};
use super::{exit, fork_alone};
use crate::thread_pool::thread_name;
use crate::{Afterwards, Job, Readiness, Reporter};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SigSet, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use regent_wire::control::{self, Start, ThreadStart};
use regent_wire::{Engine, EngineThread};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::HashMap;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes of orders that are read at once.
const PART: usize = 4096;

/// This process, before it has started the runtime.
pub struct Zygote {
    pub(super) engine: Arc<Engine>,
    pub start: Start,
    pub reporter: Arc<Reporter>,
    pub(super) orders: UnixStream,
    /// Kept open: see [`crate::processes`].
    pub(super) _control: UnixStream,
}

/// The processes that run, by number and by their thread's.
#[derive(Default)]
struct Processes(HashMap<Pid, u16>);

impl Zygote {
    /// Forks processes that do this job, as the manager orders. Ends when the manager does.
    pub fn serve(mut self, job: &dyn Job) -> io::Result<()> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let ended = SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let (mut processes, mut unread) = (Processes::default(), Vec::new());
        loop {
            let mut events = [PollFd::new(&self.orders, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
            match poll(&mut events, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let [orders, deaths] = events.map(|event| !event.revents().is_empty());
            if deaths {
                while matches!(ended.read_signal(), Ok(Some(_))) {}
                processes.reap(&self.reporter);
            }
            if orders && !read(&mut self.orders, &mut unread)? {
                return Ok(());
            }
            for order in take_lines(&mut unread) {
                match order {
                    ToZygote::Fork { thread, renews } => match fork_alone() {
                        Ok(Some(pid)) => {
                            processes.0.insert(pid, thread.index);
                            let (index, pid) = (thread.index, pid.as_raw());
                            self.reporter.tell(&FromProcess::Forked { index, pid });
                        }
                        Ok(None) => {
                            // The next one that is forked must not keep it open.
                            drop((self.orders, ended));
                            run(job, thread, renews, self.engine, self.reporter)
                        }
                        Err(error) => {
                            let (index, error) = (thread.index, error.to_string());
                            self.reporter.tell(&FromProcess::NotForked { index, error });
                        }
                    },
                    ToZygote::Signal { index, number } => processes.signal(index, number),
                    ToZygote::Kill { index } => processes.signal(index, libc::SIGKILL),
                }
            }
        }
    }
}

/// `false`: the manager is gone.
fn read(orders: &mut UnixStream, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut part = [0; PART];
    let count = orders.read(&mut part)?;
    unread.extend_from_slice(&part[..count]);
    Ok(count > 0)
}

fn take_lines(unread: &mut Vec<u8>) -> Vec<ToZygote> {
    let end = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let whole: Vec<u8> = unread.drain(..end).collect();
    let lines = whole.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    // The manager is of the same program.
    lines.filter_map(|line| control::decode(line).ok()).collect()
}

impl Processes {
    /// Tells of those that have ended. What the runtime itself has started may be among them, which nobody asks for.
    fn reap(&mut self, reporter: &Reporter) {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
                Err(_) => continue,
                Ok(status) => status,
            };
            let (how, signal) = match status {
                WaitStatus::Exited(_, code) => (format!("it ended with exit code {code}"), None),
                WaitStatus::Signaled(_, signal, _) => {
                    let number = signal as i32;
                    (format!("it was ended by signal {number}"), Some(number))
                }
                _ => continue,
            };
            if let Some(index) = status.pid().and_then(|pid| self.0.remove(&pid)) {
                reporter.tell(&FromProcess::Ended { index, how, signal });
            }
        }
    }

    /// Nothing if it has ended: it has not been waited for otherwise, so that its number is no other's.
    fn signal(&self, index: u16, number: i32) {
        for (pid, _) in self.0.iter().filter(|(_, of)| **of == index) {
            // SAFETY: law 5 is not touched: no pointer is passed. Real-time signals are none of nix's.
            unsafe { libc::kill(pid.as_raw(), number) };
        }
    }
}

/// In the process of a thread.
fn run(job: &dyn Job, start: ThreadStart, renews: bool, engine: Arc<Engine>, reporter: Arc<Reporter>) -> ! {
    let ThreadStart { index, pool } = start;
    let life = || {
        let name = CString::new(thread_name(job.name(pool).unwrap_or("process"), index)).unwrap_or_default();
        // It has the name of the program otherwise.
        let _ = rustix::thread::set_name(&name);
        if let Err(error) = job.enter_process() {
            reporter.log(libc::LOG_CRIT as u8, error.as_bytes(), b"");
            return false;
        }
        let begin = if renews { EngineThread::renewed } else { EngineThread::new };
        let thread = begin(engine, index.into(), pool.into());
        let afterwards = job.run(thread, Readiness::of_process(index, Arc::clone(&reporter)));
        reporter.tell(&FromProcess::Done { index, replace: afterwards == Afterwards::Replace });
        job.leave_process();
        true
    };
    // A panic ends this process, and does not come back to the zygote's frames.
    let is_orderly = catch_unwind(AssertUnwindSafe(life)).unwrap_or(false);
    exit(i32::from(!is_orderly))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood_in_whatever_parts_they_come() {
        let fork = ToZygote::Fork { thread: ThreadStart { index: 3, pool: 1 }, renews: true };
        let bytes: Vec<u8> = [fork, ToZygote::Kill { index: 3 }].iter().flat_map(control::encode).collect();
        let (mut unread, mut orders) = (Vec::new(), Vec::new());
        for part in bytes.chunks(7) {
            unread.extend_from_slice(part);
            orders.extend(take_lines(&mut unread));
        }
        assert!(unread.is_empty());
        assert!(matches!(
            orders.as_slice(),
            [
                ToZygote::Fork { thread: ThreadStart { index: 3, pool: 1 }, renews: true },
                ToZygote::Kill { index: 3 }
            ]
        ));
    }

    #[test]
    fn the_end_of_the_manager_is_seen() {
        let (manager, mut orders) = UnixStream::pair().unwrap();
        let mut unread = Vec::new();
        drop(manager);
        assert!(!read(&mut orders, &mut unread).unwrap());
    }
}
