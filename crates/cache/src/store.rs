//! Stored responses, within a bound of bytes.

use crate::figures::{Counts, Figures};
use crate::flights::Flights;
use crate::key::Key;
use crate::policy::Ground;
use crate::purge::{Past, Purge};
use crate::room::Room;
use crate::selection::CookieRule;
use crate::stored::Stored;
use http::HeaderMap;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::cell::Cell;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Responses of one URL that differ by what its `Vary` names; the oldest goes when there is one more.
const MOST_VARIANTS: usize = 32;
/// How long a URL is known for responses that cannot be stored: nobody waits for another's then.
const UNSTORABLE: Duration = Duration::from_secs(60);
/// The largest responses that a part of the store must have room for: what is locked together.
const OBJECTS_OF_A_SHARD: u64 = 4;
const MOST_SHARDS: u64 = 16;

/// How much is stored, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub memory: u64,
    /// Of one body.
    pub object: u64,
}

/// A cache of a whole server: all its sites, all its I/O threads.
pub struct Store {
    limits: Limits,
    urls: Cache<Key, Arc<Resource>, Weights, RandomState, Evictions>,
    past: Mutex<Past>,
    pub counts: Arc<Counts>,
    pub flights: Arc<Flights>,
    room: Arc<Room>,
}

/// What is stored for a request.
#[derive(Debug, Clone)]
pub enum Found {
    Stored(Arc<Stored>),
    /// Nothing for this URL.
    Nothing,
    /// Something, but for other requests; the one of them that came last.
    OfOthers(Arc<Stored>),
    /// The last response could not be stored.
    Unstorable,
}

/// What is known of a URL, the newest first.
#[derive(Default)]
struct Resource {
    variants: Vec<Arc<Stored>>,
    unstorable_until: Option<SystemTime>,
}

impl Limits {
    /// What is stored, and a quarter for what is on its way.
    fn room(self) -> u64 {
        self.memory.saturating_add((self.memory / 4).max(self.object))
    }

    fn shards(self) -> usize {
        let shards = self.memory / self.object.max(1) / OBJECTS_OF_A_SHARD;
        usize::try_from(shards.clamp(1, MOST_SHARDS)).unwrap_or(1)
    }
}

impl Store {
    pub fn new(limits: Limits) -> Self {
        let counts = Arc::<Counts>::default();
        let options = OptionsBuilder::new()
            .shards(limits.shards())
            // What it takes at once; it grows.
            .estimated_items_capacity(1024)
            .weight_capacity(limits.memory)
            .build()
            .expect("invariant: items and weight are given");
        let evictions = Evictions(Arc::clone(&counts));
        Self {
            limits,
            urls: Cache::with_options(options, Weights, RandomState::new(), evictions),
            past: Mutex::default(),
            counts,
            flights: Arc::default(),
            room: Arc::new(Room::new(limits.object, limits.room())),
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// For bodies.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// What there is for a request with these fields. `base`: as in [`Selection::new`].
    pub fn find(
        &self,
        key: &Key,
        base: &[u8],
        request: &HeaderMap,
        cookies: &CookieRule,
        now: SystemTime,
    ) -> Found {
        let Some(resource) = self.urls.get(key) else { return Found::Nothing };
        let fits = |stored: &&Arc<Stored>| stored.selection.fits(base, request, cookies);
        match (resource.variants.iter().find(fits), resource.variants.first()) {
            (Some(stored), _) => Found::Stored(Arc::clone(stored)),
            _ if resource.unstorable_until.is_some_and(|until| now < until) => Found::Unstorable,
            (None, Some(other)) => Found::OfOthers(Arc::clone(other)),
            (None, None) => Found::Nothing,
        }
    }

    /// How many purges there were: what is asked for now can be stored if none of those that follow concerns it.
    pub fn purges(&self) -> u64 {
        self.past().count()
    }

    /// Stores a response that was asked for when there were so many [`Self::purges`].
    pub fn put(&self, key: &Key, stored: Stored, purges: u64) -> Result<Arc<Stored>, Ground> {
        let past = self.past();
        if past.concerns(purges, key, &stored.tags) {
            return Err(Ground::Purged);
        }
        let stored = Arc::new(stored);
        let before = self.urls.peek(key);
        let others = before.iter().flat_map(|resource| &resource.variants);
        let mut variants = vec![Arc::clone(&stored)];
        variants.extend(others.filter(|other| other.selection != stored.selection).cloned());
        variants.truncate(MOST_VARIANTS);
        // All of them together must fit into a part of the store.
        let most = (self.limits.object.saturating_mul(2)).max(stored.weight() as u64);
        let mut weight = 0;
        variants.retain(|variant| {
            weight += variant.weight() as u64;
            weight <= most
        });
        self.urls.insert(key.clone(), Arc::new(Resource { variants, unstorable_until: None }));
        drop(past);
        self.counts.stores.add_one();
        Ok(stored)
    }

    /// Notes that a response of this URL could not be stored, for reasons of its own. What is stored stays.
    pub fn note_unstorable(&self, key: &Key, now: SystemTime) {
        let _writing = self.past();
        let variants = self.urls.peek(key).map_or_else(Vec::new, |resource| resource.variants.clone());
        let resource = Resource { variants, unstorable_until: Some(now + UNSTORABLE) };
        self.urls.insert(key.clone(), Arc::new(resource));
    }

    /// Forgets all responses of the URLs that have one which is concerned, also those that were asked for before now and come later. Returns how many there were. But for one
    /// URL it looks at all that is stored: not for an I/O thread.
    pub fn purge(&self, purge: &Purge) -> u64 {
        self.past().add(purge.clone());
        let purged = Cell::new(0);
        let count = |resource: &Resource| purged.set(purged.get() + resource.variants.len() as u64);
        if let Some(key) = purge.only_url() {
            let removed = purge.concerns(key, &[]).then(|| self.urls.remove(key)).flatten();
            removed.iter().for_each(|(_, resource)| count(resource));
        } else {
            self.urls.retain(|key, resource| {
                let is_concerned = resource.variants.iter().any(|stored| purge.concerns(key, &stored.tags));
                if is_concerned {
                    count(resource);
                }
                !is_concerned
            });
        }
        let purged = purged.get();
        self.counts.purged.add(purged);
        purged
    }

    pub fn figures(&self) -> Figures {
        let counts = &self.counts;
        Figures {
            hits: counts.hits.get(),
            stale: counts.stale.get(),
            misses: counts.misses.get(),
            passes: counts.passes.get(),
            collapsed: counts.collapsed.get(),
            revalidations: counts.revalidations.get(),
            stores: counts.stores.get(),
            evictions: counts.evictions.get(),
            purged: counts.purged.get(),
            entries: self.urls.len() as u64,
            bytes: self.urls.weight(),
            bodies: self.room.taken(),
            limit: self.limits.memory,
        }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct Weights;

impl Weighter<Key, Arc<Resource>> for Weights {
    fn weight(&self, key: &Key, resource: &Arc<Resource>) -> u64 {
        let variants: usize = resource.variants.iter().map(|stored| stored.weight()).sum();
        (256 + key.weight() + variants) as u64
    }
}

/// Counts what goes to make room.
#[derive(Clone)]
struct Evictions(Arc<Counts>);

impl Lifecycle<Key, Arc<Resource>> for Evictions {
    type RequestState = ();

    fn begin_request(&self) {}

    fn on_evict(&self, (): &mut (), _: Key, resource: Arc<Resource>) {
        self.0.evictions.add(resource.variants.len() as u64);
    }
}

#[cfg(test)]
mod tests;
