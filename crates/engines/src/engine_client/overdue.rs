//! Requests that have run for longer than they may, without a timer for each: looks at what the threads run tell.

use super::EngineClient;
use regent_wire::Token;
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Of one I/O thread.
#[derive(Default)]
pub(super) struct OverdueRequests {
    /// Whether any request has had a limit yet.
    are_possible: Cell<bool>,
    /// Slots whose requests have been told.
    slots: RefCell<FxHashSet<u32>>,
}

impl OverdueRequests {
    pub fn expect(&self) {
        self.are_possible.set(true);
    }

    pub fn has(&self, token: Token) -> bool {
        self.are_possible.get() && self.slots.borrow().contains(&token.slot)
    }

    /// The slot is not this request's any more.
    pub fn forget(&self, token: Token) {
        if self.are_possible.get() {
            self.slots.borrow_mut().remove(&token.slot);
        }
    }
}

impl EngineClient {
    /// Wakes the tasks of requests that have run for longer than they may.
    pub fn wake_overdue(&self, now: Duration) {
        if !self.overdue.are_possible.get() {
            return;
        }
        let (port, mut wakers) = (self.port.borrow(), self.wakers.borrow_mut());
        let mut slots = self.overdue.slots.borrow_mut();
        for backend in self.backends.borrow().iter() {
            port.overdue(backend, now, |token| {
                if let Some(waker) =
                    slots.insert(token.slot).then(|| wakers[token.slot as usize].take()).flatten()
                {
                    waker.wake();
                }
            });
        }
    }
}
