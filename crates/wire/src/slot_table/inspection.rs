//! A table looks at its requests in the shared memory: what cannot be is damage, and news that was not announced is news
//! all the same.

use super::{Phase, Record, SlotTable};
use crate::damage::Damage;
use crate::engine_memory::EngineMemory;
use crate::slot::{StateWord, Token};
use crate::sync::Ordering;
use std::sync::Arc;

/// Requests of one inspection; the next one goes on behind them.
const AT_ONCE: usize = 4096;
/// So many inspections in a row must find that a request is out of its queue and not begun. A thread does both within
/// nanoseconds, unless it loses the CPU in between.
const STRANDED: u8 = 8;

impl<G> SlotTable<G> {
    /// Looks at requests of these engines. Damage is noted ([`EngineMemory::damage`]). Calls `news` with the tokens of requests
    /// that have something to be read; mostly that has been announced already.
    ///
    /// To be called a few times a second, with all engines at once: the next call goes on with other requests. It takes
    /// less than a microsecond for each request.
    pub fn inspect(&mut self, backends: &[Arc<EngineMemory>], mut news: impl FnMut(Token)) {
        let slots = self.records.len();
        let count = slots.min(AT_ONCE);
        for slot in (self.inspected..self.inspected + count).map(|slot| slot % slots) {
            let record = &self.records[slot];
            if !matches!(record.phase, Phase::Held | Phase::Orphan) {
                continue;
            }
            let has_it =
                |known: &&Arc<EngineMemory>| record.backend.as_ref().is_some_and(|of| Arc::ptr_eq(of, known));
            let Some(backend) = backends.iter().find(has_it) else { continue };
            let index = self.index(slot as u32);
            match examine(backend, index, record) {
                Err(damage) => backend.note(damage),
                Ok(Found::Unread) if record.phase == Phase::Held => {
                    news(Token { slot: slot as u32, generation: record.generation });
                }
                Ok(found) => {
                    let record = &mut self.records[slot];
                    record.stranded =
                        if found == Found::Popped { record.stranded.saturating_add(1) } else { 0 };
                    if record.stranded >= STRANDED {
                        backend.note(Damage::Stranded);
                    }
                }
            }
        }
        self.inspected = (self.inspected + count) % slots;
    }
}

/// What a request in good order looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Out of its queue, and not begun.
    Popped,
    /// It has a response, or has ended.
    Unread,
    Nothing,
}

fn examine<G>(backend: &EngineMemory, index: usize, record: &Record<G>) -> Result<Found, Damage> {
    let region = backend.region();
    let (slot, geometry) = (region.slot(index), region.geometry());
    let state = StateWord(&slot.state);
    if !state.is_possible(record.generation, geometry.threads as usize) {
        return Err(Damage::State);
    }
    let (written, read) = (record.written.get(), record.read.get());
    let ours = [(&slot.request_tail, written), (&slot.response_head, read)];
    let taken = slot.request_head.load(Ordering::Acquire);
    let unread = slot.response_tail.load(Ordering::Acquire).wrapping_sub(read);
    if ours.iter().any(|(word, own)| word.load(Ordering::Relaxed) != *own)
        || written.wrapping_sub(taken) > u64::from(geometry.request_capacity)
        || unread > u64::from(geometry.response_capacity)
    {
        return Err(Damage::Ring);
    }
    if unread > 0 || state.is_done(record.generation) {
        return Ok(Found::Unread);
    }
    examine_queued(backend, index, record)
}

fn examine_queued<G>(backend: &EngineMemory, index: usize, record: &Record<G>) -> Result<Found, Damage> {
    let (pool, generation) = (record.pool as usize, record.generation);
    let cell = backend.cell(pool, record.ticket);
    // As long as it has not been taken the cell is its own; so this is asked after the look at the cell.
    let is_popped = backend.is_popped(pool, record.ticket);
    let is_queued = StateWord(&backend.region().slot(index).state).is_queued(generation);
    match (is_queued, is_popped) {
        (true, true) => Ok(Found::Popped),
        (true, false) if cell != (Token { slot: index as u32, generation }) => Err(Damage::Token),
        _ => Ok(Found::Nothing),
    }
}
