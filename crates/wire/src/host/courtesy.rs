//! Whether an engine's thread takes the CPU from others when it wakes.
//!
//! A thread that wakes preempts one that runs. That is right for a single request, and wrong under load: it
//! interrupts the I/O thread in the middle of its requests, and nobody is served earlier, because a queue waits for
//! both. So while requests are short and others wait behind them, threads are in the class `SCHED_BATCH` (sched(7)),
//! which never preempts and has the same share of the CPU. On two cores that is a seventh more throughput of a worker
//! at 10 and 100 connections in PHP. With a long request about, everybody is back in `SCHED_OTHER`: a short request
//! must be able to preempt a long one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A request that takes longer could hold up others: some slices of the scheduler (3 ms), so that a short one that was
/// interrupted is not taken for it.
const LONG: Duration = Duration::from_millis(10);
/// How long one long request means that more are about.
const MEMORY: Duration = Duration::from_secs(1);
/// So many requests in a row must agree before the class changes: a system call is not for every request.
const STREAK: u8 = 16;

/// What the threads of an engine know in common.
#[derive(Debug)]
pub struct Neighbours {
    /// When the last long request ended, in ms of the monotonic clock, and 0 without any.
    last_long: AtomicU64,
}

/// One thread's.
#[derive(Debug)]
pub struct Courtesy {
    neighbours: Arc<Neighbours>,
    class: Class,
    /// Requests in a row, up to [`STREAK`], that others waited behind.
    crowded: u8,
    started: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Other,
    Batch,
    /// The operator has chosen another one, which stays.
    Foreign,
}

impl Neighbours {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { last_long: AtomicU64::new(0) })
    }

    fn note_long(&self, now: Duration) {
        self.last_long.store(milliseconds(now).max(1), Ordering::Relaxed);
    }

    fn have_long(&self, now: Duration) -> bool {
        let last = self.last_long.load(Ordering::Relaxed);
        last > 0 && milliseconds(now) < last + milliseconds(MEMORY)
    }
}

impl Courtesy {
    /// Of the calling thread.
    pub fn new(neighbours: Arc<Neighbours>) -> Self {
        Self { neighbours, class: class_of_this_thread(), crowded: 0, started: Duration::ZERO }
    }

    /// The thread has started a request at `now` (of the monotonic clock) while so many others wait.
    pub fn begin(&mut self, waiting: u64, now: Duration) {
        self.started = now;
        if let Some(class) = self.change(waiting, now) {
            // It is refused only where a sandbox forbids it; then the class stays, and is not asked for again.
            self.class = if set_class_of_this_thread(class) { class } else { Class::Foreign };
        }
    }

    /// The request has ended after so long.
    pub fn end(&mut self, busy: Duration) {
        if busy > LONG {
            self.neighbours.note_long(self.started + busy);
        }
    }

    /// The class to change to, if it is time.
    fn change(&mut self, waiting: u64, now: Duration) -> Option<Class> {
        let long = self.neighbours.have_long(now);
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

    fn courtesy() -> Courtesy {
        Courtesy { class: Class::Other, ..Courtesy::new(Neighbours::new()) }
    }

    /// As `begin`, without the system call.
    fn begin(courtesy: &mut Courtesy, waiting: u64, now: Duration) {
        if let Some(class) = courtesy.change(waiting, now) {
            courtesy.class = class;
        }
    }

    #[test]
    fn a_thread_under_load_stops_preempting_and_a_thread_without_starts_again() {
        let mut courtesy = courtesy();
        let now = NOW;
        (1..STREAK).for_each(|_| begin(&mut courtesy, 5, now));
        assert_eq!(courtesy.class, Class::Other);
        begin(&mut courtesy, 5, now);
        assert_eq!(courtesy.class, Class::Batch);
        (0..STREAK).for_each(|_| begin(&mut courtesy, 0, now));
        assert_eq!(courtesy.class, Class::Other);
    }

    #[test]
    fn a_long_request_lets_everybody_preempt_for_a_second() {
        let mut courtesy = courtesy();
        let start = NOW;
        (0..STREAK).for_each(|_| begin(&mut courtesy, 5, start));
        courtesy.neighbours.note_long(start);
        begin(&mut courtesy, 5, start + MEMORY / 2);
        assert_eq!(courtesy.class, Class::Other);
        (0..=STREAK).for_each(|_| begin(&mut courtesy, 5, start + MEMORY / 2));
        assert_eq!(courtesy.class, Class::Other);
        (0..STREAK).for_each(|_| begin(&mut courtesy, 5, start + 2 * MEMORY));
        assert_eq!(courtesy.class, Class::Batch);
    }

    #[test]
    fn only_long_requests_are_noted() {
        let mut courtesy = courtesy();
        courtesy.started = NOW;
        courtesy.end(LONG / 2);
        assert!(!courtesy.neighbours.have_long(NOW + LONG));
        courtesy.end(2 * LONG);
        assert!(courtesy.neighbours.have_long(NOW + 2 * LONG));
    }

    #[test]
    fn the_operators_class_stays() {
        let mut courtesy = Courtesy { class: Class::Foreign, ..courtesy() };
        (0..2 * STREAK).for_each(|_| begin(&mut courtesy, 5, NOW));
        assert_eq!(courtesy.class, Class::Foreign);
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
