//! A pool: a FIFO, the set of its idle threads, and the rules by which they wake.
//!
//! **Wake chaining.** At most `wake_limit` wakes are in flight. Who pushes a request while one is in flight wakes
//! nobody: the thread that is on its way takes a request and, if it sees another, wakes the next thread. Under load
//! that makes one wake serve many requests.
//!
//! **Threads that are kept asleep.** More threads than CPUs are of no use to requests that only compute: they interrupt
//! each other in the middle, and each takes longer. So the server may keep a number of a pool's threads asleep
//! (`kept_asleep`): nobody wakes one of these, and who finds too few of them asleep before its next request lies down
//! itself, though requests may wait. As long as that number is below that of the pool's threads, one is awake that comes
//! back to the queue: of several that lie down at once, the last sees that they are too many, and goes on.
//!
//! **Why no wake-up is lost.** A thread announces itself idle, fences, and only then looks at the queue for the last
//! time; a producer pushes, fences, and only then looks for idle threads (Dekker's pattern): one of them sees the
//! other. The same holds between the thread on its way, which gives its wake back *before* it looks at the queue, and
//! the producer, which looks at the wakes in flight *after* it pushed. The last look at the queue is always a pop,
//! never a question whether it is empty.

use crate::fifo::Fifo;
use crate::layout::{PoolControl, Scheduling, ThreadControl};
use crate::sync::{AtomicU64, Ordering, fence, futex_wait, futex_wake, spin_loop};

/// The thread's parker: nobody has woken it yet.
const EMPTY: u32 = 0;
/// The thread's parker: it has been woken.
const NOTIFIED: u32 = 1;

/// Tries of [`Pool::wake_one`]. Each failed one means that another thread's state has changed meanwhile; an engine
/// that keeps changing its bits to keep the server busy stops here.
const WAKE_TRIES: usize = 64;

/// A view of a pool that lives in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Pool<'a> {
    pub control: &'a PoolControl,
    pub cells: &'a [AtomicU64],
    /// All threads of the engine; the idle set holds those of this pool.
    pub threads: &'a [ThreadControl],
}

