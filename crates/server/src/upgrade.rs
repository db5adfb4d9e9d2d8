//! Another process of the server's program takes this one's place. It gets other descriptors of the listening sockets over a
//! socket of its own ([`Handover`]), so that no other program that is started meanwhile inherits any. Then:
//!
//! 1. It makes all that it serves with, engines too, and says that it is ready. Until then it has accepted nobody, and what goes
//!    wrong has changed nothing.
//! 2. It is told to go on, accepts, and says that it serves.
//! 3. This server accepts nobody any more, answers what it has begun, and ends.

use crate::state::{Server, State};
use regent_net::{Handover, InheritedSocket};
use regent_succession::{Attempt, UpgradeError};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the new server may take until it is ready, if nobody says otherwise: workers may boot for half of it.
const READY_PATIENCE: Duration = Duration::from_secs(60);

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
            Attempt::start(&*successor, handover, theirs).map_err(UpgradeError::Start)
        });
        let mut attempt = attempt.await.expect("invariant: starting a program does not panic")?;
        let process = attempt.process();
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
