//! How a slot comes back: its request is given up, or its response was read, and the engine has let go of it.

use super::{Cancelled, Phase, SlotTable};
use crate::layout::BodyState;
use crate::pipe;
use crate::slot::{StateWord, Token};
use std::sync::Arc;

impl<G> SlotTable<G> {
    /// Gives the request up: it is withdrawn if no thread has it, and its thread is told otherwise. The token is
    /// void afterwards; the slot is used again when the engine has let go of it.
    pub fn cancel(&mut self, token: Token) -> Cancelled {
        match self.record(token).phase {
            Phase::Held => self.cancel_held(token),
            Phase::Filling => {
                self.put_back(token.slot);
                Cancelled::Withdrawn
            }
            Phase::Lost => {
                self.put_back(token.slot);
                Cancelled::Ended
            }
            Phase::Free | Phase::Orphan => Cancelled::Ended,
        }
    }

    /// Gives back the slot of a response that was read to its end. The script may still be running; the rest of the
    /// request body, if some is missing, breaks off for it.
    pub fn release(&mut self, token: Token) {
        match self.record(token).phase {
            Phase::Held => {
                self.break_body(token);
                self.orphan(token);
            }
            Phase::Filling | Phase::Lost => self.put_back(token.slot),
            Phase::Free | Phase::Orphan => {}
        }
    }

    fn cancel_held(&mut self, token: Token) -> Cancelled {
        let index = self.index(token.slot);
        let backend = Arc::clone(self.record(token).backend());
        let slot = backend.region().slot(index);
        if StateWord(&slot.state).withdraw(token.generation) {
            backend.count_withdrawn(self.record(token).pool as usize);
            self.put_back(token.slot);
            return Cancelled::Withdrawn;
        }
        if StateWord(&slot.state).is_done(token.generation) {
            StateWord(&slot.state).reclaim(token.generation);
            self.put_back(token.slot);
            return Cancelled::Ended;
        }
        pipe::give_up(slot);
        self.orphan(token);
        Cancelled::WhileRunning
    }

    /// A body of which nobody will send the rest.
    fn break_body(&self, token: Token) {
        if self.record(token).body.get() == BodyState::Open {
            self.set_body(token, BodyState::Broken);
        }
    }

    /// Nobody waits for the response any more.
    pub(super) fn orphan(&mut self, token: Token) {
        self.record_mut(token).phase = Phase::Orphan;
        self.orphans += 1;
        // The engine may have let go of it before; then no mark will come.
        self.reclaim_orphan(token.slot);
    }

    /// An engine does not ring for a slot that it has let go of, so there may be some before the next mark.
    pub(super) fn look_for_a_free_slot(&mut self) {
        if self.free.is_empty() && self.orphans > 0 {
            for slot in 0..self.records.len() as u32 {
                if self.records[slot as usize].phase == Phase::Orphan {
                    self.reclaim_orphan(slot);
                }
            }
        }
    }

    /// Frees an orphan's slot once the engine has released it; until then throws away what it writes.
    pub(super) fn reclaim_orphan(&mut self, slot: u32) {
        let index = self.index(slot);
        let record = &self.records[slot as usize];
        let backend = Arc::clone(record.backend());
        let control = backend.region().slot(index);
        if StateWord(&control.state).is_done(record.generation) {
            StateWord(&control.state).reclaim(record.generation);
            self.put_back(slot);
            return;
        }
        let reader = self.response_reader(index, record);
        if let Ok(available) = reader.available()
            && available > 0
        {
            pipe::advance(control, &reader, available);
        }
    }

    pub(super) fn put_back(&mut self, slot: u32) {
        let record = &mut self.records[slot as usize];
        self.orphans -= usize::from(record.phase == Phase::Orphan);
        record.phase = Phase::Free;
        record.backend = None;
        record.unparsed.take();
        record.assembly.take();
        record.guard = None;
        self.free.push(slot);
    }
}
