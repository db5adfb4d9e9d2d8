//! What is counted of a cache.

use crate::disk::DiskFigures;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// Since the server started.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answered with what was stored and fresh.
    pub hits: Count,
    /// Answered with what was stored and stale, while a newer one was fetched, or instead of an error.
    pub stale: Count,
    /// Handed on, since nothing fit that was stored, or it was over.
    pub misses: Count,
    /// Handed on without a look, as the configuration or the request says.
    pub passes: Count,
    /// Those of hits and misses that waited for the fetch of another.
    pub collapsed: Count,
    /// Stored responses that were found to be still good.
    pub revalidations: Count,
    pub stores: Count,
    pub evictions: Count,
    /// Stored responses that were purged.
    pub purged: Count,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// How a cache stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    pub hits: u64,
    pub stale: u64,
    pub misses: u64,
    pub passes: u64,
    pub collapsed: u64,
    pub revalidations: u64,
    pub stores: u64,
    pub evictions: u64,
    pub purged: u64,
    /// URLs that something is known of.
    pub entries: u64,
    /// What they take.
    pub bytes: u64,
    /// Bytes of bodies, those on their way in and out with them.
    pub bodies: u64,
    /// The bound of `bytes`.
    pub limit: u64,
    /// All of it 0: there is none.
    pub disk: DiskFigures,
}

impl Add for Figures {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            stale: self.stale + other.stale,
            misses: self.misses + other.misses,
            passes: self.passes + other.passes,
            collapsed: self.collapsed + other.collapsed,
            revalidations: self.revalidations + other.revalidations,
            stores: self.stores + other.stores,
            evictions: self.evictions + other.evictions,
            purged: self.purged + other.purged,
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            bodies: self.bodies + other.bodies,
            limit: self.limit + other.limit,
            disk: self.disk + other.disk,
        }
    }
}

impl Count {
    pub fn add_one(&self) {
        self.add(1);
    }

    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
