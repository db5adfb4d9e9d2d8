//! What an I/O thread's runtime calls before and after each of the thread's sleeps.

use crate::engine_clients::ThreadClients;
use regent_net::{BusyPoll, Peers, Sockets};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// The runtime's hooks have to be made before the runtime is, and may capture nothing of its thread; this is how
    /// they find what the thread has.
    static HOOKED: RefCell<Option<Hooked>> = const { RefCell::new(None) };
}

struct Hooked {
    clients: Rc<ThreadClients>,
    sockets: Rc<Sockets>,
    busy_poll: Rc<BusyPoll>,
}

/// The hooks of this thread work for these from now on, until [`unhook`].
pub(crate) fn hook(clients: Rc<ThreadClients>, sockets: Rc<Sockets>, busy_poll: Rc<BusyPoll>) {
    HOOKED.set(Some(Hooked { clients, sockets, busy_poll }));
}

pub(crate) fn unhook() {
    HOOKED.set(None);
}

/// For the runtime's `on_thread_park`.
pub(crate) fn before_park() {
    with_hooked(|hooked| {
        hooked.clients.for_each(|client| client.park());
        hooked.sockets.register();
        hooked.busy_poll.asleep();
    });
}

/// For the runtime's `on_thread_unpark`.
pub(crate) fn after_unpark() {
    with_hooked(|hooked| {
        hooked.clients.for_each(|client| client.unpark());
        hooked.busy_poll.awake(hooked.clients.in_use());
    });
}

/// Wakes the tasks that wait for news of any engine and have got it.
pub(crate) fn drain_clients() {
    with_hooked(|hooked| _ = hooked.clients.drain());
}

fn with_hooked(action: impl Fn(&Hooked)) {
    HOOKED.with_borrow(|hooked| hooked.iter().for_each(action));
}
