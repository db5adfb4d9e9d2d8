//! The life of a slot, and the token that names one request in it.
//!
//! ```text
//!           server: submit           engine: claim            engine: release
//!   Free ───────────────► Queued ───────────────► Running ───────────────► Done
//!    ▲                      │ server: withdraw                              │ server: reclaim
//!    └──────────────────────┴───────────────────────────────────────────────┘
//! ```
//! State, generation and the thread that runs it are one word, so that a late claim or release of an earlier request
//! fails instead of touching the one that uses the slot now, and so that the server knows whose request died when a
//! process of the engine does.
//!
//! ```text
//! bits 0–7  state │ bits 8–39  generation │ bits 40–63  thread while running, otherwise 0
//! ```

use crate::sync::{AtomicU64, Ordering};

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// The server's; nothing in it counts.
    Free = 0,
    /// Its token is in a FIFO.
    Queued = 1,
    /// An engine thread runs it.
    Running = 2,
    /// The engine will not touch it again.
    Done = 3,
}

/// Names one request: the slot's number and the generation in which it was used. What the FIFO holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    pub slot: u32,
    pub generation: u32,
}

impl Token {
    pub(crate) fn to_bits(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.slot)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { slot: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// A view of a slot's state word.
#[derive(Clone, Copy)]
pub(crate) struct StateWord<'a>(pub &'a AtomicU64);

impl StateWord<'_> {
    /// Server: the request of this generation is complete in the slot and may be claimed.
    pub fn submit(&self, generation: u32) {
        self.0.store(word(generation, SlotState::Queued, NOBODY), Ordering::Release);
    }

    /// Engine: takes the request for a thread. `false` if it was withdrawn.
    pub fn claim(&self, generation: u32, thread: usize) -> bool {
        self.exchange(queued(generation), word(generation, SlotState::Running, thread))
    }

    /// Engine: the last access to the slot.
    pub fn release(&self, generation: u32, thread: usize) -> bool {
        self.exchange(word(generation, SlotState::Running, thread), word(generation, SlotState::Done, NOBODY))
    }

    /// Server: takes a request back that no thread has claimed. `false` if one has.
    pub fn withdraw(&self, generation: u32) -> bool {
        self.exchange(queued(generation), word(generation, SlotState::Free, NOBODY))
    }

    /// Server: whether the engine has released the request of this generation. Any other word means that it has not.
    pub fn is_done(&self, generation: u32) -> bool {
        self.is(word(generation, SlotState::Done, NOBODY))
    }

    /// Server: whether the request of this generation waits for a thread.
    pub fn is_queued(&self, generation: u32) -> bool {
        self.is(queued(generation))
    }

    /// Server: whether this thread runs the request of this generation.
    pub fn is_run_by(&self, generation: u32, thread: usize) -> bool {
        self.is(word(generation, SlotState::Running, thread))
    }

    /// Server: which thread runs the request of this generation, if one does.
    pub fn runner(&self, generation: u32) -> Option<usize> {
        let now = self.0.load(Ordering::Acquire);
        let thread = (now >> 40) as usize;
        (now == word(generation, SlotState::Running, thread)).then_some(thread)
    }

    /// Server: whether the word is one that the request of this generation can have while an engine has it.
    pub fn is_possible(&self, generation: u32, threads: usize) -> bool {
        let now = self.0.load(Ordering::Acquire);
        let thread = (now >> 40) as usize;
        now == queued(generation)
            || now == word(generation, SlotState::Done, NOBODY)
            || (thread < threads && now == word(generation, SlotState::Running, thread))
    }

    /// Server: nothing can claim or release it any more.
    pub fn reclaim(&self, generation: u32) {
        self.0.store(word(generation, SlotState::Free, NOBODY), Ordering::Release);
    }

    fn is(&self, word: u64) -> bool {
        self.0.load(Ordering::Acquire) == word
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What stands for the thread while none runs the request.
const NOBODY: usize = 0;

fn queued(generation: u32) -> u64 {
    word(generation, SlotState::Queued, NOBODY)
}

fn word(generation: u32, state: SlotState, thread: usize) -> u64 {
    ((thread as u64) << 40) | (u64::from(generation) << 8) | state as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_word_has_the_documented_parts() {
        assert_eq!(word(0x1122_3344, SlotState::Running, 0x3FF), 0x0003_FF11_2233_4402);
    }

    #[test]
    fn a_token_of_an_earlier_generation_does_nothing() {
        let bits = AtomicU64::new(0);
        let state = StateWord(&bits);
        state.submit(u32::MAX);
        assert!(state.withdraw(u32::MAX));
        state.submit(0);
        assert!(!state.claim(u32::MAX, 1) && !state.withdraw(u32::MAX));
        assert!(state.claim(0, 1));
        assert!(!state.release(u32::MAX, 1) && !state.release(0, 2));
        assert!(state.is_run_by(0, 1) && !state.is_run_by(0, 2));
        assert_eq!((state.runner(0), state.runner(1)), (Some(1), None));
        assert!(state.release(0, 1) && state.is_done(0) && !state.is_done(u32::MAX));
    }
}
