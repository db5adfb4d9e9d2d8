//! How an engine tells an I/O thread that slots have news: a bit for each slot, and an eventfd that is rung only when
//! the I/O thread sleeps.
//!
//! Setting a bit twice is the same as once, so nothing can overflow. Announcing sleep and setting bits follow the
//! pattern of `pool`: the I/O thread says that it sleeps, fences, and drains once more before it does.

use crate::layout::IoControl;
use crate::sync::{AtomicU64, Ordering, fence};

/// A view of one I/O thread's doorbell in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Doorbell<'a> {
    pub control: &'a IoControl,
    /// One bit for each slot of the I/O thread.
    pub dirty: &'a [AtomicU64],
}

/// Whether the eventfd has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Ring {
    Needed,
    Awake,
}

impl Doorbell<'_> {
    /// Engine: the slot (numbered within its I/O thread) has news that nobody waits for. The I/O thread finds them when
    /// it next drains.
    pub fn note(&self, slot: usize) {
        let word = slot / 64;
        self.dirty[word].fetch_or(1 << (slot % 64), Ordering::Release);
        // After the bit itself, so that whoever sees this one finds that one.
        self.control.summary[word / 64].fetch_or(1 << (word % 64), Ordering::Release);
    }

    /// Engine: the slot has news.
    pub fn mark(&self, slot: usize) -> Ring {
        self.note(slot);
        fence(Ordering::SeqCst);
        if self.control.parked.load(Ordering::Relaxed) == 0
            || self.control.parked.swap(0, Ordering::SeqCst) == 0
        {
            return Ring::Awake;
        }
        Ring::Needed
    }

    /// Server: calls `news` for every marked slot.
    pub fn drain(&self, mut news: impl FnMut(usize)) {
        for (index, summary) in self.control.summary.iter().enumerate() {
            if summary.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for_each_bit(summary.swap(0, Ordering::AcqRel), |bit| {
                let word = index * 64 + bit;
                // An engine can set summary bits that stand for no word.
                if let Some(dirty) = self.dirty.get(word) {
                    for_each_bit(dirty.swap(0, Ordering::AcqRel), |bit| news(word * 64 + bit));
                }
            });
        }
    }

    /// Server: from now on marks ring the eventfd. Drain once more before sleeping.
    pub fn park(&self) {
        // Every change of this word is an exchange, so that there is one order of them that both sides agree on.
        self.control.parked.swap(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Server: awake.
    pub fn unpark(&self) {
        self.control.parked.swap(0, Ordering::Relaxed);
    }
}

fn for_each_bit(mut word: u64, mut visit: impl FnMut(usize)) {
    while word != 0 {
        visit(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}
