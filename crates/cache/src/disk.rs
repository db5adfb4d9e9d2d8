//! What memory has no room for, and what is to outlive the process: a file for each response, below one directory.
//!
//! What is there is known in memory ([`Index`]), so that a miss asks no disk. Files are read on the runtime's threads for what
//! blocks, and written and removed by a thread of their own ([`writer`]); whoever stores or purges waits for neither. A disk that
//! fails costs what is on it, and nothing else.

mod directory;
mod file_body;
mod format;
mod index;
mod jobs;
mod loading;
mod writer;

pub use file_body::{FileBody, Spilling};
pub use loading::Located;
pub(crate) use loading::{load, spill};

use crate::figures::Count;
use crate::key::Key;
use crate::purge::{Past, Purge};
use crate::selection::{CookieRule, Selection};
use crate::stored::Stored;
use directory::{Directory, Name};
use http::HeaderMap;
use index::{Bounds, Index};
use jobs::{Jobs, Stage, Write};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Files that are read at once, of those that a disk may hang on; what is beyond is a miss.
const MOST_READS: usize = 64;
/// Bodies on their way into files.
const MOST_SPILLING: usize = 64;
/// What is known of files may take this part of the memory of the store, and what waits to be written another.
const PART_OF_INDEX: u64 = 4;
const PART_OF_WAITING: u64 = 8;
/// How long a purge waits for a disk at most.
const REMOVAL_WAIT: Duration = Duration::from_secs(2);

/// Where responses lie, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLimits {
    pub directory: PathBuf,
    /// Bytes of all files.
    pub bytes: u64,
    pub files: u64,
    /// Bytes of one body.
    pub object: u64,
}

/// How a disk stands, and what has been counted of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskFigures {
    /// Requests that were answered with what was read.
    pub hits: u64,
    pub writes: u64,
    /// Responses that were not written: the disk is too slow, or it fails.
    pub dropped: u64,
    pub evictions: u64,
    pub errors: u64,
    pub files: u64,
    pub bytes: u64,
    /// The bound of `bytes`.
    pub limit: u64,
    /// Disks that responses can be written to now, and all.
    pub working: u64,
    pub disks: u64,
}

#[derive(Debug, Default)]
pub(crate) struct DiskCounts {
    pub(crate) hits: Count,
    writes: Count,
    dropped: Count,
    evictions: Count,
    errors: Count,
}

/// The disk of a store.
pub(crate) struct Disk(Arc<Shared>);

/// What the threads share that use it.
pub(crate) struct Shared {
    options: DiskLimits,
    /// Bytes of bodies that go into memory again.
    memory_object: u64,
    past: Arc<Mutex<Past>>,
    index: Mutex<Index>,
    jobs: Jobs,
    /// `None`: there is none that could be used.
    directory: Mutex<Option<Arc<Directory>>>,
    /// Of the next file.
    number: AtomicU64,
    reads: Arc<Semaphore>,
    spilling: Arc<Semaphore>,
    counts: DiskCounts,
    /// Failures since it last went well.
    failures: AtomicUsize,
}

impl Disk {
    /// `memory`: bytes of the store; `memory_object`: of the largest body in it.
    pub(crate) fn start(
        options: DiskLimits,
        memory: u64,
        memory_object: u64,
        past: Arc<Mutex<Past>>,
    ) -> io::Result<Self> {
        let bounds = Bounds { bytes: options.bytes, files: options.files, memory: memory / PART_OF_INDEX };
        let shared = Arc::new(Shared {
            options,
            memory_object,
            past,
            index: Mutex::new(Index::new(bounds)),
            jobs: Jobs::new(memory / PART_OF_WAITING),
            directory: Mutex::default(),
            number: AtomicU64::new(1),
            reads: Arc::new(Semaphore::new(MOST_READS)),
            spilling: Arc::new(Semaphore::new(MOST_SPILLING)),
            counts: DiskCounts::default(),
            failures: AtomicUsize::new(0),
        });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("cache-disk".into()).spawn(move || writer::run(&own))?;
        Ok(Self(shared))
    }

    /// A response that is not written yet, for a request with these fields.
    pub(crate) fn unwritten(
        &self,
        key: &Key,
        base: &[u8],
        request: &HeaderMap,
        cookies: &CookieRule,
    ) -> Option<Arc<Stored>> {
        let past = self.0.past();
        self.0.jobs.find(key, &past, |stored| stored.selection.fits(base, request, cookies))
    }

    /// What there is for a request with these fields, to be [loaded](loading). `purges`: so many there were until now.
    pub(crate) fn find(
        &self,
        key: &Key,
        base: &[u8],
        request: &HeaderMap,
        cookies: &CookieRule,
        purges: u64,
    ) -> Option<Located> {
        let found = self.0.index().find(key, base, request, cookies)?;
        Located::new(&self.0, key, found, purges)
    }

