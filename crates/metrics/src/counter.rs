//! A counter that one thread writes and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Since only one thread writes it, it needs no locked instruction.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, amount: u64) {
        self.0.store(self.get().wrapping_add(amount), Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The value that was set last.
#[derive(Default)]
pub(crate) struct Latest(AtomicU64);

impl Latest {
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The greatest value since it was last taken.
#[derive(Default)]
pub(crate) struct Greatest(AtomicU64);

impl Greatest {
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.0.store(value, Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// By another thread than the writer's. A value that is being raised meanwhile counts in either period, or not at
    /// all if a greater one was taken at this moment.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Relaxed)
    }
}