impl<'a> Pool<'a> {
    pub fn fifo(&self) -> Fifo<'a> {
        Fifo { head: &self.control.head, tail: &self.control.tail, cells: self.cells }
    }

    /// Takes the oldest token, or sleeps until there is one. `None` once `must_stop` says so and nothing waits.
    pub fn take(&self, me: usize, must_stop: impl Fn() -> bool) -> Option<u64> {
        loop {
            // Before the look at the queue: what was pushed before a drain is taken.
            let stop = must_stop();
            if !stop && self.make_way(me, &must_stop) {
                continue;
            }
            if let Some(token) = self.fifo().pop() {
                self.chain();
                return Some(token);
            }
            if stop {
                return None;
            }
            if self.spin() {
                continue;
            }
            if let Some(token) = self.park(me, &must_stop) {
                self.chain();
                return Some(token);
            }
        }
    }

    /// Wakes an idle thread, unless enough wakes are on their way or none is idle. Call it after a push.
    pub fn wake_one(&self) {
        fence(Ordering::SeqCst);
        for _ in 0..WAKE_TRIES {
            if !self.may_wake() || !self.reserve_wake() {
                return;
            }
            if let Some(thread) = self.claim_idle() {
                self.notify(thread);
                return;
            }
            self.return_wake();
            if self.fifo().len() == 0 {
                return;
            }
        }
    }

    /// Server: keeps so many threads asleep from now on, which should be fewer than the pool has.
    pub fn keep_asleep(&self, threads: u32) {
        if self.control.kept_asleep.swap(threads, Ordering::SeqCst) > threads {
            self.chain();
        }
    }

    /// Wakes a thread, of whatever pool, so that it looks at what it was told (drain, retire).
    pub fn wake(&self, thread: usize) {
        // Between what it was told and the parker: see `park`.
        fence(Ordering::SeqCst);
        self.notify(thread);
    }

    /// Server: the process of a thread has died at whatever instruction, and the thread counts no more.
    pub fn bury(&self, thread: usize) {
        self.idle_word(thread).fetch_and(!idle_bit(thread), Ordering::SeqCst);
        // It may have had a wake in flight. Forgetting those of others too costs a futex call at most; keeping one
        // that never comes back would end all wakes.
        self.control.waking.store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.chain();
    }

    /// Threads that sleep or are about to.
    pub fn idle(&self) -> usize {
        self.count_idle(Ordering::Relaxed)
    }

    fn count_idle(&self, ordering: Ordering) -> usize {
        self.idle_words().iter().map(|word| word.load(ordering).count_ones() as usize).sum()
    }

    fn kept_asleep(&self) -> usize {
        self.control.kept_asleep.load(Ordering::Relaxed) as usize
    }

    /// Sleeps, without a look at the queue, if more threads are awake than are to be. `true` if it has slept.
    fn make_way(&self, me: usize, must_stop: &impl Fn() -> bool) -> bool {
        let kept = self.kept_asleep();
        if kept == 0 || self.count_idle(Ordering::Relaxed) >= kept {
            return false;
        }
        let parker = &self.threads[me].parker;
        parker.store(EMPTY, Ordering::Relaxed);
        self.idle_word(me).fetch_or(idle_bit(me), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let sleeps = self.count_idle(Ordering::SeqCst) <= self.kept_asleep() && !must_stop();
        if sleeps {
            futex_wait(parker, EMPTY);
        }
        self.leave_idle(me);
        sleeps
    }

    /// Looks at the empty queue for a while, as a thread whose wake is in flight: nobody wakes another meanwhile.
    /// `true` if something came.
    fn spin(&self) -> bool {
        let rounds = self.control.spin.load(Ordering::Relaxed);
        if rounds == 0 || !self.reserve_wake() {
            return false;
        }
        let came = (0..rounds).any(|_| {
            spin_loop();
            self.fifo().len() > 0
        });
        self.return_wake();
        came
    }

    /// Announces itself idle, looks for a last time, and sleeps if nothing came.
    fn park(&self, me: usize, must_stop: &impl Fn() -> bool) -> Option<u64> {
        let parker = &self.threads[me].parker;
        parker.store(EMPTY, Ordering::Relaxed);
        self.idle_word(me).fetch_or(idle_bit(me), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let token = self.fifo().pop();
        if token.is_none() && !must_stop() {
            futex_wait(parker, EMPTY);
        }
        self.leave_idle(me);
        token
    }

    /// No longer idle. Whoever took the bit away has a wake in flight for this thread: it is here, so it is given
    /// back. (Its notification may still come, and then ends the next sleep early, which does no harm.)
    fn leave_idle(&self, me: usize) {
        let before = self.idle_word(me).fetch_and(!idle_bit(me), Ordering::SeqCst);
        if before & idle_bit(me) == 0 {
            self.return_wake();
        }
    }

    fn chain(&self) {
        if self.fifo().len() > 0 {
            self.wake_one();
        }
    }

    fn reserve_wake(&self) -> bool {
        let limit = self.control.wake_limit.load(Ordering::Relaxed).max(1);
        self.control
            .waking
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |waking| (waking < limit).then(|| waking + 1))
            .is_ok()
    }

    fn return_wake(&self) {
        // Saturating: `bury` sets the count to zero.
        let _ = self
            .control
            .waking
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |waking| waking.checked_sub(1));
        fence(Ordering::SeqCst);
    }

    fn may_wake(&self) -> bool {
        self.count_idle(Ordering::SeqCst) > self.kept_asleep()
    }

    /// Takes one thread out of the idle set. *Spread* goes round, so that every thread gets work; *pack* prefers the
    /// lowest number, so that spare threads stay unused.
    fn claim_idle(&self) -> Option<usize> {
        let start = match self.control.scheduling() {
            Scheduling::Spread => self.control.next_idle.load(Ordering::Relaxed) as usize,
            Scheduling::Pack => 0,
        };
        let words = self.idle_words().len();
        let start = start % (words * 64);
        let thread = (0..=words).find_map(|step| {
            let word = (start / 64 + step) % words;
            let from_start = u64::MAX << (start % 64);
            let mask = match step {
                0 => from_start,
                last if last == words => !from_start,
                _ => u64::MAX,
            };
            claim_bit(&self.control.idle[word], mask).map(|bit| word * 64 + bit)
        })?;
        self.control.next_idle.store((thread + 1) as u32, Ordering::Relaxed);
        (thread < self.threads.len()).then_some(thread)
    }

    fn notify(&self, thread: usize) {
        let parker = &self.threads[thread].parker;
        parker.store(NOTIFIED, Ordering::Release);
        futex_wake(parker);
    }

    fn idle_words(&self) -> &[AtomicU64] {
        &self.control.idle[..self.threads.len().div_ceil(64)]
    }

    fn idle_word(&self, thread: usize) -> &AtomicU64 {
        &self.control.idle[thread / 64]
    }
}

fn idle_bit(thread: usize) -> u64 {
    1 << (thread % 64)
}

/// Clears the lowest set bit under `mask` and returns its number. `None` if others have cleared all of them.
fn claim_bit(word: &AtomicU64, mask: u64) -> Option<usize> {
    let mut seen = word.load(Ordering::SeqCst);
    loop {
        let candidates = seen & mask;
        if candidates == 0 {
            return None;
        }
        let bit = candidates.trailing_zeros();
        let before = word.fetch_and(!(1 << bit), Ordering::SeqCst);
        if before & (1 << bit) != 0 {
            return Some(bit as usize);
        }
        // Only what was seen first: an engine that keeps setting bits does not keep the server here.
        seen &= before & !(1 << bit);
    }
}
