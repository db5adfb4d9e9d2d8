//! The engine's end: what one thread of an engine does with the shared memory.

mod response;

pub use response::FIELD;

use crate::clock::{self, nanoseconds};
use crate::frame::Timing;
use crate::head::Head;
use crate::layout::{MAX_PROCESSES, SlotControl, ThreadControl, ThreadState};
use crate::pipe::{self, BodyBroken};
use crate::region::Region;
use crate::ring::Reader;
use crate::slot::{StateWord, Token};
use crate::sync::Ordering;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// CPU time is measured of one request in so many of a thread: two system calls are not for every one.
const CPU_SAMPLE: u64 = 16;
/// After a request that took so long the I/O thread is told at once that the thread is free: somebody may wait for that,
/// and not for the response.
const LONG: Duration = Duration::from_millis(10);

/// An engine's memory and the eventfds of the server's I/O threads.
pub struct Engine {
    region: Region,
    doorbells: Vec<OwnedFd>,
    /// This process, of those that share the memory.
    process: usize,
}

/// How many threads a pool has, as they show themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Siblings {
    pub present: u32,
    /// Of these, those that boot.
    pub booting: u32,
}

/// One thread of an engine, bound to a pool.
pub struct EngineThread {
    engine: Arc<Engine>,
    index: usize,
    pool: usize,
    running: Option<Token>,
    is_handed_over: bool,
    /// The end of the response was written.
    ended: bool,
    read: Cell<u64>,
    written: Cell<u64>,
    /// As `written` at the last publication.
    published: Cell<u64>,
    scratch: Vec<u8>,
    started: Duration,
    /// CPU time of the thread when its request started, for the requests that it is measured of.
    cpu_before: Option<Duration>,
}

impl Engine {
    /// In the process of this number ([`crate::control::Start::process`]). `doorbells`: one eventfd for each of the server's
    /// I/O threads, in order.
    pub fn new(process: usize, region: Region, doorbells: Vec<OwnedFd>) -> Self {
        assert!(process < MAX_PROCESSES, "no process {process}");
        assert_eq!(
            doorbells.len(),
            region.geometry().io_threads as usize,
            "one doorbell for each I/O thread"
        );
        Self { region, doorbells, process }
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The calling thread answers the server's beats from now on.
    pub fn answers(&self) {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        self.region.process(self.process).beat_tid.store(tid, Ordering::Release);
    }

    /// A fault is about to end the process in the calling thread. It may be called by a handler of signals.
    pub fn note_fault(&self) {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        self.region.process(self.process).fault_tid.store(tid, Ordering::Release);
    }

    /// Answers a beat ([`crate::control::Order::Beat`]).
    pub fn answer(&self, number: u64) {
        self.region.process(self.process).beat.store(number, Ordering::Release);
    }

    /// The slot can be had back; its response has been announced already.
    fn note(&self, slot: usize) {
        let slots = self.region.geometry().slots_per_io as usize;
        self.region.doorbell(slot / slots).note(slot % slots);
    }

    fn mark(&self, slot: usize) {
        let slots = self.region.geometry().slots_per_io as usize;
        let io = slot / slots;
        if self.region.doorbell(io).mark(slot % slots) == crate::doorbell::Ring::Needed {
            // A full eventfd counter has rung already.
            let _ = rustix::io::write(&self.doorbells[io], &1u64.to_ne_bytes());
        }
    }
}

impl EngineThread {
    /// `index` names the thread within the engine; no two threads (of any process) use the same at the same time.
    pub fn new(engine: Arc<Engine>, index: usize, pool: usize) -> Self {
        let thread = Self::unnamed(engine, index, pool);
        thread.introduce();
        thread.forget_figures();
        thread
    }

    /// The same in the place of a thread that has ended, whose figures it carries on, with one more start of its script.
    pub fn renewed(engine: Arc<Engine>, index: usize, pool: usize) -> Self {
        let thread = Self::unnamed(engine, index, pool);
        thread.introduce();
        thread.count_restart();
        thread
    }

