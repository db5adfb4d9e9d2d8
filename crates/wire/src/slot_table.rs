//! The server's end: a table of slots for each I/O thread, used by that thread alone.
//!
//! A slot's number stays the same while its request moves from the memory of a dead engine to that of the next, so a
//! request that nobody has started does not notice ([`SlotTable::move_requests`]).

mod giving_back;
mod inspection;
mod limits;
mod outcome;
mod record;
mod repeat;
mod rescue;

pub use outcome::{Cancelled, ReadError, SubmitError};
pub use repeat::Repeats;
pub use rescue::Rescued;

use record::{Phase, Record};

use crate::assembly::Piece;
use crate::clock::nanoseconds;
use crate::damage::Damage;
use crate::engine_memory::EngineMemory;
use crate::frame::Frame;
use crate::head::{Head, RequestLine};
use crate::layout::{BodyState, SlotControl, ThreadState};
use crate::pipe;
use crate::ring::{Corrupt, Reader, Writer};
use crate::slot::{StateWord, Token};
use crate::sync::Ordering;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// One I/O thread's slots. `G`: what is kept with a request until no engine has to do with it any more, which may be long
/// after its client has left.
pub struct SlotTable<G = ()> {
    io: usize,
    records: Vec<Record<G>>,
    /// Used last, given out first: its pages are warm.
    free: Vec<u32>,
    orphans: usize,
    /// Empty between the calls that use them.
    fresh: Vec<(u64, Token)>,
    scratch: Vec<u32>,
    /// Where the next inspection begins.
    inspected: usize,
}

impl<G> SlotTable<G> {
    /// `slots` as in the geometry of every memory that this table is used with.
    pub fn new(io: usize, slots: usize) -> Self {
        Self {
            io,
            records: (0..slots).map(|_| Record::new()).collect(),
            free: (0..slots as u32).rev().collect(),
            orphans: 0,
            fresh: Vec::new(),
            scratch: Vec::new(),
            inspected: 0,
        }
    }

    /// Slots in use.
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Takes a slot for a request to this engine and writes its head. `None` when all slots are in use.
    pub fn acquire(
        &mut self,
        backend: &Arc<EngineMemory>,
        head: &[u8],
    ) -> Result<Option<Token>, SubmitError> {
        self.look_for_a_free_slot();
        let Some(slot) = self.free.pop() else { return Ok(None) };
        let index = self.index(slot);
        let record = &mut self.records[slot as usize];
        record.generation = record.generation.wrapping_add(1);
        if !backend.region().write_head(index, head) {
            self.free.push(slot);
            return Err(SubmitError::HeadTooLarge);
        }
        record.phase = Phase::Filling;
        record.backend = Some(Arc::clone(backend));
        record.head_len = head.len() as u32;
        record.body.set(BodyState::Open);
        record.written.set(0);
        record.read.set(0);
        record.time_limit = 0;
        record.repeat_until.set(0);
        record.is_repeated = false;
        record.assembly.take();
        reset(backend.region().slot(index));
        Ok(Some(Token { slot, generation: record.generation }))
    }

    /// Keeps a value with the request.
    pub fn guard(&mut self, token: Token, guard: G) {
        self.record_mut(token).guard = Some(guard);
    }

    /// Calls `visit` with the guard of each request that a thread of the engine is running, and since when it does, by
    /// [`crate::clock::now`].
    pub fn running(&self, backend: &EngineMemory, mut visit: impl FnMut(&G, Duration)) {
        let region = backend.region();
        for thread in 0..region.geometry().threads as usize {
            let view = region.thread_view(thread);
            if view.state == ThreadState::Busy
                && let Some(guard) = self.guard_of(view.token)
            {
                visit(guard, view.since);
            }
        }
    }

    /// Puts the request behind all that wait in the pool, and wakes a thread if one sleeps. It has been waiting since
    /// `arrival` ([`crate::clock::now`]). After an error the token is void.
    pub fn submit(&mut self, token: Token, pool: usize, arrival: Duration) -> Result<(), SubmitError> {
        self.record_mut(token).submitted = nanoseconds(arrival);
        let submitted = match self.record(token).phase {
            Phase::Filling => self.enqueue(token, pool),
            // `move_requests` could not take it along.
            _ => Err(SubmitError::Corrupt),
        };
        if submitted.is_err() {
            self.put_back(token.slot);
        }
        submitted
    }

    /// Appends to the request body as much as there is room for, and returns how much that was. When it was not all,
    /// the slot is marked dirty once the engine has made room.
    pub fn write_body(&self, token: Token, bytes: &[u8]) -> Result<usize, ReadError> {
        let record = self.live(token)?;
        let (slot, ring) = self.request_writer(token, record);
        pipe::send(slot, &ring, bytes).map_err(|Corrupt| record.damaged(Damage::Ring))
    }

