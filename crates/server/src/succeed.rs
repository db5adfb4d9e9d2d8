//! This server takes another's place: see [`crate::upgrade`] for its side.

use crate::StartError;
use crate::state::Server;
use regent_connections::Opened;
use regent_succession::Predecessor;
use std::sync::Arc;

impl Server {
    /// Accepts from these as soon as it is this server's turn; from those of HTTP/3 when the server before has none any more:
    /// two cannot tell apart for whom a datagram is.
    pub async fn succeed(
        self: &Arc<Self>,
        predecessor: &Predecessor,
        sockets: Vec<Opened>,
    ) -> Result<(), StartError> {
        let (streams, datagrams) =
            sockets.into_iter().partition(|opened| matches!(opened, Opened::Stream(..)));
        self.io.prepare_to_open(streams).await.map_err(StartError::Predecessor)?;
        if let Some(check) = self.current().health.clone() {
            self.io.probe(check).await.map_err(StartError::NotReady)?;
        }
        predecessor.take_turn().await.map_err(StartError::Predecessor)?;
        self.io.open();
        let (server, predecessor) = (Arc::downgrade(self), predecessor.clone());
        tokio::spawn(async move {
            predecessor.has_left().await;
            if let Some(server) = server.upgrade() {
                server.receive(datagrams).await;
            }
        });
        Ok(())
    }

    async fn receive(&self, mut sockets: Vec<Opened>) {
        let Ok(mut state) = self.lock().await else { return };
        state.awaits_datagrams = false;
        // A reload may have closed some.
        sockets.retain(|opened| state.addresses.has(opened.number()));
        match self.io.prepare_to_open(sockets).await {
            Ok(()) => self.io.open(),
            Err(error) => tracing::error!(%error, "HTTP/3 could not be taken over from the server before"),
        }
    }
}