    /// Has a response written that was asked for when there were so many purges, unless it is there.
    pub(crate) fn keep(&self, key: &Key, stored: &Arc<Stored>, purges: u64) {
        if self.0.index().has(key, &stored.selection, stored.terms.since()) {
            return;
        }
        let write = Write { key: key.clone(), stored: Arc::clone(stored), purges };
        if !self.0.jobs.write(write) {
            self.0.counts.dropped.add_one();
        }
    }

    /// Forgets what a newer response replaces.
    pub(crate) fn forget(&self, key: &Key, selection: &Selection) {
        let gone = {
            let mut index = self.0.index();
            let hash = index.hash(selection);
            index.forget(key, hash)
        };
        self.0.remove(gone.into_iter().map(Name::Whole));
    }

    pub(crate) fn hash(&self, selection: &Selection) -> u64 {
        self.0.index().hash(selection)
    }

    /// The URLs that have a response which is concerned.
    pub(crate) fn concerned(&self, purge: &Purge) -> Vec<Key> {
        self.0.index().concerned(purge)
    }

    /// Forgets all of a URL. Returns the hashes of what the responses were selected by.
    pub(crate) fn remove_url(&self, key: &Key) -> Vec<u64> {
        let (gone, hashes) = self.0.index().remove_url(key);
        self.0.remove(gone.into_iter().map(Name::Whole));
        hashes
    }

    /// Waits until what has been forgotten has gone from the disk too, or the disk is too slow. Blocks.
    pub(crate) fn settle(&self) {
        self.0.jobs.settle(REMOVAL_WAIT);
    }

    /// Writes what waits, and lets another process have the directory. Files can still be forgotten. Blocks, for so long at
    /// most; `false`: it took longer.
    pub(crate) fn close(&self, patience: Duration) -> bool {
        self.0.jobs.enter(Stage::Closing);
        self.0.jobs.wait_for_end(patience)
    }

    pub(crate) fn counts(&self) -> &DiskCounts {
        &self.0.counts
    }

    pub(crate) fn limits(&self) -> &DiskLimits {
        &self.0.options
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    pub(crate) fn figures(&self) -> DiskFigures {
        let Shared { counts, options, .. } = &*self.0;
        let (files, bytes) = {
            let index = self.0.index();
            (index.files(), index.bytes())
        };
        DiskFigures {
            hits: counts.hits.get(),
            writes: counts.writes.get(),
            dropped: counts.dropped.get(),
            evictions: counts.evictions.get(),
            errors: counts.errors.get(),
            files,
            bytes,
            limit: options.bytes,
            working: u64::from(self.0.is_working()),
            disks: 1,
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.0.jobs.enter(Stage::Ended);
    }
}

impl Shared {
    /// Takes a body that is too large for memory. Blocks; an error is the disk's, or there is no room.
    fn spill(self: &Arc<Self>) -> io::Result<Spilling> {
        let place = Arc::clone(&self.spilling).try_acquire_owned();
        Spilling::begin(self, place.map_err(|_| io::Error::other("too many are on their way"))?)
    }

    /// Whether bodies of this length can be stored now.
    pub(crate) fn may_take(&self, length: u64) -> bool {
        length <= self.options.object && self.is_working()
    }

    fn is_working(&self) -> bool {
        self.jobs.stage() == Stage::Open && self.failures.load(Ordering::Relaxed) == 0
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self) -> Option<Arc<Directory>> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes room; what goes for it is removed. `false`: there is none.
    fn begin(&self, length: u64) -> bool {
        let gone = self.index().begin(length);
        gone.map(|gone| self.evicted(gone)).is_some()
    }

    fn evicted(&self, gone: index::Gone) {
        self.counts.evictions.add(gone.len() as u64);
        self.remove(gone.into_iter().map(Name::Whole));
    }

    fn remove(&self, names: impl IntoIterator<Item = Name>) {
        self.jobs.remove(names);
    }

    /// Counts a failure, and says so if it went well before.
    fn failed(&self, error: &io::Error, what: &str) {
        self.counts.errors.add_one();
        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            let directory = self.options.directory.display();
            tracing::warn!(%directory, %error, "the disk of the cache {what}: it goes on in memory");
        }
    }

    fn went_well(&self) {
        if self.failures.swap(0, Ordering::Relaxed) > 0 {
            let directory = self.options.directory.display();
            tracing::info!(%directory, "the disk of the cache is in use again");
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("options", &self.options).finish_non_exhaustive()
    }
}

impl std::ops::Add for DiskFigures {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            writes: self.writes + other.writes,
            dropped: self.dropped + other.dropped,
            evictions: self.evictions + other.evictions,
            errors: self.errors + other.errors,
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            limit: self.limit + other.limit,
            working: self.working + other.working,
            disks: self.disks + other.disks,
        }
    }
}

#[cfg(test)]
mod tests;
