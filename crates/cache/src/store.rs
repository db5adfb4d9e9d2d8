//! Stored responses, within a bound of bytes: in memory, and behind it on a disk if there is one.

use crate::disk::{self, Disk, DiskLimits, Located, Spilling};
use crate::figures::{Counts, Figures};
use crate::flights::Flights;
use crate::key::Key;
use crate::policy::Ground;
use crate::purge::{Past, Purge};
use crate::room::Room;
use crate::rope::Gathering;
use crate::selection::CookieRule;
use crate::stored::{Stored, StoredBody};
use bytes::Bytes;
use http::HeaderMap;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    past: Arc<Mutex<Past>>,
    /// Begun once, if at all.
    disk: OnceLock<Disk>,
    hasher: RandomState,
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

impl Resource {
    /// What a request gets to know that none of the responses is for.
    fn instead(&self, now: SystemTime) -> Found {
        match self.variants.first() {
            _ if self.unstorable_until.is_some_and(|until| now < until) => Found::Unstorable,
            Some(other) => Found::OfOthers(Arc::clone(other)),
            None => Found::Nothing,
        }
    }
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
            past: Arc::default(),
            disk: OnceLock::new(),
            hasher: RandomState::new(),
            counts,
            flights: Arc::default(),
            room: Arc::new(Room::new(limits.object, limits.room())),
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Puts a disk behind the memory, once. What is on it is found little by little. An error: there can be no thread.
    pub fn with_disk(&self, limits: &DiskLimits) -> io::Result<()> {
        if self.disk.get().is_none() {
            let Limits { memory, object } = self.limits;
            let disk = Disk::start(limits.clone(), memory, object, Arc::clone(&self.past))?;
            // Another has been faster; this one's thread ends.
            drop(self.disk.set(disk));
        }
        Ok(())
    }

    pub fn disk(&self) -> Option<&DiskLimits> {
        self.disk.get().map(Disk::limits)
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
        let resource = self.urls.get(key);
        let variants = resource.iter().flat_map(|resource| &resource.variants);
        let mut fitting = variants.filter(|stored| stored.selection.fits(base, request, cookies));
        if let Some(stored) = fitting.next() {
            return Found::Stored(Arc::clone(stored));
        }
        let unwritten = self.disk.get().and_then(|disk| disk.unwritten(key, base, request, cookies));
        match (unwritten, resource) {
            (Some(stored), _) => Found::Stored(stored),
            (None, None) => Found::Nothing,
            (None, Some(resource)) => resource.instead(now),
        }
    }

    /// What is on the disk for a request that nothing in memory is for; it is to be [loaded](Self::load).
    pub fn find_on_disk(
        &self,
        key: &Key,
        base: &[u8],
        request: &HeaderMap,
        cookies: &CookieRule,
    ) -> Option<Located> {
        let disk = self.disk.get()?;
        disk.find(key, base, request, cookies, self.purges())
    }

    /// Reads it, for those that come later too. `None`: it is not there any more, or it takes too long.
    pub async fn load(&self, located: Located) -> Option<Arc<Stored>> {
        let (key, purges) = (located.key().clone(), located.purges);
        let stored = Arc::new(disk::load(located, Arc::clone(&self.room)).await?);
        let past = self.past();
        if past.concerns(purges, &key, &stored.tags) {
            return None;
        }
        let is_there = |resource: &Arc<Resource>| {
            resource.variants.iter().any(|variant| variant.selection == stored.selection)
        };
        // What came meanwhile is newer.
        if matches!(stored.body, StoredBody::Memory(_))
            && !self.urls.peek(&key).is_some_and(|it| is_there(&it))
        {
            self.insert(&key, &stored, &past);
        }
        drop(past);
        Some(stored)
    }

    /// Notes that a request was answered with what had been loaded for it.
    pub fn note_loaded(&self) {
        self.disk.get().into_iter().for_each(|disk| disk.counts().hits.add_one());
    }

    /// Whether a body of this length can be stored, in memory or on the disk.
    pub fn may_take(&self, length: u64) -> bool {
        length <= self.limits.object || self.disk.get().is_some_and(|disk| disk.shared().may_take(length))
    }

    /// Whether a disk takes bodies that are too large for memory.
    pub fn may_spill(&self) -> bool {
        self.disk.get().is_some_and(|disk| disk.shared().may_take(0))
    }

    /// Moves what has been gathered of a body to the disk, behind what is there already, and a piece behind that, which may be
    /// larger than memory takes. `None`: there is no place for it.
    pub async fn spill(
        &self,
        spilling: Option<Spilling>,
        gathering: &mut Gathering,
        piece: Bytes,
    ) -> Option<Spilling> {
        let disk = self.disk.get().filter(|disk| spilling.is_some() || disk.shared().may_take(0))?;
        let (mut pieces, taken) = gathering.take();
        pieces.push(piece);
        let spilled = disk::spill(Arc::clone(disk.shared()), spilling, pieces).await;
        drop(taken);
        spilled
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
        self.insert(key, &stored, &past);
        if let Some(disk) = self.disk.get() {
            disk.forget(key, &stored.selection);
            disk.keep(key, &stored, purges);
        }
        drop(past);
        self.counts.stores.add_one();
        Ok(stored)
    }

