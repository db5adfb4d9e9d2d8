//! Whether an engine's thread takes the CPU from others when it wakes.
//!
//! A thread that wakes preempts one that runs. That is right for a single request, and wrong under load: it
//! interrupts the I/O thread in the middle of its requests, and nobody is served earlier, because a queue waits for
//! both. So while requests are short and others wait behind them, threads are in the class `SCHED_BATCH` (sched(7)),
//! which never preempts and has the same share of the CPU. On two cores that is a seventh more throughput of a worker
//! at 10 and 100 connections in PHP. With a long request about, everybody is back in `SCHED_OTHER`: a short request
//! must be able to preempt a long one.

use nix::time::ClockId;
use rustix::process::Pid;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// A request that takes longer could hold up others: some slices of the scheduler (3 ms), so that a short one that was
/// interrupted is not taken for it.
const LONG: Duration = Duration::from_millis(10);
/// How long one long request means that more are about.
const MEMORY: Duration = Duration::from_secs(1);
/// Between two looks for long requests that have not ended: one that computes for ever never does. One that is open for
/// long and uses less of the CPU than [`LONG`] meanwhile holds up nobody.
const LOOK: Duration = Duration::from_millis(100);
/// So many requests in a row must agree before the class changes: a system call is not for every request.
const STREAK: u8 = 16;

/// What the threads of an engine know of each other's requests.
#[derive(Debug)]
pub struct EngineLoad {
    /// When the last long request was seen, in ms of the monotonic clock, and 0 without any.
    last_long: AtomicU64,
    /// When requests that run were last looked at, in ms.
    looked: AtomicU64,
    threads: Mutex<Vec<Weak<ThreadLoad>>>,
}

/// A thread, as the others see it.
#[derive(Debug)]
struct ThreadLoad {
    id: Pid,
    is_busy: AtomicBool,
    /// CPU time in ns that it had at the last look, if that found it at the same request; otherwise 0.
    computed: AtomicU64,
}

/// Chooses the class of one thread.
#[derive(Debug)]
pub struct SchedPolicy {
    engine: Arc<EngineLoad>,
    class: Class,
    /// Requests in a row, up to [`STREAK`], that others waited behind.
    crowded: u8,
    started: Duration,
    thread: Arc<ThreadLoad>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Other,
    Batch,
    /// The operator has chosen another one, which stays.
    Foreign,
}

impl EngineLoad {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { last_long: AtomicU64::new(0), looked: AtomicU64::new(0), threads: Mutex::default() })
    }

    /// The calling thread is one more.
    fn join(&self) -> Arc<ThreadLoad> {
        let thread = Arc::new(ThreadLoad::of_this_thread());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| thread.strong_count() > 0);
        threads.push(Arc::downgrade(&thread));
        thread
    }

    /// Looks for long requests that still run, if the last look was a while ago.
    fn look(&self, now: Duration) {
        let (looked, now_ms) = (self.looked.load(Ordering::Relaxed), milliseconds(now));
        let is_due = now_ms >= looked + milliseconds(LOOK)
            && self.looked.compare_exchange(looked, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && self.compute_for_long() > 0 {
            self.note_long(now);
        }
    }

    /// How many threads have been at one request since the last look, and have computed.
    fn compute_for_long(&self) -> usize {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().filter_map(Weak::upgrade).filter(|thread| thread.computes_for_long()).count()
    }

    fn note_long(&self, now: Duration) {
        self.last_long.store(milliseconds(now).max(1), Ordering::Relaxed);
    }

    fn have_long(&self, now: Duration) -> bool {
        let last = self.last_long.load(Ordering::Relaxed);
        last > 0 && milliseconds(now) < last + milliseconds(MEMORY)
    }
}

impl ThreadLoad {
    fn of_this_thread() -> Self {
        Self { id: rustix::thread::gettid(), is_busy: AtomicBool::new(false), computed: AtomicU64::new(0) }
    }

    fn begin(&self) {
        self.is_busy.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
        self.computed.store(0, Ordering::Relaxed);
    }

    /// Remembers what it sees for the next look.
    fn computes_for_long(&self) -> bool {
        if !self.is_busy.load(Ordering::Relaxed) {
            return false;
        }
        let computed = cpu_time_of(self.id);
        let before = self.computed.swap(computed, Ordering::Relaxed);
        before > 0 && u128::from(computed.saturating_sub(before)) > LONG.as_nanos()
    }
}

impl SchedPolicy {
    /// Of the calling thread.
    pub fn new(engine: Arc<EngineLoad>) -> Self {
        let thread = engine.join();
        let class = class_of_this_thread();
        Self { engine, class, crowded: 0, started: Duration::ZERO, thread }
    }

    /// The thread has started a request at `now` (of the monotonic clock) while so many others wait.
    pub fn begin(&mut self, waiting: u64, now: Duration) {
        self.started = now;
        self.thread.begin();
        if let Some(class) = self.change(waiting, now) {
            // It is refused only where a sandbox forbids it; then the class stays, and is not asked for again.
            self.class = if set_class_of_this_thread(class) { class } else { Class::Foreign };
        }
    }

    /// The request has ended after so long.
    pub fn end(&mut self, busy: Duration) {
        self.thread.end();
        if busy > LONG {
            self.engine.note_long(self.started + busy);
        }
    }

