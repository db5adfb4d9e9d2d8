//! One change at a time at each service, as it is configured. Many of their interfaces have no way to add one record to those of a name: all are
//! read and written again, and of two who do that at once one loses his record.

use crate::acme::options::DnsService;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Of all names of a server. Of several servers that share a zone each has its own.
#[derive(Debug, Default)]
pub(in crate::acme) struct Turns(Mutex<HashMap<DnsService, Arc<AsyncMutex<()>>>>);

/// Ends when it is dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Turns {
    pub(super) async fn at(&self, service: &DnsService) -> Turn {
        self.of(service).lock_owned().await
    }

    fn of(&self, service: &DnsService) -> Arc<AsyncMutex<()>> {
        let mut services = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(services.entry(service.clone()).or_default())
    }
}
