//! What becomes of an I/O thread's requests when their engine, or one process of it, has died.

use super::EngineClient;
use regent_wire::{EngineMemory, Repeats, Rescued, Token};
use std::sync::Arc;
use std::task::Waker;

impl EngineClient {
    /// The engine of `dead` is gone: what waited there waits on in the current one, what ran is lost or waits there again.
    pub(super) fn forget_dead(&self, dead: &Arc<EngineMemory>, repeats: Repeats) {
        let current = self.current();
        self.backends.borrow_mut().retain(|backend| !Arc::ptr_eq(backend, dead));
        let rescued = self.port.borrow_mut().move_requests(dead, &current, repeats);
        self.tell(&rescued);
    }

    /// What the thread ran is lost, or waits again.
    pub(super) fn bury(&self, backend: &Arc<EngineMemory>, thread: u16, repeats: Repeats) {
        if self.backends.borrow().iter().any(|known| Arc::ptr_eq(known, backend)) {
            let rescued = self.port.borrow_mut().bury(backend, usize::from(thread), repeats);
            self.tell(&rescued);
        }
    }

    /// The engine has ended, and nothing answers what it has not.
    pub(super) fn lose(&self) {
        self.is_ended.set(true);
        for backend in self.backends.borrow().iter() {
            let lost = self.port.borrow_mut().lose_requests(backend);
            self.wake(&lost);
        }
        self.switched.notify_waiters();
    }

    /// What the dead have written before their end is still good; who waits again has to know since when.
    fn tell(&self, rescued: &Rescued) {
        self.wake(&rescued.lost);
        self.wake(&rescued.repeated);
    }

    fn wake(&self, tokens: &[Token]) {
        let mut wakers = self.wakers.borrow_mut();
        tokens.iter().filter_map(|token| wakers[token.slot as usize].take()).for_each(Waker::wake);
    }
}
