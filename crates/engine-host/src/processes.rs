//! An engine whose threads are processes: for a runtime that keeps one state for the process, as a PHP that is not
//! thread-safe does. To the server, which knows nothing of it but [`Event::Died`](regent_wire::control::Event), they are
//! threads.
//!
//! ```text
//!   server ── control socket ── manager ── orders (a stream of lines) ──► zygote ── fork ──► a process for each thread
//!                                  ▲                                        │                       │
//!                                  └──────────── messages (datagrams) ──────┴───────────────────────┘
//! ```
//! The *manager* is the process that the server has started. It answers the server's beats, tells it what happens, and runs
//! none of the runtime's code. The *zygote* is forked from it before it has any other thread, starts the runtime, and never
//! has one either: so what it forks has all of the runtime's state, and shares what the runtime has put in shared memory. Each
//! process that it forks is one thread of the engine in the memory that server and engine share, takes from the same queues,
//! and ends with the zygote, as that does with the manager. All of them keep the control socket open, so that its end tells
//! the server that none is left.

mod manager;
mod message;
mod zygote;

pub use manager::Manager;
pub(crate) use message::FromProcess;
pub use zygote::Zygote;

use crate::{Attached, HostError, Reporter, die_with_parent};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::io;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

/// Which of the two processes this is.
pub enum Side {
    Manager(Manager),
    Zygote(Zygote),
}

/// Makes the zygote. Before this process has any other thread. No signal ends either process from then on but those that
/// cannot be blocked.
pub fn split(attached: Attached) -> Result<Side, HostError> {
    let (orders, orders_of_zygote) = UnixStream::pair()?;
    let (messages, messages_to_manager) = UnixDatagram::pair()?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).map_err(io::Error::from)?;
    if let Some(zygote) = fork_alone()? {
        return Ok(Side::Manager(Manager::new(attached, zygote, orders, messages)?));
    }
    drop((orders, messages));
    let Attached { engine, start, socket, lines, .. } = attached;
    drop(lines);
    let reporter = Arc::new(Reporter::of_process(messages_to_manager)?);
    Ok(Side::Zygote(Zygote { engine, start, reporter, orders: orders_of_zygote, _control: socket }))
}

/// The process that was made; `None` in it, where it dies with the calling one. For a process without other threads.
fn fork_alone() -> io::Result<Option<Pid>> {
    let parent = getpid();
    // SAFETY: law 7: there is no other thread, so nothing is locked or half done in the process that is made.
    if let ForkResult::Parent { child } = unsafe { fork() }? {
        return Ok(Some(child));
    }
    die_with_parent()?;
    if getppid() != parent {
        exit(1); // it died in between
    }
    Ok(None)
}

/// Ends the process without unwinding into what it was forked from, and without handlers that are another process's.
fn exit(status: i32) -> ! {
    // SAFETY: law 4: as it says.
    unsafe { libc::_exit(status) }
}
