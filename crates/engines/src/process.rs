//! One engine process: started with its memory, watched, and ended.

mod talk;

use bytes::{Buf, BytesMut};
use command_fds::CommandFdExt;
use command_fds::FdMapping;
use regent_config::EngineUser;
use regent_wire::EngineMemory;
use regent_wire::control::{self, Event, Order, Start, descriptors};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use talk::Talk;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// The socket of a process that ends closes a moment before its end can be seen. On a machine that is throttled the
/// kernel takes long to free its memory in between, and what its scripts have started is not to die for that. Shorter
/// than the second after which it counts as hung, so that the log tells the true reason.
const LAST_MOMENT: Duration = Duration::from_millis(750);

/// How systemd talks to the service that it has started (sd_notify(3), sd_listen_fds(3)): not for scripts, which could
/// say that the server is ready, or goes on working.
pub(crate) const SERVICE_MANAGERS: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    // As the server before does with the one that takes its place.
    "REGENT_PREDECESSOR",
];

/// A running engine. Dropped, it is killed.
pub struct EngineProcess {
    child: Child,
    events: Talk<OwnedReadHalf>,
    /// When the engine closed its end.
    closed: Option<Instant>,
    /// The engine ends when it closes.
    control: OwnedWriteHalf,
    /// Of what it is to be told, the part that the socket has not taken yet.
    untold: BytesMut,
}

/// What happened to the process of an engine.
pub enum ProcessEvent {
    Message(Event),
    /// It does what no engine does, and has to be killed.
    Offence(String),
    Ended(ExitStatus),
}

impl EngineProcess {
    /// Starts `program` on this memory, as this user if there is one. `doorbells`: the I/O threads' eventfds.
    pub fn spawn(
        program: &Path,
        user: Option<&EngineUser>,
        backend: &Arc<EngineMemory>,
        doorbells: &[Arc<OwnedFd>],
        start: &Start,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let mut mappings = vec![
            FdMapping {
                parent_fd: backend.region().file().try_clone_to_owned()?,
                child_fd: descriptors::MEMORY,
            },
            FdMapping { parent_fd: theirs.into(), child_fd: descriptors::CONTROL },
        ];
        for (fd, child_fd) in doorbells.iter().zip(descriptors::DOORBELLS..) {
            mappings.push(FdMapping { parent_fd: fd.as_fd().try_clone_to_owned()?, child_fd });
        }
        let mut command = Command::new(program);
        // A group of its own: it is killed with what its scripts have started, and a Ctrl-C on the terminal is for the
        // server, which drains its engines.
        command.stdin(Stdio::null()).kill_on_drop(true).process_group(0);
        SERVICE_MANAGERS.into_iter().for_each(|name| {
            command.env_remove(name);
        });
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        // As itself, a server without rights may run it too.
        let user = user.filter(|user| user.uid != rustix::process::geteuid().as_raw());
        if let Some(user) = user {
            // It belongs to no other groups then: see std's `CommandExt::uid`.
            command.uid(user.uid).gid(user.gid);
        }
        let child = command.spawn().map_err(|cause| match user {
            Some(user) if cause.kind() == io::ErrorKind::PermissionDenied => not_allowed(&cause, user),
            _ => cause,
        })?;
        let (reader, control) = ours.into_split();
        let untold = BytesMut::from(&*control::encode(start));
        Ok(Self { child, events: Talk::new(reader), closed: None, control, untold })
    }

    /// Tells it what to do from now on, as [`EngineProcess::next`] goes on being called.
    pub fn order(&mut self, order: &Order) {
        // To ask whether it listens is pointless as long as it does not.
        if !(matches!(order, Order::Beat { .. }) && self.untold.has_remaining()) {
            self.untold.extend_from_slice(&control::encode(order));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for the next event, an offence, or the end. Nothing is lost when it is dropped before it ends.
    pub async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            let Self { child, events, closed, control, untold } = self;
            let gone = closed.map(|closed| closed + LAST_MOMENT);
            tokio::select! {
                biased;
                // Before what it says: one that says more than can be heard must get its beats, or it counts as hung.
                written = control.write(untold), if untold.has_remaining() => match written {
                    Ok(count) => untold.advance(count),
                    // It is about to end, or has closed its socket.
                    Err(_) => untold.clear(),
                },
                said = events.next(), if gone.is_none() => match said {
                    Ok(Some(event)) => return Ok(ProcessEvent::Message(event)),
                    Ok(None) => *closed = Some(Instant::now()),
                    Err(offence) => {
                        *closed = Some(Instant::now());
                        return Ok(ProcessEvent::Offence(offence.to_string()));
                    }
                },
                status = child.wait() => {
                    self.wait_for_others().await;
                    return status.map(ProcessEvent::Ended);
                }
                () = tokio::time::sleep_until(gone.unwrap_or_else(Instant::now)), if gone.is_some() => {
                    *closed = Some(Instant::now());
                    return Ok(ProcessEvent::Offence("it has closed its control socket".to_owned()));
                }
            }
        }
    }

    /// An engine can have several processes, which end with the first a moment later and have its socket open until then: what
    /// they take out of a queue must not be moved to another engine meanwhile.
    async fn wait_for_others(&mut self) {
        let closed = async {
            // What they say no longer counts.
            while self.closed.is_none() && matches!(self.events.next().await, Ok(Some(_))) {}
        };
        // Programs of scripts may have it open too.
        let _ = tokio::time::timeout(LAST_MOMENT, closed).await;
    }

    /// Ends it at once, whatever it has become, and all that its scripts have started and that has not left its group.
    pub fn kill(&mut self) {
        self.kill_group();
        // It has ended already otherwise. It may have gone to another group.
        let _ = self.child.start_kill();
    }

    /// The number of the group belongs to no other as long as the process has not been waited for.
    fn kill_group(&self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32));
        // It has left it otherwise, and nobody is in it.
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    }
}

fn not_allowed(cause: &io::Error, user: &EngineUser) -> io::Error {
    let name = &user.name;
    let message = format!(
        "it cannot be run as the user `{name}` ({cause}): start the server as root, and let that user execute the program, or \
         leave out `user {name}`"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.kill_group();
    }
}
