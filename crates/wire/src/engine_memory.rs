//! The memory of one engine as the server sees it.

use crate::damage::Damage;
use crate::fifo::PushError;
use crate::region::Region;
use crate::slot::Token;
use crate::slot_table::SubmitError;
use crate::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The memory of one engine, with the producers' counts, which the engine cannot reach.
pub struct EngineMemory {
    region: Region,
    /// For each pool the tokens pushed so far.
    tails: Vec<Mutex<u64>>,
    /// For each pool the tokens taken at the last inspection.
    taken: Vec<AtomicU64>,
    /// For each pool the requests that were withdrawn after they had been pushed.
    withdrawn: Vec<AtomicU64>,
    damage: OnceLock<Damage>,
}

impl EngineMemory {
    pub fn new(region: Region) -> Self {
        let tails = (0..region.geometry().pools).map(|_| Mutex::new(0)).collect();
        let taken = (0..region.geometry().pools).map(|_| AtomicU64::new(0)).collect();
        let withdrawn = (0..region.geometry().pools).map(|_| AtomicU64::new(0)).collect();
        Self { region, tails, taken, withdrawn, damage: OnceLock::new() }
    }

    /// Requests that wait in a pool. The tokens of those that were withdrawn stay in its FIFO until they are taken; they
    /// do not count.
    pub fn waiting(&self, pool: usize) -> u64 {
        let taken = self.region.pool(pool).control.void_tokens.load(Ordering::Relaxed);
        let void = self.withdrawn[pool].load(Ordering::Relaxed).saturating_sub(taken);
        self.region.waiting(pool).saturating_sub(void)
    }

    pub(crate) fn count_withdrawn(&self, pool: usize) {
        self.withdrawn[pool].fetch_add(1, Ordering::Relaxed);
    }

    /// The first damage that was found in the memory: its engine must not have it any longer.
    pub fn damage(&self) -> Option<Damage> {
        self.damage.get().copied()
    }

    pub(crate) fn note(&self, damage: Damage) {
        // The first one counts.
        let _ = self.damage.set(damage);
    }

    /// Looks at what belongs to no request, for damage. To be called a few times a second.
    pub fn inspect(&self) {
        let geometry = self.region.geometry();
        if !(0..geometry.pools as usize).all(|pool| self.is_queue_possible(pool)) {
            self.note(Damage::Queue);
        }
        if !(0..geometry.threads as usize).all(|thread| self.region.is_thread_possible(thread)) {
            self.note(Damage::Thread);
        }
    }

    fn is_queue_possible(&self, pool: usize) -> bool {
        let control = self.region.pool(pool).control;
        let tail = lock(&self.tails[pool]);
        let head = control.head.load(Ordering::Acquire);
        let before = self.taken[pool].swap(head, Ordering::Relaxed);
        control.tail.load(Ordering::Relaxed) == *tail && (before..=*tail).contains(&head)
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Puts a token behind all others of the pool and wakes a thread if one sleeps. Returns its ticket.
    pub(crate) fn push(&self, pool: usize, token: Token) -> Result<u64, SubmitError> {
        let view = self.region.pool(pool);
        let ticket = {
            let mut tail = lock(&self.tails[pool]);
            view.fifo().push(&mut tail, token.to_bits()).map_err(|error| match error {
                PushError::Full => SubmitError::QueueFull,
                PushError::Corrupt => {
                    self.note(Damage::Queue);
                    SubmitError::Corrupt
                }
            })?
        };
        view.wake_one();
        Ok(ticket)
    }

    /// What lies in the pool's FIFO at this ticket.
    pub(crate) fn cell(&self, pool: usize, ticket: u64) -> Token {
        Token::from_bits(self.region.pool(pool).fifo().at(ticket))
    }

    /// Whether the token with this ticket has been taken out of the pool's FIFO.
    pub(crate) fn is_popped(&self, pool: usize, ticket: u64) -> bool {
        let head = self.region.pool(pool).control.head.load(Ordering::Acquire);
        head.wrapping_sub(ticket).wrapping_sub(1) < u64::MAX / 2
    }
}

/// A thread that panics cannot leave the count in between: it is one number.
fn lock(tail: &Mutex<u64>) -> MutexGuard<'_, u64> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}
