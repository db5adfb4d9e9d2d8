//! A byte ring between one writer and one reader in different processes.
//!
//! Positions count bytes since the request began and never wrap in practice (64 bits). Each side keeps its own
//! position to itself and only publishes it; the other side's is checked before it is used, so that a lying peer can
//! cost the request, never the reader.

use crate::area::Area;
use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;

/// The peer's position is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// The writing side.
pub(crate) struct Writer<'a> {
    pub tail: &'a AtomicU64,
    pub head: &'a AtomicU64,
    pub area: Area<'a>,
    /// The writer's own position; `tail` is its published copy.
    pub written: &'a Cell<u64>,
}

impl Writer<'_> {
    /// Bytes that can be written now.
    pub fn room(&self) -> Result<usize, Corrupt> {
        let unread = self.written.get().wrapping_sub(self.head.load(Ordering::Acquire));
        (self.area.capacity() as u64).checked_sub(unread).map(|room| room as usize).ok_or(Corrupt)
    }

    /// Puts bytes behind the last ones, unpublished. The caller has made sure of the room.
    pub fn put(&self, bytes: &[u8]) {
        self.area.copy_in(self.written.get(), bytes);
        self.written.set(self.written.get().wrapping_add(bytes.len() as u64));
    }

    /// Shows the reader all that was put.
    pub fn publish(&self) {
        self.tail.store(self.written.get(), Ordering::Release);
    }
}

/// The reading side.
pub(crate) struct Reader<'a> {
    pub tail: &'a AtomicU64,
    pub head: &'a AtomicU64,
    pub area: Area<'a>,
    /// The reader's own position; `head` is its published copy.
    pub read: &'a Cell<u64>,
}

impl Reader<'_> {
    /// Bytes that can be read now.
    pub fn available(&self) -> Result<usize, Corrupt> {
        let unread = self.tail.load(Ordering::Acquire).wrapping_sub(self.read.get());
        if unread > self.area.capacity() as u64 { Err(Corrupt) } else { Ok(unread as usize) }
    }

    /// Copies bytes that lie `ahead` of the position, without moving it. The caller has made sure that they are there.
    pub fn peek(&self, ahead: usize, bytes: &mut [u8]) {
        self.area.copy_out(self.read.get().wrapping_add(ahead as u64), bytes);
    }

    /// Moves the position, and shows the writer the room.
    pub fn advance(&self, bytes: usize) {
        self.read.set(self.read.get().wrapping_add(bytes as u64));
        self.head.store(self.read.get(), Ordering::Release);
    }
}