    fn unnamed(engine: Arc<Engine>, index: usize, pool: usize) -> Self {
        Self {
            engine,
            index,
            pool,
            running: None,
            is_handed_over: false,
            ended: false,
            read: Cell::new(0),
            written: Cell::new(0),
            published: Cell::new(0),
            scratch: Vec::new(),
            started: clock::now(),
            cpu_before: None,
        }
    }

    /// The thread's number within the engine.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The pool whose requests it takes.
    pub fn pool(&self) -> usize {
        self.pool
    }

    /// Shows what the thread is doing from now on.
    pub fn set_state(&self, state: ThreadState) {
        self.change_state(state, clock::now());
    }

    /// Shows how much memory the last request took, in bytes.
    pub fn set_memory(&self, bytes: u64) {
        self.control().memory.store(bytes, Ordering::Relaxed);
    }

    /// The threads of its pool, itself among them, of whatever process.
    pub fn siblings(&self) -> Siblings {
        let region = &self.engine.region;
        let threads = (0..region.geometry().threads as usize).map(|index| region.thread(index));
        let mut siblings = Siblings { present: 0, booting: 0 };
        for thread in threads.filter(|thread| thread.pool.load(Ordering::Relaxed) as usize == self.pool) {
            let state = ThreadState::from_bits(thread.state.load(Ordering::Relaxed));
            siblings.present += u32::from(state != ThreadState::Absent);
            siblings.booting += u32::from(matches!(state, ThreadState::Booting | ThreadState::Backoff));
        }
        siblings
    }

    /// Ends it as one that boots already: the thread that takes its place is about to be [renewed](Self::renewed).
    pub fn hand_over(mut self) {
        self.release();
        self.control().tid.store(0, Ordering::Relaxed);
        self.set_state(ThreadState::Booting);
        self.is_handed_over = true;
    }

    /// Counts a start of the thread's script after the first.
    pub fn count_restart(&self) {
        self.control().restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the thread was told to end.
    pub fn must_stop(&self) -> bool {
        self.engine.region.is_draining() || self.is_retired()
    }

    /// Requests that wait in the thread's pool, withdrawn ones among them.
    pub fn waiting(&self) -> u64 {
        self.engine.region.waiting(self.pool)
    }

    /// Waits for the next request and claims it. `None`: the thread must end.
    ///
    /// The head stays valid and unchanged until [`EngineThread::release`].
    pub fn next_request(&mut self) -> Option<Head<'_>> {
        debug_assert!(self.running.is_none(), "the last request has not been released");
        // When it was released is known; after a boot it is not.
        if self.control().state.load(Ordering::Relaxed) != ThreadState::Idle as u32 {
            self.set_state(ThreadState::Idle);
        }
        self.control().asks.store(1, Ordering::Relaxed);
        let token = self.claim();
        self.control().asks.store(0, Ordering::Relaxed);
        let token = token?;
        self.running = Some(token);
        self.ended = false;
        self.read.set(0);
        self.written.set(0);
        self.published.set(0);
        let thread = self.control();
        thread.token.store(token.to_bits(), Ordering::Relaxed);
        let earlier = thread.requests.fetch_add(1, Ordering::Relaxed);
        self.cpu_before = earlier.is_multiple_of(CPU_SAMPLE).then(clock::cpu_time_of_this_thread);
        self.started = clock::now();
        self.change_state(ThreadState::Busy, self.started);
        // The server built it; if it does not parse, an empty head leads to a plain error answer.
        let index = token.slot as usize;
        let length = self.engine.region.slot(index).head_len.load(Ordering::Relaxed);
        Some(Head::parse(self.engine.region.head(index, length)).unwrap_or(EMPTY_HEAD))
    }

    /// How long the request that was claimed may run from its [start](Self::started) on.
    pub fn time_limit(&self) -> Option<Duration> {
        let limit = self.slot().1.time_limit.load(Ordering::Relaxed);
        (limit != 0).then(|| Duration::from_nanos(limit))
    }

