//! The process that is to take this server's place.

use crate::conversation::{ALL, CONFIGURATION, FAILED, GO, GREETING, PATIENCE, READY, SERVING, announcement};
use regent_net::{Handover, InheritedSocket, Received};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a new server that is not wanted may take to end.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Starts the program that takes the server's place, and speaks with whoever has started the server. All of it may block.
pub trait Successor: Send + Sync + 'static {
    /// Why the program cannot take this one's place; `None`: it can.
    fn obstacle(&self) -> Option<String>;

    /// Starts it, with this socket for [`crate::Predecessor::meet`].
    fn start(&self, socket: OwnedFd) -> io::Result<Child>;

    /// This process is the server from now on.
    fn follow(&self, process: u32);
}

/// Why no other process has taken the server's place: it goes on.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error("{0}")]
    Obstacle(String),
    #[error("the program could not be started: {0}")]
    Start(io::Error),
    #[error("the sockets could not be handed over: {0}")]
    Sockets(io::Error),
    #[error("the new process did not start: {0}")]
    Refused(String),
    #[error("the new process ended before it served ({0}); it has said why where this server logs to")]
    Ended(ExitStatus),
    #[error("the new process was not ready within {} s, and was ended", .0.as_secs())]
    NotReady(Duration),
    #[error("the new process broke off before it served")]
    BrokeOff,
    #[error("the server before this one has not ended yet: try again when it has")]
    TooSoon,
    #[error("the server is stopping")]
    Stopping,
}

/// The new process, from our side.
pub struct Attempt {
    child: Child,
    handover: Handover,
}

impl Attempt {
    /// Starts the program, which speaks with us over the other end of `handover`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(successor: &dyn Successor, handover: Handover, theirs: OwnedFd) -> io::Result<Self> {
        Ok(Self { child: successor.start(theirs)?, handover })
    }

    /// The ID of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Hands the sockets over, and waits until the new server is ready.
    pub fn prepare(
        &mut self,
        sockets: &[InheritedSocket],
        configuration: Option<&str>,
        patience: Duration,
    ) -> Result<(), UpgradeError> {
        match self.try_prepare(sockets, configuration, patience) {
            Ok(Some(Received { text, .. })) if text == READY => Ok(()),
            Ok(Some(Received { text, .. })) => {
                Err(UpgradeError::Refused(text.strip_prefix(FAILED).unwrap_or(&text).to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(UpgradeError::NotReady(patience)),
            // It has closed its end.
            Ok(None) | Err(_) => Err(match self.wait(END_PATIENCE) {
                Some(status) => UpgradeError::Ended(status),
                None => UpgradeError::BrokeOff,
            }),
        }
    }

    fn try_prepare(
        &self,
        sockets: &[InheritedSocket],
        configuration: Option<&str>,
        patience: Duration,
    ) -> io::Result<Option<Received>> {
        self.handover.set_patience(patience)?;
        self.handover.send(GREETING, None)?;
        for socket in sockets {
            self.handover.send(&announcement(socket.keeper()), Some(socket.socket().as_fd()))?;
        }
        if let Some(text) = configuration {
            // Of any length.
            let mut file = File::from(memfd_create("configuration", MemfdFlags::CLOEXEC)?);
            file.write_all(text.as_bytes())?;
            self.handover.send(CONFIGURATION, Some(file.as_fd()))?;
        }
        self.handover.send(ALL, None)?;
        self.handover.receive()
    }

    /// Has the new server serve.
    pub fn go(&self) -> Result<(), UpgradeError> {
        let gone = self.handover.set_patience(PATIENCE).and_then(|()| {
            self.handover.send(GO, None)?;
            self.handover.receive()
        });
        match gone {
            Ok(Some(Received { text, .. })) if text == SERVING => Ok(()),
            Ok(Some(Received { text, .. })) => {
                Err(UpgradeError::Refused(text.strip_prefix(FAILED).unwrap_or(&text).to_owned()))
            }
            Ok(None) | Err(_) => Err(UpgradeError::BrokeOff),
        }
    }

    /// Ends the new process, first in good order: it may have started others.
    pub fn abandon(&mut self) {
        self.handover.end();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if self.wait(Duration::ZERO).is_some() {
            return;
        }
        // It has ended already otherwise.
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        if self.wait(END_PATIENCE).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}
