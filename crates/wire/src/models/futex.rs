//! The kernel's futex: comparing and falling asleep are one step with respect to a wake. A sleeper that nobody wakes
//! is a deadlock, which loom reports; there are no wake-ups without a cause that could hide one.

use crate::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// A word that one side sleeps on.
#[derive(Default)]
pub(crate) struct FutexWord {
    value: AtomicU32,
    /// The kernel's bucket lock.
    bucket: Mutex<()>,
    sleepers: Condvar,
}

impl FutexWord {
    pub fn load(&self, ordering: Ordering) -> u32 {
        self.value.load(ordering)
    }

    pub fn store(&self, value: u32, ordering: Ordering) {
        self.value.store(value, ordering);
    }

    pub fn fetch_add(&self, value: u32, ordering: Ordering) -> u32 {
        self.value.fetch_add(value, ordering)
    }

    pub fn wait(&self, expected: u32) {
        let bucket = self.bucket.lock().expect("no model panics in here");
        if self.value.load(Ordering::Relaxed) == expected {
            drop(self.sleepers.wait(bucket));
        }
    }

    pub fn wake(&self) {
        let _bucket = self.bucket.lock().expect("no model panics in here");
        self.sleepers.notify_one();
    }
}