    /// The class to change to, if it is time.
    fn change(&mut self, waiting: u64, now: Duration) -> Option<Class> {
        if waiting > 0 {
            self.engine.look(now);
        }
        let long = self.engine.have_long(now);
        self.crowded = match waiting {
            _ if long => 0,
            0 => self.crowded.saturating_sub(1),
            _ => (self.crowded + 1).min(STREAK),
        };
        match (self.class, self.crowded) {
            (Class::Other, STREAK) => Some(Class::Batch),
            (Class::Batch, 0) => Some(Class::Other),
            _ => None,
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// In ns, of a thread of this process; 0 if it is gone.
fn cpu_time_of(thread: Pid) -> u64 {
    // As glibc's pthread_getcpuclockid makes it, for which the thread would have to be known as a pthread_t.
    let clock = (!thread.as_raw_nonzero().get() << 3) | 6;
    let time = ClockId::from_raw(clock).now();
    time.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

fn class_of_this_thread() -> Class {
    // SAFETY: law 5 is not touched: no pointer is passed, and 0 is the calling thread.
    match unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => Class::Other,
        _ => Class::Foreign,
    }
}

/// `true` if the thread is in this class now. Its children start in `SCHED_OTHER`.
fn set_class_of_this_thread(class: Class) -> bool {
    let policy = match class {
        Class::Other => libc::SCHED_OTHER,
        Class::Batch => libc::SCHED_BATCH,
        Class::Foreign => return false,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: law 5: the parameters live for the time of the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &raw const parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn policy() -> SchedPolicy {
        SchedPolicy { class: Class::Other, ..SchedPolicy::new(EngineLoad::new()) }
    }

    /// As `begin`, without the system call.
    fn begin(policy: &mut SchedPolicy, waiting: u64, now: Duration) {
        if let Some(class) = policy.change(waiting, now) {
            policy.class = class;
        }
    }

    #[test]
    fn a_thread_under_load_stops_preempting_and_a_thread_without_starts_again() {
        let mut policy = policy();
        let now = NOW;
        (1..STREAK).for_each(|_| begin(&mut policy, 5, now));
        assert_eq!(policy.class, Class::Other);
        begin(&mut policy, 5, now);
        assert_eq!(policy.class, Class::Batch);
        (0..STREAK).for_each(|_| begin(&mut policy, 0, now));
        assert_eq!(policy.class, Class::Other);
    }

    #[test]
    fn a_long_request_lets_everybody_preempt_for_a_second() {
        let mut policy = policy();
        let start = NOW;
        (0..STREAK).for_each(|_| begin(&mut policy, 5, start));
        policy.engine.note_long(start);
        begin(&mut policy, 5, start + MEMORY / 2);
        assert_eq!(policy.class, Class::Other);
        (0..=STREAK).for_each(|_| begin(&mut policy, 5, start + MEMORY / 2));
        assert_eq!(policy.class, Class::Other);
        (0..STREAK).for_each(|_| begin(&mut policy, 5, start + 2 * MEMORY));
        assert_eq!(policy.class, Class::Batch);
    }

    #[test]
    fn a_request_that_never_ends_lets_everybody_preempt_while_it_computes() {
        let mut policy = policy();
        let endless = SchedPolicy::new(Arc::clone(&policy.engine));
        endless.thread.begin();
        // Each after the last was forgotten.
        let mut now = NOW;
        let mut class_later = |computes: bool| {
            let before = cpu_time_of(endless.thread.id);
            while computes && cpu_time_of(endless.thread.id) < before + 2 * LONG.as_nanos() as u64 {}
            now += 2 * MEMORY;
            (0..=STREAK).for_each(|_| begin(&mut policy, 5, now));
            policy.class
        };
        assert_eq!(class_later(true), Class::Batch, "the first look");
        assert_eq!(class_later(true), Class::Other);
        assert_eq!(class_later(false), Class::Batch, "it waits for something");
        assert_eq!(class_later(true), Class::Other);
        endless.thread.end();
        assert_eq!(class_later(true), Class::Batch);
    }

    #[test]
    fn only_long_requests_are_noted() {
        let mut policy = policy();
        policy.started = NOW;
        policy.end(LONG / 2);
        assert!(!policy.engine.have_long(NOW + LONG));
        policy.end(2 * LONG);
        assert!(policy.engine.have_long(NOW + 2 * LONG));
    }

    #[test]
    fn the_operators_class_stays() {
        let mut policy = SchedPolicy { class: Class::Foreign, ..policy() };
        (0..2 * STREAK).for_each(|_| begin(&mut policy, 5, NOW));
        assert_eq!(policy.class, Class::Foreign);
    }

    /// In a thread of its own, whose class is nobody else's business.
    #[test]
    fn the_kernel_is_told() {
        let told = std::thread::spawn(|| {
            let set = set_class_of_this_thread(Class::Batch);
            // SAFETY: law 5 is not touched: no pointer is passed.
            let policy = unsafe { libc::sched_getscheduler(0) };
            let back = set_class_of_this_thread(Class::Other);
            (set, policy & !libc::SCHED_RESET_ON_FORK, back, class_of_this_thread())
        });
        let expected = (true, libc::SCHED_BATCH, true, Class::Other);
        assert_eq!(told.join().expect("no panic"), expected);
    }
}
