//! No mark is lost, and an I/O thread that sleeps is rung.

use super::{Bound, explore};
use crate::doorbell::{Doorbell, Ring};
use crate::layout::IoControl;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::cell::Cell;

/// An I/O thread's doorbell and what stands for its eventfd.
pub(super) struct IoThread {
    control: IoControl,
    dirty: Vec<AtomicU64>,
    rung: Mutex<u64>,
    awake: Condvar,
}

impl IoThread {
    pub fn new(slots: usize) -> Self {
        Self {
            control: IoControl::default(),
            dirty: (0..slots / 64).map(|_| AtomicU64::new(0)).collect(),
            rung: Mutex::new(0),
            awake: Condvar::new(),
        }
    }

    /// As `Engine::mark`.
    pub fn mark(&self, slot: usize) {
        if self.doorbell().mark(slot) == Ring::Needed {
            let mut rung = self.rung.lock().unwrap();
            *rung += 1;
            self.awake.notify_one();
        }
    }

    /// Calls `news` for every marked slot, as an I/O thread does, until it says that it has seen all.
    pub fn serve(&self, mut news: impl FnMut(usize) -> bool) {
        let doorbell = self.doorbell();
        let mut drain = || {
            let (mut any, mut all) = (false, false);
            doorbell.drain(|slot| {
                any = true;
                all |= news(slot);
            });
            (any, all)
        };
        loop {
            doorbell.park();
            let (any, all) = drain();
            if all {
                return;
            }
            if !any {
                self.sleep();
            }
            doorbell.unpark();
        }
    }

    fn sleep(&self) {
        let mut rung = self.rung.lock().unwrap();
        while *rung == 0 {
            rung = self.awake.wait(rung).unwrap();
        }
        *rung = 0;
    }

    fn doorbell(&self) -> Doorbell<'_> {
        Doorbell { control: &self.control, dirty: &self.dirty }
    }
}

/// Two threads mark slots of different words, or of the same.
fn two_threads(bound: Bound, slots: [usize; 2]) {
    explore(bound, move || {
        let io = Arc::new(IoThread::new(128));
        let threads = slots.map(|slot| {
            let io = Arc::clone(&io);
            thread::spawn(move || io.mark(slot))
        });
        let seen = Cell::new([false; 2]);
        io.serve(|slot| {
            seen.set([0, 1].map(|index| seen.get()[index] || slots[index] == slot));
            seen.get() == [true; 2]
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn marks_of_two_threads_in_two_words_arrive() {
    two_threads(Bound::Preemptions(4), [0, 64]);
}

#[test]
fn marks_of_two_threads_in_one_word_arrive() {
    two_threads(Bound::Preemptions(4), [0, 1]);
}

/// What was written before a mark is seen after it, also when the bit is set already.
#[test]
fn the_last_of_two_marks_brings_the_last_news() {
    explore(Bound::Everything, || {
        let shared = Arc::new((IoThread::new(64), AtomicU32::new(0)));
        let engine = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for news in 1..=2 {
                    shared.1.store(news, Ordering::Relaxed);
                    shared.0.mark(5);
                }
            })
        };
        shared.0.serve(|slot| slot == 5 && shared.1.load(Ordering::Relaxed) == 2);
        engine.join().unwrap();
    });
}
