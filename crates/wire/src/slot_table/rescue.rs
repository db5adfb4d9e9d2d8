//! What becomes of a table's requests when their engine, or one process of it, dies.

use super::{Phase, SlotTable, SubmitError, reset};
use crate::engine_memory::EngineMemory;
use crate::layout::BodyState;
use crate::slot::{StateWord, Token};
use crate::sync::Ordering;
use std::sync::Arc;

/// A waiting request: pool, ticket, token.
type Waiting = (usize, u64, Token);

impl<G> SlotTable<G> {
    /// After the death of the engine of `from`: what waited goes on waiting in `to`, in the same order; what is still
    /// being filled goes on in `to`; what had been started is lost, and its tokens are returned.
    ///
    /// Of a lost request [`SlotTable::read`] gives what the engine had published before it died, which may be the whole
    /// response, and then [`ReadError::Lost`](super::ReadError). The caller gives its slot back as usual.
    ///
    /// Order is kept among the requests of one I/O thread; those of different ones may change places.
    pub fn move_requests(&mut self, from: &Arc<EngineMemory>, to: &Arc<EngineMemory>) -> Vec<Token> {
        let mut waiting = Vec::new();
        let mut lost = Vec::new();
        for token in self.tokens_of(from) {
            let index = self.index(token.slot);
            let record = self.record(token);
            match record.phase {
                Phase::Free | Phase::Lost => {}
                Phase::Orphan => self.put_back(token.slot),
                Phase::Filling => {
                    if self.transfer(from, to, token).is_err() {
                        lost.push(self.lose(token));
                    }
                }
                Phase::Held if StateWord(&from.region().slot(index).state).is_queued(token.generation) => {
                    waiting.push((record.pool as usize, record.ticket, token));
                }
                Phase::Held => lost.push(self.lose(token)),
            }
        }
        in_order(&mut waiting);
        for (pool, _, token) in waiting {
            let moved = self.transfer(from, to, token).and_then(|()| self.enqueue(token, pool));
            if moved.is_err() {
                lost.push(self.lose(token));
            }
        }
        lost
    }

    /// After the end of the engine of `from`, which no other follows: all of its requests that nobody has given up are lost,
    /// as in [`SlotTable::move_requests`], and their tokens are returned.
    pub fn lose_requests(&mut self, from: &Arc<EngineMemory>) -> Vec<Token> {
        let mut lost = Vec::new();
        for token in self.tokens_of(from) {
            match self.record(token).phase {
                Phase::Free | Phase::Lost => {}
                Phase::Orphan => self.put_back(token.slot),
                Phase::Filling | Phase::Held => lost.push(self.lose(token)),
            }
        }
        lost
    }

    /// After the death of one process of an engine that has several, for each thread that it had, once
    /// [`Region::bury`](crate::Region::bury) has been called: what that thread ran is lost, as in
    /// [`SlotTable::move_requests`]. A request that it had taken out of the FIFO and not yet claimed is queued again, behind
    /// those that wait now.
    pub fn bury(&mut self, backend: &Arc<EngineMemory>, thread: usize) -> Vec<Token> {
        let mut stranded = Vec::new();
        let mut lost = Vec::new();
        for token in self.tokens_of(backend) {
            let index = self.index(token.slot);
            let state = StateWord(&backend.region().slot(index).state);
            let record = self.record(token);
            let pool = record.pool as usize;
            match record.phase {
                Phase::Orphan if state.is_run_by(token.generation, thread) => self.put_back(token.slot),
                Phase::Held if state.is_run_by(token.generation, thread) => lost.push(self.lose(token)),
                // A living thread may be about to claim it; then the second token will be void.
                Phase::Held
                    if state.is_queued(token.generation) && backend.is_popped(pool, record.ticket) =>
                {
                    stranded.push((pool, record.ticket, token));
                }
                Phase::Free | Phase::Filling | Phase::Held | Phase::Orphan | Phase::Lost => {}
            }
        }
        in_order(&mut stranded);
        for (pool, _, token) in stranded {
            let state = &backend.region().slot(self.index(token.slot)).state;
            if self.push(backend, token, pool).is_err() && StateWord(state).withdraw(token.generation) {
                lost.push(self.lose(token));
            }
        }
        lost
    }

    /// What the slots that belong to this memory are used for.
    fn tokens_of(&self, backend: &Arc<EngineMemory>) -> Vec<Token> {
        let ours = |of: &Arc<EngineMemory>| Arc::ptr_eq(of, backend);
        let slots = self.records.iter().enumerate();
        slots
            .filter(|(_, record)| record.backend.as_ref().is_some_and(ours))
            .map(|(slot, record)| Token { slot: slot as u32, generation: record.generation })
            .collect()
    }

    fn lose(&mut self, token: Token) -> Token {
        self.record_mut(token).phase = Phase::Lost;
        token
    }

    /// Copies a request that no thread has started. Its positions stay the same, since nothing has been read.
    fn transfer(
        &mut self,
        from: &EngineMemory,
        to: &Arc<EngineMemory>,
        token: Token,
    ) -> Result<(), SubmitError> {
        let index = self.index(token.slot);
        let record = self.record_mut(token);
        let written = record.written.get() as usize;
        let (old, new) = (from.region().request_area(index), to.region().request_area(index));
        // An engine can pretend to have read what it has not.
        if written > old.capacity().min(new.capacity()) {
            return Err(SubmitError::Corrupt);
        }
        if !to.region().write_head(index, from.region().head(index, record.head_len)) {
            return Err(SubmitError::HeadTooLarge);
        }
        let mut body = vec![0; written];
        old.copy_out(0, &mut body);
        new.copy_in(0, &body);
        let slot = to.region().slot(index);
        reset(slot);
        slot.request_tail.store(written as u64, Ordering::Relaxed);
        slot.body_state.store(record.body.get() as u32, Ordering::Relaxed);
        // Whoever was told to wait for room still does.
        slot.server_waits.store(u32::from(record.body.get() == BodyState::Open), Ordering::Relaxed);
        record.backend = Some(Arc::clone(to));
        Ok(())
    }
}

fn in_order(waiting: &mut [Waiting]) {
    waiting.sort_unstable_by_key(|(pool, ticket, _)| (*pool, *ticket));
}
