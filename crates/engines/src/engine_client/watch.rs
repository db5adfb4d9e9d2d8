//! A look at a client that does not keep it.

use super::EngineClient;
use std::rc::{Rc, Weak};
use tokio::sync::Notify;

/// For tasks that look at a client as long as there is one.
pub struct ClientWatch {
    client: Weak<EngineClient>,
    submitted: Rc<Notify>,
}

impl ClientWatch {
    pub(super) fn new(client: Weak<EngineClient>, submitted: Rc<Notify>) -> Self {
        Self { client, submitted }
    }

    /// Not to be held for longer than it takes to look.
    pub fn client(&self) -> Option<Rc<EngineClient>> {
        self.client.upgrade()
    }

    /// Ends when a request has been submitted, at once if one is there. `None`: the client is gone.
    pub async fn used(&self) -> Option<()> {
        while self.client()?.in_use() == 0 {
            self.submitted.notified().await;
        }
        Some(())
    }
}
