//! A bound on what waits to be dispatched.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of updates that may wait.
const MOST_BYTES: usize = 64 << 20;

/// What all updates have in common that wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// What an update adds, as long as it waits.
#[derive(Debug)]
pub(crate) struct Load {
    bytes: usize,
    total: Budget,
}

impl Budget {
    /// `None`: too much waits.
    pub fn take(&self, bytes: usize) -> Option<Load> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let load = Load { bytes, total: self.clone() };
        (before <= MOST_BYTES).then_some(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_frees_its_room() {
        let budget = Budget::default();
        let first = budget.take(MOST_BYTES + 1).unwrap();
        assert!(budget.take(1).is_none());
        drop(first);
        assert!(budget.take(1).is_some());
    }
}
