//! What goes on from one configuration to the next, beside engines and hubs.

use crate::traces::Traces;
use regent_cache::{DiskLimits, Limits, Scopes, Store};
use regent_config::CacheMemory;
use regent_control::purging;
use regent_engines::PurgeSink;
use regent_handlers::{LogOutputs, ShutdownNotice};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Lasting {
    pub logs: LogOutputs,
    pub caches: Caches,
    pub traces: Traces,
    /// Given when the server is told to stop, and goes on serving for a while.
    pub shutdown: Arc<ShutdownNotice>,
}

impl Lasting {
    /// Where an engine puts the purges of its scripts.
    pub fn purges(self: &Arc<Self>) -> PurgeSink {
        let lasting = Arc::downgrade(self);
        purging::sink(move |scope| {
            let lasting = lasting.upgrade()?;
            Some((lasting.caches.scopes.find(scope)?, lasting.caches.all()))
        })
    }
}

/// The stores of configurations that are in use. One of another size is another store, and begins empty.
#[derive(Default)]
pub(crate) struct Caches {
    stores: Mutex<Vec<(CacheMemory, Weak<Store>)>>,
    /// What scripts may purge.
    pub scopes: Scopes,
}

impl Caches {
    pub fn all(&self) -> Vec<Arc<Store>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(|(_, store)| store.upgrade()).collect()
    }

    pub fn open(&self, memory: &CacheMemory) -> Arc<Store> {
        let limits = Limits { memory: memory.memory, object: memory.largest_object };
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|(_, store)| store.strong_count() > 0);
        let known = stores.iter().find(|(own, _)| own == memory).and_then(|(_, store)| store.upgrade());
        known.unwrap_or_else(|| {
            let store = Arc::new(Store::new(limits));
            stores.push((memory.clone(), Arc::downgrade(&store)));
            store
        })
    }
}

/// Writes what waits for the disks of caches, and lets another process have them. For so long at most.
pub(crate) async fn close_disks(stores: Vec<Arc<Store>>, patience: Duration) {
    let closing = move || stores.iter().fold(true, |all, store| store.close_disk(patience) && all);
    if !tokio::task::spawn_blocking(closing).await.unwrap_or(false) {
        tracing::warn!("some responses were not written to the disk of the cache: it is too slow");
    }
}

/// Puts the disk of the configuration behind a store.
pub(crate) fn with_disk(store: &Store, memory: &CacheMemory) -> std::io::Result<()> {
    let Some(disk) = &memory.disk else { return Ok(()) };
    store.with_disk(&DiskLimits {
        directory: disk.directory.clone(),
        bytes: disk.size,
        files: disk.files,
        object: disk.largest_object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_goes_on_as_long_as_its_size_is_the_same() {
        let caches = Caches::default();
        let small = CacheMemory { memory: 1 << 20, largest_object: 1 << 20, disk: None };
        let usual = CacheMemory::default();
        let (one, other) = (caches.open(&usual), caches.open(&small));
        assert!(Arc::ptr_eq(&one, &caches.open(&usual)) && !Arc::ptr_eq(&one, &other));
        drop(one);
        assert!(Arc::ptr_eq(&other, &caches.open(&small)));
    }
}
