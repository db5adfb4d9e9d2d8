//! What keeps certificates valid while a configuration is in use.

use crate::tls::Tls;
use tokio::task::JoinHandle;

/// [`Tls::maintain`] in a task, which ends when this is dropped.
#[derive(Debug)]
pub struct Upkeep(JoinHandle<()>);

impl Upkeep {
    pub fn of(tls: &Tls) -> Self {
        let tls = tls.clone();
        Self(tokio::spawn(async move { tls.maintain().await }))
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.0.abort();
    }
}
