//! The clients of all engines that an I/O thread has to do with.

use regent_engines::EngineClient;
use regent_net::Peers;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Does not keep them: the client of an engine that has been replaced goes with its last request.
#[derive(Default)]
pub(crate) struct EngineLinks(RefCell<Vec<Weak<EngineClient>>>);

impl EngineLinks {
    pub fn add(&self, link: &Rc<EngineClient>) {
        let mut links = self.0.borrow_mut();
        links.retain(|link| link.strong_count() > 0);
        links.push(Rc::downgrade(link));
    }

    /// `visit` must not add any.
    pub fn for_each(&self, visit: impl FnMut(Rc<EngineClient>)) {
        self.0.borrow().iter().filter_map(Weak::upgrade).for_each(visit);
    }
}

impl Peers for EngineLinks {
    fn in_use(&self) -> usize {
        self.0.borrow().iter().filter_map(Weak::upgrade).map(|link| link.in_use()).sum()
    }

    fn drain(&self) -> bool {
        let mut any = false;
        self.for_each(|link| any |= link.drain());
        any
    }
}
