//! Whether the server is about to stop.

use std::sync::OnceLock;
use std::time::Instant;

/// When it stops. Until it is known that it does, requests pay one load.
#[derive(Debug, Default)]
pub struct ShutdownNotice(OnceLock<Instant>);

impl ShutdownNotice {
    /// From now on requests know it; a later call changes nothing.
    pub fn give(&self, stops_at: Instant) {
        // Whoever was first has said it.
        let _ = self.0.set(stops_at);
    }

    /// `None`: it goes on serving.
    pub fn stops_at(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}
