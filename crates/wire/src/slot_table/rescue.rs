//! What becomes of a table's requests when their engine, or one process of it, dies.

use super::{Phase, Repeats, SlotTable, SubmitError, reset};
use crate::engine_memory::EngineMemory;
use crate::layout::BodyState;
use crate::slot::{StateWord, Token};
use crate::sync::Ordering;
use std::sync::Arc;

/// A waiting request: pool, ticket, token.
type Waiting = (usize, u64, Token);

/// The requests that had started when their engine died.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// They get no more of a response than what had been published.
    pub lost: Vec<Token>,
    /// They wait for a thread again.
    pub repeated: Vec<Token>,
}

impl<G> SlotTable<G> {
    /// After the death of the engine of `from`: what waited goes on waiting in `to`, in the same order; what is still
    /// being filled goes on in `to`; what had been started is lost, unless [it may be run again](SlotTable::may_repeat) and
    /// `repeats` does not say otherwise: then it waits in `to`, where its arrival puts it.
    ///
    /// Of a lost request [`SlotTable::read`] gives what the engine had published before it died, which may be the whole
    /// response, and then [`ReadError::Lost`](super::ReadError). The caller gives its slot back as usual.
    ///
    /// Order is kept among the requests of one I/O thread; those of different ones may change places.
    pub fn move_requests(
        &mut self,
        from: &Arc<EngineMemory>,
        to: &Arc<EngineMemory>,
        repeats: Repeats,
    ) -> Rescued {
        let mut waiting = Vec::new();
        let Rescued { mut lost, mut repeated } = Rescued::default();
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
                Phase::Held => match self.second_run(token, repeats) {
                    Some(second) => {
                        waiting.push((record.pool as usize, record.ticket, token));
                        self.begin_again(token, second);
                        repeated.push(token);
                    }
                    None => lost.push(self.lose(token)),
                },
            }
        }
        in_order(&mut waiting);
        for (pool, _, token) in waiting {
            let moved = self.transfer(from, to, token).and_then(|()| self.enqueue(token, pool));
            if moved.is_err() {
                repeated.retain(|known| *known != token);
                lost.push(self.lose(token));
            }
        }
        Rescued { lost, repeated }
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
    /// [`Region::bury`](crate::Region::bury) has been called: what that thread ran is lost or run again, as in
    /// [`SlotTable::move_requests`]. What is run again, and a request that the thread had taken out of the FIFO and not yet
    /// claimed, is queued behind those that wait now.
    pub fn bury(&mut self, backend: &Arc<EngineMemory>, thread: usize, repeats: Repeats) -> Rescued {
        let mut stranded = Vec::new();
        let Rescued { mut lost, mut repeated } = Rescued::default();
        for token in self.tokens_of(backend) {
            let index = self.index(token.slot);
            let state = StateWord(&backend.region().slot(index).state);
            let record = self.record(token);
            let pool = record.pool as usize;
            match record.phase {
                Phase::Orphan if state.is_run_by(token.generation, thread) => self.put_back(token.slot),
                Phase::Held if state.is_run_by(token.generation, thread) => {
                    match self.second_run(token, repeats) {
                        Some(second) => {
                            self.begin_again(token, second);
                            repeated.push(token);
                        }
                        None => lost.push(self.lose(token)),
                    }
                }
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
        repeated.retain(|token| {
            let is_queued = self.queue_again(backend, *token).is_ok();
            if !is_queued {
                lost.push(self.lose(*token));
            }
            is_queued
        });
        Rescued { lost, repeated }
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

    /// In the memory in which it has run, of whose threads none has it any more.
    fn queue_again(&mut self, backend: &Arc<EngineMemory>, token: Token) -> Result<(), SubmitError> {
        self.make_anew(backend, token);
        self.enqueue(token, self.record(token).pool as usize)
    }

    fn lose(&mut self, token: Token) -> Token {
        self.record_mut(token).phase = Phase::Lost;
        token
    }

    /// Copies a request that no thread runs. All that was written of its body is still there: nothing has been read, or it
    /// would not be [run again](SlotTable::may_repeat).
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
        record.backend = Some(Arc::clone(to));
        self.make_anew(to, token);
        Ok(())
    }

    /// Makes the slot as it was before any thread had the request, whose head and body lie in this memory.
    fn make_anew(&self, backend: &EngineMemory, token: Token) {
        let record = self.record(token);
        let slot = backend.region().slot(self.index(token.slot));
        reset(slot);
        slot.request_tail.store(record.written.get(), Ordering::Relaxed);
        slot.body_state.store(record.body.get() as u32, Ordering::Relaxed);
        // Whoever was told to wait for room still does.
        slot.server_waits.store(u32::from(record.body.get() == BodyState::Open), Ordering::Relaxed);
        record.read.set(0);
        record.unparsed.take();
        record.assembly.take();
    }
}

fn in_order(waiting: &mut [Waiting]) {
    waiting.sort_unstable_by_key(|(pool, ticket, _)| (*pool, *ticket));
}
