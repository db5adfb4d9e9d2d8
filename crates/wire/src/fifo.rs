//! The queue of waiting requests: one producer side (the server, behind a lock of its own), many consumers (PHP
//! threads of any number of processes), first in, first out.
//!
//! A consumer takes a token with one compare-and-swap of `head`; there is no state in between, so a process that is
//! killed at any instruction leaves the queue whole. (A cell-by-cell handshake, as in Vyukov's queue, would leave a
//! cell claimed for ever.)

use crate::sync::{AtomicU64, Ordering};

/// A view of a FIFO that lives in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Fifo<'a> {
    /// Tokens taken so far; moved by consumers.
    pub head: &'a AtomicU64,
    /// Tokens pushed so far; moved by the producer.
    pub tail: &'a AtomicU64,
    /// A power of two of them.
    pub cells: &'a [AtomicU64],
}

/// Why a token could not be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushError {
    Full,
    /// `head` is not between the oldest token and `tail`: the engine wrote what it must not.
    Corrupt,
}

impl Fifo<'_> {
    /// Appends a token. `tail` is the producer's own count, which it does not read back from shared memory.
    /// Returns the token's ticket: its position in the order of arrival.
    pub fn push(&self, tail: &mut u64, token: u64) -> Result<u64, PushError> {
        let waiting = tail.wrapping_sub(self.head.load(Ordering::Acquire));
        let capacity = self.cells.len() as u64;
        if waiting > capacity {
            return Err(PushError::Corrupt);
        }
        if waiting == capacity {
            return Err(PushError::Full);
        }
        let ticket = *tail;
        self.cell(ticket).store(token, Ordering::Relaxed);
        *tail = ticket.wrapping_add(1);
        self.tail.store(*tail, Ordering::Release);
        Ok(ticket)
    }

    /// Takes the oldest token.
    pub fn pop(&self) -> Option<u64> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            if head == self.tail.load(Ordering::Acquire) {
                return None;
            }
            // The producer overwrites this cell only after it has seen `head` move past it, and then the exchange
            // below fails: a token is returned only if the cell still held it.
            let token = self.cell(head).load(Ordering::Relaxed);
            match self.head.compare_exchange(head, head.wrapping_add(1), Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(token),
                Err(moved) => head = moved,
            }
        }
    }

    /// The oldest token, which stays. It may have been taken by now.
    pub fn peek(&self) -> Option<u64> {
        let head = self.head.load(Ordering::Acquire);
        (head != self.tail.load(Ordering::Acquire)).then(|| self.cell(head).load(Ordering::Relaxed))
    }

    /// Tokens waiting, as far as can be seen at this moment.
    pub fn len(&self) -> u64 {
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Acquire).wrapping_sub(head).min(self.cells.len() as u64)
    }

    /// What lies at a position, whether it waits or not.
    pub fn at(&self, position: u64) -> u64 {
        self.cell(position).load(Ordering::Acquire)
    }

    fn cell(&self, position: u64) -> &AtomicU64 {
        &self.cells[(position & (self.cells.len() as u64 - 1)) as usize]
    }
}
