//! The clients of all engines that an I/O thread has to do with.

use regent_engines::EngineClient;
use regent_net::Peers;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Does not keep them: the client of an engine that has been replaced goes with its last request.
#[derive(Default)]
pub(crate) struct ThreadClients(RefCell<Vec<Weak<EngineClient>>>);

impl ThreadClients {
    pub fn add(&self, client: &Rc<EngineClient>) {
        let mut clients = self.0.borrow_mut();
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Rc::downgrade(client));
    }

    /// `visit` must not add any.
    pub fn for_each(&self, visit: impl FnMut(Rc<EngineClient>)) {
        self.0.borrow().iter().filter_map(Weak::upgrade).for_each(visit);
    }
}

impl Peers for ThreadClients {
    fn in_use(&self) -> usize {
        self.0.borrow().iter().filter_map(Weak::upgrade).map(|client| client.in_use()).sum()
    }

    fn drain(&self) -> bool {
        let mut any = false;
        self.for_each(|client| any |= client.drain());
        any
    }
}