    /// Fills the buffer from the request body unless the body ends: bytes read, 0 at the end. Sleeps while the
    /// client is slow.
    pub fn read_body(&self, buffer: &mut [u8]) -> Result<usize, BodyBroken> {
        let (index, slot) = self.slot();
        let reader = Reader {
            tail: &slot.request_tail,
            head: &slot.request_head,
            area: self.engine.region.request_area(index),
            read: &self.read,
        };
        pipe::receive(slot, &reader, buffer, || self.engine.mark(index))
    }

    /// Whether the server gave the request up.
    pub fn client_gone(&self) -> bool {
        pipe::is_given_up(self.slot().1)
    }

    /// Not 0 when the server has [given the request up](Self::client_gone). It is in the shared memory, which other threads may
    /// look at as long as this one has the request.
    pub fn given_up(&self) -> *const crate::sync::AtomicU32 {
        &raw const self.slot().1.cancelled
    }

    /// When the last request started, by [`clock::now`].
    pub fn started(&self) -> Duration {
        self.started
    }

    /// The last access to the request: its slot may be used for another. How long the thread was busy with it.
    pub fn release(&mut self) -> Duration {
        let Some(token) = self.running.take() else { return Duration::ZERO };
        let now = clock::now();
        let busy = now.saturating_sub(self.started);
        self.control().busy.fetch_add(nanoseconds(busy), Ordering::Relaxed);
        self.change_state(ThreadState::Idle, now);
        let index = token.slot as usize;
        let slot = self.engine.region.slot(index);
        slot.response_tail.store(self.written.get(), Ordering::Release);
        StateWord(&slot.state).release(token.generation, self.index);
        if self.ended && self.published == self.written && busy < LONG {
            self.engine.note(index);
        } else {
            self.engine.mark(index);
        }
        busy
    }

    fn claim(&self) -> Option<Token> {
        let pool = self.engine.region.pool(self.pool);
        loop {
            if self.is_retired() {
                return None;
            }
            let token = Token::from_bits(pool.take(self.index, || self.must_stop())?);
            let slot = self.engine.region.slot(token.slot as usize);
            if StateWord(&slot.state).claim(token.generation, self.index) {
                return Some(token);
            }
            pool.control.void_tokens.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_retired(&self) -> bool {
        self.control().retire.load(Ordering::SeqCst) != 0
    }

    /// The number may have been another thread's before.
    fn introduce(&self) {
        let control = self.control();
        control.pool.store(self.pool as u32, Ordering::Relaxed);
        control.tid.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Ordering::Relaxed);
        control.asks.store(0, Ordering::Relaxed);
        self.set_state(ThreadState::Booting);
    }

    fn forget_figures(&self) {
        let control = self.control();
        for figure in [&control.requests, &control.busy, &control.restarts, &control.memory] {
            figure.store(0, Ordering::Relaxed);
        }
    }

    fn change_state(&self, state: ThreadState, now: Duration) {
        let control = self.control();
        control.since.store(nanoseconds(now), Ordering::Relaxed);
        control.state.store(state as u32, Ordering::Relaxed);
    }

    fn timing(&self) -> Timing {
        let submitted = Duration::from_nanos(self.slot().1.submitted.load(Ordering::Relaxed));
        Timing {
            waited: self.started.saturating_sub(submitted),
            execution: clock::now().saturating_sub(self.started),
            cpu: self.cpu_before.map(|before| clock::cpu_time_of_this_thread().saturating_sub(before)),
            thread: u32::try_from(self.index).ok(),
        }
    }

    pub(crate) fn control(&self) -> &ThreadControl {
        self.engine.region.thread(self.index)
    }

    fn slot(&self) -> (usize, &SlotControl) {
        let index = self.running.expect("invariant: called between next_request and release").slot as usize;
        (index, self.engine.region.slot(index))
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        if self.is_handed_over {
            return;
        }
        self.release();
        self.control().tid.store(0, Ordering::Relaxed);
        self.set_state(ThreadState::Absent);
    }
}

const EMPTY_HEAD: Head<'static> = Head::empty();
