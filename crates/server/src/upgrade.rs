//! Another process of the server's program takes this one's place. It gets other descriptors of the listening sockets over a
//! socket of its own ([`Handover`]), so that no other program that is started meanwhile inherits any. Then:
//!
//! 1. It makes all that it serves with, engines too, and says that it is ready. Until then it has accepted nobody, and what goes
//!    wrong has changed nothing.
//! 2. It is told to go on, accepts, and says that it serves.
//! 3. This server accepts nobody any more, answers what it has begun, and ends.

use crate::predecessor::{ALL, CONFIGURATION, FAILED, GO, GREETING, PATIENCE, READY, SERVING, announcement};
use crate::state::{Server, State};
use regent_net::{Handover, InheritedSocket, Received};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the new server may take until it is ready, if nobody says otherwise: workers may boot for half of it.
const READY_PATIENCE: Duration = Duration::from_secs(60);
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
struct Attempt {
    child: Child,
    handover: Handover,
}

impl Server {
    /// Has the program take the server's place: the ID of its process. An error changes nothing.
    pub async fn upgrade(&self, patience: Option<Duration>) -> Result<u32, UpgradeError> {
        let upgraded = self.try_upgrade(patience.unwrap_or(READY_PATIENCE)).await;
        match &upgraded {
            Ok(process) => tracing::info!(process, "another process serves now, and this one ends"),
            Err(error) => tracing::error!("no other process took over, and this one goes on: {error}"),
        }
        upgraded
    }

    async fn try_upgrade(&self, patience: Duration) -> Result<u32, UpgradeError> {
        if let Some(obstacle) = self.options.successor.obstacle() {
            return Err(UpgradeError::Obstacle(obstacle));
        }
        let mut stopping = self.stopping.subscribe();
        let mut state = self.lock().await.map_err(|_| UpgradeError::Stopping)?;
        let is_about_to_stop = self.lasting.shutdown.stops_at().is_some();
        if is_about_to_stop || self.succeeded.borrow().is_some() {
            return Err(UpgradeError::Stopping);
        }
        if state.awaits_datagrams {
            return Err(UpgradeError::TooSoon);
        }
        tracing::info!("starting the program that takes this one's place");
        let sockets = self.sockets(&state).await.map_err(UpgradeError::Sockets)?;
        let configuration = self.options.source.current();
        let (handover, theirs) = Handover::pair().map_err(UpgradeError::Sockets)?;
        let ours = Arc::new(handover.try_clone().map_err(UpgradeError::Sockets)?);
        let successor = Arc::clone(&self.options.successor);
        let attempt = tokio::task::spawn_blocking(move || {
            let child = successor.start(theirs).map_err(UpgradeError::Start)?;
            Ok(Attempt { child, handover })
        });
        let mut attempt = attempt.await.expect("invariant: starting a program does not panic")?;
        let process = attempt.child.id();
        let taking_over = tokio::task::spawn_blocking(move || {
            let prepared = attempt.prepare(&sockets, configuration.as_deref(), patience);
            (attempt, prepared)
        });
        let ended = stop_ends(&mut stopping, &ours);
        let (mut attempt, prepared) = tokio::select! {
            prepared = taking_over => prepared.expect("invariant: a conversation does not panic"),
            never = ended => match never {},
        };
        if let Err(error) = prepared {
            // It has panicked otherwise.
            let _ = tokio::task::spawn_blocking(move || attempt.abandon()).await;
            return Err(if *stopping.borrow() { UpgradeError::Stopping } else { error });
        }
        self.admin.pause();
        let successor = Arc::clone(&self.options.successor);
        let going = tokio::task::spawn_blocking(move || {
            successor.follow(process);
            let gone = attempt.go();
            if gone.is_err() {
                successor.follow(std::process::id());
                attempt.abandon();
            }
            gone
        });
        let gone = going.await.expect("invariant: a conversation does not panic");
        gone.inspect_err(|_| self.admin.resume())?;
        state.addresses.leave_files();
        self.succeeded.send_replace(Some(ours));
        Ok(process)
    }

    async fn sockets(&self, state: &State) -> io::Result<Vec<InheritedSocket>> {
        let mut sockets = state.addresses.hand_over(self.io.lend().await?)?;
        for socket in self.admin.lend()? {
            if !sockets.iter().any(|other| other.place() == socket.place()) {
                sockets.push(socket);
            }
        }
        Ok(sockets)
    }
}

/// Breaks the conversation off when the server stops.
async fn stop_ends(
    stopping: &mut tokio::sync::watch::Receiver<bool>,
    handover: &Handover,
) -> std::convert::Infallible {
    // The sender is the server's own.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    handover.end();
    std::future::pending().await
}

impl Attempt {
    /// Hands the sockets over, and waits until the new server is ready.
    fn prepare(
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
    fn go(&self) -> Result<(), UpgradeError> {
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
    fn abandon(&mut self) {
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