    /// Says how the request body ended.
    pub fn end_body(&self, token: Token, state: BodyState) -> Result<(), ReadError> {
        self.live(token)?;
        self.set_body(token, state);
        Ok(())
    }

    /// Whether the request still waits for a thread.
    pub fn is_queued(&self, token: Token) -> bool {
        self.live(token).is_ok_and(|record| {
            StateWord(&record.backend().region().slot(self.index(token.slot)).state)
                .is_queued(token.generation)
        })
    }

    /// The thread that runs the request, and since when, by [`crate::clock::now`]. `None`: none does, or its engine contradicts itself.
    pub fn running_on(&self, token: Token) -> Option<(usize, Duration)> {
        let region = self.live(token).ok()?.backend().region();
        let index = self.index(token.slot);
        let thread = StateWord(&region.slot(index).state).runner(token.generation)?;
        if thread >= region.geometry().threads as usize {
            return None;
        }
        let view = region.thread_view(thread);
        let is_its = view.state == ThreadState::Busy
            && view.token == Token { slot: index as u32, generation: token.generation };
        is_its.then_some((thread, view.since))
    }

    /// The next part of the response, if one is there.
    pub fn read(&self, token: Token) -> Result<Option<Frame>, ReadError> {
        let record = match self.record(token) {
            lost if lost.phase == Phase::Lost => lost,
            _ => self.live(token)?,
        };
        let mut unparsed = record.unparsed.take();
        loop {
            if unparsed.is_empty() {
                match self.fetch(token, record)? {
                    Some(bytes) => unparsed = bytes,
                    None => return Ok(None),
                }
            }
            let piece = Piece::take(&mut unparsed).ok_or_else(|| record.damaged(Damage::Frame))?;
            let Some(frame) = record.assemble(piece)? else { continue };
            if !matches!(frame, Frame::Log(_)) {
                record.repeat_until.set(0);
            }
            record.unparsed.set(unparsed);
            return Ok(Some(frame));
        }
    }

    /// Calls `news` with the token of every request that has some. Of those that have it at the same time the one that
    /// came first comes first: engines mark slots, whose order says nothing.
    pub fn drain(&mut self, backend: &EngineMemory, mut news: impl FnMut(Token)) {
        let doorbell = backend.region().doorbell(self.io);
        // Most of the time there is nothing, and a look is cheaper than an exchange.
        if doorbell.control.summary.iter().all(|word| word.load(Ordering::Relaxed) == 0) {
            return;
        }
        let (mut fresh, mut orphans) = (std::mem::take(&mut self.fresh), std::mem::take(&mut self.scratch));
        doorbell.drain(|slot| {
            let Some(record) = self.records.get(slot) else { return };
            match record.phase {
                Phase::Held => {
                    fresh.push((record.submitted, Token { slot: slot as u32, generation: record.generation }))
                }
                Phase::Orphan => orphans.push(slot as u32),
                Phase::Free | Phase::Filling | Phase::Lost => {}
            }
        });
        fresh.sort_unstable_by_key(|(submitted, _)| *submitted);
        fresh.drain(..).for_each(|(_, token)| news(token));
        for slot in orphans.drain(..) {
            self.reclaim_orphan(slot);
        }
        (self.fresh, self.scratch) = (fresh, orphans);
    }

    /// From now on the engine rings this I/O thread's eventfd. [`SlotTable::drain`] once more before sleeping.
    pub fn park(&self, backend: &EngineMemory) {
        backend.region().doorbell(self.io).park();
    }

    /// Awake: marks need no eventfd.
    pub fn unpark(&self, backend: &EngineMemory) {
        backend.region().doorbell(self.io).unpark();
    }

    /// Marks the request as waiting and pushes it; takes the mark away if it cannot be pushed.
    fn enqueue(&mut self, token: Token, pool: usize) -> Result<(), SubmitError> {
        let backend = Arc::clone(self.record(token).backend());
        let slot = backend.region().slot(self.index(token.slot));
        slot.pool.store(pool as u32, Ordering::Relaxed);
        slot.submitted.store(self.record(token).submitted, Ordering::Relaxed);
        slot.time_limit.store(self.record(token).time_limit, Ordering::Relaxed);
        StateWord(&slot.state).submit(token.generation);
        let pushed = self.push(&backend, token, pool);
        if pushed.is_err() {
            StateWord(&slot.state).reclaim(token.generation);
        }
        pushed
    }

