//! How much memory bodies may take: those that are stored, on their way, and on their way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A body is too large to be stored, or all that are there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Counts the bytes of all bodies until they are freed: a slow client holds one that is no longer stored.
#[derive(Debug)]
pub(crate) struct Room {
    /// Of one body.
    pub(crate) object: u64,
    all: u64,
    taken: AtomicU64,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
pub struct Taken {
    room: Arc<Room>,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(object: u64, all: u64) -> Self {
        Self { object, all, taken: AtomicU64::new(0) }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Taken {
    pub(crate) fn nothing(room: &Arc<Room>) -> Self {
        Self { room: Arc::clone(room), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes so many bytes more.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        let more = more as u64;
        let taken = self.room.taken.fetch_add(more, Ordering::Relaxed);
        if taken + more > self.room.all {
            self.room.taken.fetch_sub(more, Ordering::Relaxed);
            return Err(Full);
        }
        self.bytes += more;
        Ok(())
    }

    /// Gives back so many of its bytes.
    pub fn shrink(&mut self, fewer: usize) {
        let fewer = (fewer as u64).min(self.bytes);
        self.room.taken.fetch_sub(fewer, Ordering::Relaxed);
        self.bytes -= fewer;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