    /// Puts a response into memory, if its body is there, instead of one that is selected as it is. What makes room for it stays
    /// on the disk.
    fn insert(&self, key: &Key, stored: &Arc<Stored>, past: &Past) {
        let before = self.urls.peek(key);
        let others = before.iter().flat_map(|resource| &resource.variants);
        let mut variants: Vec<_> = match stored.body {
            StoredBody::Memory(_) => vec![Arc::clone(stored)],
            StoredBody::File(_) => Vec::new(),
        };
        variants.extend(others.filter(|other| other.selection != stored.selection).cloned());
        variants.truncate(MOST_VARIANTS);
        // All of them together must fit into a part of the store.
        let most = (self.limits.object.saturating_mul(2)).max(stored.weight() as u64);
        let mut weight = 0;
        variants.retain(|variant| {
            weight += variant.weight() as u64;
            weight <= most
        });
        if variants.is_empty() {
            self.urls.remove(key);
            return;
        }
        let resource = Arc::new(Resource { variants, unstorable_until: None });
        let evicted = self.urls.insert_with_lifecycle(key.clone(), resource);
        let Some(disk) = self.disk.get() else { return };
        for (key, resource) in &evicted {
            resource.variants.iter().for_each(|stored| disk.keep(key, stored, past.count()));
        }
    }

    /// Notes that a response of this URL could not be stored, for reasons of its own. What is stored stays.
    pub fn note_unstorable(&self, key: &Key, now: SystemTime) {
        let _writing = self.past();
        let variants = self.urls.peek(key).map_or_else(Vec::new, |resource| resource.variants.clone());
        let resource = Resource { variants, unstorable_until: Some(now + UNSTORABLE) };
        self.urls.insert(key.clone(), Arc::new(resource));
    }

    /// Forgets all responses of the URLs that have one which is concerned, also those that were asked for before now and come
    /// later. Returns how many there were. But for one URL it looks at all that is stored: not for an I/O thread.
    pub fn purge(&self, purge: &Purge) -> u64 {
        self.past().add(purge.clone());
        // What is in memory and on the disk is one response.
        let purged = RefCell::new(HashSet::new());
        let hash = |stored: &Stored| match self.disk.get() {
            Some(disk) => disk.hash(&stored.selection),
            None => self.hasher.hash_one(&stored.selection),
        };
        let note = |key: &Key, resource: &Resource| {
            let hashes = resource.variants.iter().map(|stored| (key.clone(), hash(stored)));
            purged.borrow_mut().extend(hashes);
        };
        if let Some(key) = purge.only_url() {
            let removed = purge.concerns(key, &[]).then(|| self.urls.remove(key)).flatten();
            removed.iter().for_each(|(key, resource)| note(key, resource));
        } else {
            self.urls.retain(|key, resource| {
                let is_concerned = resource.variants.iter().any(|stored| purge.concerns(key, &stored.tags));
                if is_concerned {
                    note(key, resource);
                }
                !is_concerned
            });
        }
        let mut purged = purged.into_inner();
        if let Some(disk) = self.disk.get() {
            let concerned = disk.concerned(purge);
            // All of a URL goes together, wherever it is.
            let removed = concerned.iter().filter_map(|key| self.urls.remove(key)).collect::<Vec<_>>();
            for (key, resource) in &removed {
                purged.extend(resource.variants.iter().map(|stored| (key.clone(), hash(stored))));
            }
            let keys: HashSet<Key> = purged.iter().map(|(key, _)| key.clone()).chain(concerned).collect();
            for key in keys {
                let hashes = disk.remove_url(&key);
                purged.extend(hashes.into_iter().map(|hash| (key.clone(), hash)));
            }
        }
        let purged = purged.len() as u64;
        self.counts.purged.add(purged);
        purged
    }

    /// Waits until what was purged has gone from the disk too, or the disk is too slow. Blocks.
    pub fn settle(&self) {
        self.disk.get().into_iter().for_each(Disk::settle);
    }

    /// Writes what waits for the disk, and lets another process have it. Blocks, for so long at most; `false`: it took longer.
    pub fn close_disk(&self, patience: Duration) -> bool {
        self.disk.get().is_none_or(|disk| disk.close(patience))
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
            disk: self.disk.get().map(Disk::figures).unwrap_or_default(),
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

/// Counts what goes to make room, and gives it to whoever needed that.
#[derive(Clone)]
struct Evictions(Arc<Counts>);

impl Lifecycle<Key, Arc<Resource>> for Evictions {
    type RequestState = Vec<(Key, Arc<Resource>)>;

    fn begin_request(&self) -> Self::RequestState {
        Vec::new()
    }

    fn on_evict(&self, evicted: &mut Self::RequestState, key: Key, resource: Arc<Resource>) {
        self.0.evictions.add(resource.variants.len() as u64);
        evicted.push((key, resource));
    }
}

#[cfg(test)]
mod tests;
