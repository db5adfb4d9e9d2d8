//! A bound on what many take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that all who hold a [`Share`] of it may have together. Shared by all I/O threads.
#[derive(Debug)]
pub struct Quota {
    limit: u64,
    used: AtomicU64,
}

/// What one of them has. Given back when dropped.
#[derive(Debug)]
pub struct Share {
    quota: Arc<Quota>,
    held: u64,
}

impl Quota {
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    /// A share of nothing yet.
    pub fn share(self: &Arc<Self>) -> Share {
        Share { quota: Arc::clone(self), held: 0 }
    }

    /// Bytes that all shares hold.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Bytes.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Takes as many bytes more; `false` if they are not to be had.
    pub fn take(&mut self, bytes: u64) -> bool {
        let limit = self.quota.limit;
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        // A number, and nothing that it guards.
        let taken = self.quota.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.held += bytes;
        }
        taken
    }

    /// Takes as many bytes more, whatever the bound: they are there already.
    pub fn take_anyway(&mut self, bytes: u64) {
        self.quota.used.fetch_add(bytes, Ordering::Relaxed);
        self.held += bytes;
    }

    pub fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.held);
        self.quota.used.fetch_sub(bytes, Ordering::Relaxed);
        self.held -= bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_together_stay_within_the_quota() {
        let quota = Quota::new(10);
        let (mut one, mut other) = (quota.share(), quota.share());
        assert!(one.take(7));
        assert!(!other.take(4));
        assert!(other.take(3));
        assert!(!one.take(u64::MAX), "no overflow passes for room");
        one.give_back(5);
        assert!(other.take(5));
        assert_eq!((one.held(), other.held(), quota.used()), (2, 8, 10));
    }

    #[test]
    fn what_is_there_anyway_counts_and_a_dropped_share_is_given_back() {
        let quota = Quota::new(10);
        let mut large = quota.share();
        large.take_anyway(100);
        assert!(!quota.share().take(1));
        drop(large);
        assert_eq!(quota.used(), 0);
        assert!(quota.share().take(10));
    }
}
