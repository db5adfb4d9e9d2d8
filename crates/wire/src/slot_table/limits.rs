//! How long requests may run once a thread has claimed them. Engines end those that run for longer; the server does not count
//! on it.

use super::{Phase, SlotTable};
use crate::clock::nanoseconds;
use crate::engine_memory::EngineMemory;
use crate::layout::ThreadState;
use crate::slot::Token;
use std::time::Duration;

impl<G> SlotTable<G> {
    /// Limits the time that a request may run, before it is [submitted](Self::submit).
    pub fn limit(&mut self, token: Token, time: Duration) {
        self.record_mut(token).time_limit = nanoseconds(time).max(1);
    }

    /// Calls `tell` with the token of each request that a thread of the engine has been running for longer than it may, by
    /// [`crate::clock::now`], and whose response somebody waits for.
    pub fn overdue(&self, backend: &EngineMemory, now: Duration, mut tell: impl FnMut(Token)) {
        let region = backend.region();
        for thread in 0..region.geometry().threads as usize {
            let view = region.thread_view(thread);
            let Some(record) = self.record_of(view.token).filter(|_| view.state == ThreadState::Busy) else {
                continue;
            };
            let runs = nanoseconds(now.saturating_sub(view.since));
            if record.time_limit != 0 && runs >= record.time_limit && record.phase == Phase::Held {
                tell(Token { slot: view.token.slot - self.index(0) as u32, ..view.token });
            }
        }
    }

    /// Drops what is kept with a request of this table whose thread does not come back. `token` is what its engine said.
    pub fn write_off(&mut self, token: Token) {
        if self.record_of(token).is_some() {
            let slot = token.slot as usize - self.index(0);
            self.records[slot].guard = None;
        }
    }
}
