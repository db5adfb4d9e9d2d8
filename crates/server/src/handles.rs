//! What others hold of a server that runs.

use crate::lasting::Lasting;
use crate::reload::{Force, ReloadError, Reloaded};
use crate::source::Place;
use crate::state::Server;
use regent_succession::UpgradeError;
use std::sync::Weak;

/// The access logs of a server, as long as it runs.
#[derive(Clone)]
pub struct AccessLogs(pub(crate) Weak<Lasting>);

impl AccessLogs {
    /// Opens their files again, after a rotation has renamed them. Returns before that is done; no line is lost.
    pub fn reopen(&self) {
        self.0.upgrade().into_iter().for_each(|lasting| lasting.logs.reopen());
    }
}

/// Whether a server does its work, as long as it runs.
pub struct Pulse(pub(crate) Weak<Server>);

impl Pulse {
    /// Returns when each I/O thread has answered. Never returns if one of them hangs.
    pub async fn beat(&self) {
        if let Some(server) = self.0.upgrade() {
            server.io.answer().await;
        }
    }
}

/// Changes the configuration of a server, as long as it runs.
#[derive(Clone)]
pub struct Reloader(pub(crate) Weak<Server>);

impl Reloader {
    /// Has another process of the program take the server's place, as [`crate::Successor`] starts it. Then [`crate::Running::succeeded`] ends.
    ///
    /// # Errors
    /// When the process does not come to serve. The server goes on then.
    pub async fn upgrade(&self) -> Result<(), UpgradeError> {
        let server = self.0.upgrade().ok_or(UpgradeError::Stopping)?;
        server.upgrade(None).await.map(drop)
    }

    /// Changes to what the server's [`crate::ConfigSource`] reads now.
    ///
    /// # Errors
    /// When the configuration is wrong, or something that it needs cannot be had. Then nothing has changed.
    pub async fn reload(&self, force: Force) -> Result<Reloaded, ReloadError> {
        let server = self.0.upgrade().ok_or(ReloadError::Stopping)?;
        server.reload_from(Place::Own, force, None).await
    }
}
