//! Who may touch a slot: the bytes of the request are a cell, of which loom reports every access by two at once.

use super::doorbell::IoThread;
use super::{Bound, explore};
use crate::slot::StateWord;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A slot whose request says which generation it is of.
struct Slot {
    state: AtomicU64,
    request: Bytes,
    response: Bytes,
}

/// What lies in a slot, without a lock.
struct Bytes(UnsafeCell<u32>);

// SAFETY: loom checks every access to the cell.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    fn write(&self, value: u32) {
        // SAFETY: loom fails the model if somebody else accesses the cell at the same time.
        self.0.with_mut(|bytes| unsafe { *bytes = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: as in `write`.
        self.0.with(|bytes| unsafe { *bytes })
    }
}

impl Slot {
    fn new() -> Self {
        let bytes = || Bytes(UnsafeCell::new(0));
        Self { state: AtomicU64::new(0), request: bytes(), response: bytes() }
    }

    fn state(&self) -> StateWord<'_> {
        StateWord(&self.state)
    }

    /// Server.
    fn submit(&self, generation: u32) {
        self.request.write(generation);
        self.response.write(0);
        self.state().submit(generation);
    }

    /// Engine: runs the request if it is still there.
    fn run(&self, generation: u32, thread: usize) -> bool {
        if !self.state().claim(generation, thread) {
            return false;
        }
        assert_eq!(self.request.read(), generation, "the wrong request");
        self.response.write(generation);
        assert!(self.state().release(generation, thread), "somebody else released it");
        true
    }
}

/// Two threads hold tokens of two generations, the older one twice, as after the death of a process.
#[test]
fn a_request_runs_once_or_was_withdrawn() {
    explore(Bound::Everything, || {
        let slot = Arc::new(Slot::new());
        let threads = [[1, 2], [2, 1]].map(|tokens| {
            let slot = Arc::clone(&slot);
            let me = tokens[0] as usize;
            thread::spawn(move || tokens.map(|token| slot.run(token, me)))
        });
        slot.submit(1);
        let withdrawn = slot.state().withdraw(1);
        let answered = !withdrawn && slot.state().is_done(1);
        if answered {
            assert_eq!(slot.response.read(), 1);
            slot.state().reclaim(1);
        }
        if withdrawn || answered {
            slot.submit(2);
        }
        let [a, b] = threads.map(|thread| thread.join().unwrap());
        assert_eq!(u32::from(a[0]) + u32::from(b[1]) + u32::from(withdrawn), 1, "the first request");
        assert!(u32::from(a[1]) + u32::from(b[0]) <= 1, "the second request");
    });
}

/// What a process ran that has died is queued again under the same generation, of which a second token may still be about.
#[test]
fn a_request_that_is_run_again_runs_once_more() {
    explore(Bound::Everything, || {
        let slot = Arc::new(Slot::new());
        slot.submit(1);
        assert!(slot.state().claim(1, 7), "by the thread that is dead now");
        let threads = [1, 2].map(|me| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.run(1, me))
        });
        assert_eq!(slot.state().runner(1), Some(7));
        slot.state().submit(1);
        let ran = threads.map(|thread| thread.join().unwrap());
        // Who looked too early has thrown its token away; the new one is still in the queue.
        assert!(ran != [true, true] && (ran.contains(&true) || slot.run(1, 3)));
        assert!(slot.state().is_done(1) && !slot.run(1, 4));
    });
}

/// The server gives up while the thread runs: it gets the slot back, and what the thread writes last is never in the
/// next request.
#[test]
fn a_slot_that_was_given_up_comes_back() {
    explore(Bound::Everything, || {
        let shared = Arc::new((Slot::new(), IoThread::new(64)));
        shared.0.submit(1);
        let engine = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let ran = shared.0.run(1, 7);
                shared.1.mark(0);
                ran
            })
        };
        let (slot, io) = &*shared;
        let withdrawn = slot.state().withdraw(1);
        if !withdrawn && !slot.state().is_done(1) {
            io.serve(|_| slot.state().is_done(1));
        }
        slot.state().reclaim(1);
        slot.submit(2);
        assert_eq!(engine.join().unwrap(), !withdrawn);
        assert_eq!(slot.response.read(), 0);
    });
}

/// The server sees who runs a request, so that the death of that process fails this request and no other.
#[test]
fn the_owner_of_a_request_is_known() {
    explore(Bound::Everything, || {
        let shared = Arc::new((Slot::new(), AtomicU32::new(0)));
        shared.0.submit(1);
        let threads = [3, 4].map(|me| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if shared.0.state().claim(1, me) {
                    assert_eq!(shared.1.swap(me as u32, Ordering::Relaxed), 0);
                }
            })
        });
        let seen = [3, 4].map(|me| shared.0.state().is_run_by(1, me));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let owner = shared.1.load(Ordering::Relaxed) as usize;
        assert!(shared.0.state().is_run_by(1, owner));
        assert!(!seen[0] || owner == 3);
        assert!(!seen[1] || owner == 4);
    });
}
