//! The stores that go on from one configuration to the next.

use regent_cache::{DiskLimits, Limits, Scopes, Store};
use regent_config::CacheMemory;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The stores of configurations that are in use. One of another size is another store, and begins empty.
#[derive(Default)]
pub struct Caches {
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

    /// Puts the disk of the configuration behind its store, if any route stores something.
    pub fn begin_disk(store: &Arc<Store>, memory: &CacheMemory) -> io::Result<()> {
        match &memory.disk {
            Some(disk) if Arc::strong_count(store) > 1 => store.with_disk(&DiskLimits {
                directory: disk.directory.clone(),
                bytes: disk.size,
                files: disk.files,
                object: disk.largest_object,
            }),
            _ => Ok(()),
        }
    }

    /// Writes what waits for the disks of stores, and lets another process have them. Blocks, for so long at most.
    pub fn close_disks(stores: &[Arc<Store>], patience: Duration) {
        // One that is slow is no reason to leave the others as they are.
        let late = stores.iter().filter(|store| !store.close_disk(patience)).count();
        if late > 0 {
            tracing::warn!("some responses were not written to the disk of the cache: it is too slow");
        }
    }
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
