//! How the two sides of a slot wait for each other: the engine's thread sleeps on a futex ([`EventCount`]), the server
//! leaves a wish ([`RoomWish`]) and hears of it through its doorbell, since an I/O thread sleeps elsewhere.
//!
//! Both are Dekker's pattern: who waits says so, fences, and looks once more; who changes something changes it,
//! fences, and looks whether somebody waits. One of them sees the other.

use crate::layout::SlotControl;
use crate::sync::{AtomicU32, FutexWord, Ordering, fence, futex_wait, futex_wake};

/// What the engine's thread sleeps on while a ring is empty or full.
#[derive(Clone, Copy)]
pub(crate) struct EventCount<'a> {
    /// 1: the engine sleeps, or is about to.
    pub waits: &'a AtomicU32,
    /// Counts the signals, so that one between the last look and the sleep is not missed.
    pub count: &'a FutexWord,
}

impl<'a> EventCount<'a> {
    pub fn of(slot: &'a SlotControl) -> Self {
        Self { waits: &slot.engine_waits, count: &slot.signal }
    }

    /// Engine: sleeps until `condition` may hold. May return early: callers check again.
    pub fn wait(&self, condition: impl Fn() -> bool) {
        let seen = self.count.load(Ordering::SeqCst);
        self.waits.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !condition() {
            futex_wait(self.count, seen);
        }
        self.waits.store(0, Ordering::Relaxed);
    }

    /// Server: wakes the engine's thread if it sleeps. Call it after the change that the engine waits for.
    pub fn signal(&self) {
        fence(Ordering::SeqCst);
        if self.waits.load(Ordering::Relaxed) != 0 {
            // Before the count: an engine that has seen the new count sets its word after this, and the sleep of one
            // that has not ends with the count.
            self.waits.store(0, Ordering::Relaxed);
            self.count.fetch_add(1, Ordering::SeqCst);
            futex_wake(self.count);
        }
    }
}

/// The server's wish to hear when there is room in the request ring.
#[derive(Clone, Copy)]
pub(crate) struct RoomWish<'a>(pub &'a AtomicU32);

impl RoomWish<'_> {
    /// Server: from now on the slot is marked when there is room. Look at the room once more afterwards.
    pub fn make(&self) {
        self.0.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Engine: whether the slot has to be marked. Call it after making room.
    #[must_use]
    pub fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::SeqCst) != 0
    }
}
