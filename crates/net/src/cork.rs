//! The last bytes of a connection, which leave together with its end.

use crate::lazy_socket::{LazySocket, Transport};
use rustix::net::{SendFlags, sockopt};
use std::cell::Cell;
use std::rc::Rc;

/// Of one connection. While it is on, what is written is held back until it is off again or the stream ends: the last
/// segment then carries the end too (`MSG_MORE`, send(2)). Of a connection with one request this saves two packets of
/// ten, and its client an event.
#[derive(Default)]
pub struct Cork {
    /// `None`: not of a [`Socket`](crate::Socket), and nothing is held back.
    socket: Option<Rc<LazySocket>>,
    is_on: Cell<bool>,
    holds: Cell<bool>,
}

impl Cork {
    pub(crate) fn of(socket: &Rc<LazySocket>) -> Rc<Self> {
        Rc::new(Self { socket: Some(Rc::clone(socket)), ..Self::default() })
    }

    /// All that is left to write will be written now, and then the stream ends.
    pub fn arm(&self) {
        // A Unix connection has no packets to save.
        self.is_on.set(self.socket.as_ref().is_some_and(|socket| socket.transport == Transport::Tcp));
    }

    /// Something has come in between: what was held back leaves now.
    pub fn release(&self) {
        self.is_on.set(false);
        if let Some(socket) = &self.socket
            && self.holds.take()
            && let Ok(socket) = socket.state().fd()
        {
            // Whether it was set before or not, this sends what waits. An error is one of the connection, which the next
            // use of it meets too.
            let _ = sockopt::set_tcp_nodelay(socket, true);
        }
    }

    pub(crate) fn flags(&self) -> SendFlags {
        if self.is_on.get() { SendFlags::MORE } else { SendFlags::empty() }
    }

    /// Bytes were written with [`Self::flags`].
    pub(crate) fn written(&self) {
        self.holds.set(self.is_on.get());
    }

    /// The end of the stream was said, and what was held back with it.
    pub(crate) fn ended(&self) {
        self.holds.set(false);
    }

    /// Whether the end of the stream has to be said by itself. Closing would say it too; but if the client has sent more
    /// than was read, it resets the connection, and what is held back is lost.
    pub fn is_holding(&self) -> bool {
        self.holds.get()
    }
}