    fn push(&mut self, backend: &EngineMemory, token: Token, pool: usize) -> Result<(), SubmitError> {
        let index = self.index(token.slot) as u32;
        let ticket = backend.push(pool, Token { slot: index, generation: token.generation })?;
        let record = self.record_mut(token);
        record.phase = Phase::Held;
        record.pool = pool as u32;
        record.ticket = ticket;
        record.stranded = 0;
        Ok(())
    }

    /// All that has been published of the response and was not fetched yet; frames are published whole.
    fn fetch(&self, token: Token, record: &Record<G>) -> Result<Option<Bytes>, ReadError> {
        let index = self.index(token.slot);
        let slot = record.backend().region().slot(index);
        // Before the ring: what was written before the release is then seen.
        let done = record.phase == Phase::Lost || StateWord(&slot.state).is_done(token.generation);
        let reader = self.response_reader(index, record);
        let available = reader.available().map_err(|Corrupt| record.damaged(Damage::Ring))?;
        if available == 0 {
            return if done { Err(ReadError::Lost) } else { Ok(None) };
        }
        let mut bytes = vec![0; available];
        reader.peek(0, &mut bytes);
        pipe::advance(slot, &reader, available);
        Ok(Some(bytes.into()))
    }

    fn set_body(&self, token: Token, state: BodyState) {
        let record = self.record(token);
        let slot = record.backend().region().slot(self.index(token.slot));
        record.body.set(state);
        pipe::set_body(slot, state);
    }

    /// What a request of this table asks for, of which an engine says that it runs it ([`crate::ThreadView::token`]).
    pub fn request_line(&self, token: Token) -> Option<RequestLine> {
        let record = self.record_of(token)?;
        // The engine can change the original while it is read.
        let copy = record.backend().region().head(token.slot as usize, record.head_len).to_vec();
        RequestLine::of(Head::parse(&copy)?)
    }

    /// The same of a request that may have ended long ago.
    pub fn still_waits(&self, token: Token) -> bool {
        let record = &self.records[token.slot as usize];
        record.generation == token.generation && record.phase == Phase::Held && self.is_queued(token)
    }

    /// What is kept with a request of this table.
    pub fn kept(&self, token: Token) -> Option<&G> {
        self.record(token).guard.as_ref()
    }

    /// The guard of a request that an engine runs, whose slot has not come back.
    pub fn guard_of(&self, token: Token) -> Option<&G> {
        self.record_of(token)?.guard.as_ref()
    }

    /// `token` is what an engine says it runs, whose slots count over all I/O threads.
    fn record_of(&self, token: Token) -> Option<&Record<G>> {
        let slot = (token.slot as usize).checked_sub(self.index(0))?;
        let record = self.records.get(slot)?;
        let is_running = matches!(record.phase, Phase::Held | Phase::Orphan);
        (is_running && record.generation == token.generation).then_some(record)
    }

    fn live(&self, token: Token) -> Result<&Record<G>, ReadError> {
        let record = self.record(token);
        match record.phase {
            Phase::Filling | Phase::Held => Ok(record),
            Phase::Free | Phase::Orphan | Phase::Lost => Err(ReadError::Lost),
        }
    }

    fn record(&self, token: Token) -> &Record<G> {
        let record = &self.records[token.slot as usize];
        record.assert_generation(token);
        record
    }

    fn record_mut(&mut self, token: Token) -> &mut Record<G> {
        let record = &mut self.records[token.slot as usize];
        record.assert_generation(token);
        record
    }

    fn request_writer<'a>(&self, token: Token, record: &'a Record<G>) -> (&'a SlotControl, Writer<'a>) {
        let index = self.index(token.slot);
        let region = record.backend().region();
        let slot = region.slot(index);
        let writer = Writer {
            tail: &slot.request_tail,
            head: &slot.request_head,
            area: region.request_area(index),
            written: &record.written,
        };
        (slot, writer)
    }

    fn response_reader<'a>(&self, index: usize, record: &'a Record<G>) -> Reader<'a> {
        let region = record.backend().region();
        let slot = region.slot(index);
        Reader {
            tail: &slot.response_tail,
            head: &slot.response_head,
            area: region.response_area(index),
            read: &record.read,
        }
    }

    /// The slot's number over all I/O threads.
    fn index(&self, slot: u32) -> usize {
        self.io * self.records.len() + slot as usize
    }
}

/// Makes a slot ready for a request. The state word still says that it is free.
fn reset(slot: &SlotControl) {
    for position in [&slot.request_tail, &slot.request_head, &slot.response_tail, &slot.response_head] {
        position.store(0, Ordering::Relaxed);
    }
    for flag in [&slot.cancelled, &slot.body_state, &slot.engine_waits, &slot.server_waits] {
        flag.store(0, Ordering::Relaxed);
    }
}
