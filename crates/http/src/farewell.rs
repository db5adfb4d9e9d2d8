//! The last bytes of a connection, which leave together with its end.

use crate::end::{End, Transport};
use rustix::net::{SendFlags, sockopt};
use std::cell::Cell;
use std::rc::Rc;

/// Of one connection. While it is on, what is written is held back until it is off again or the stream ends: the last
/// segment then carries the end too (`MSG_MORE`, send(2)). Of a connection with one request this saves two packets of
/// ten, and its client an event.
#[derive(Default)]
pub struct Farewell {
    /// `None`: not of a [`Socket`](crate::Socket), and nothing is held back.
    end: Option<Rc<End>>,
    is_on: Cell<bool>,
    holds: Cell<bool>,
}

impl Farewell {
    pub(crate) fn of(end: &Rc<End>) -> Rc<Self> {
        Rc::new(Self { end: Some(Rc::clone(end)), ..Self::default() })
    }

    /// The client has sent its last request.
    pub(crate) fn foresee(&self) {
        if let Some(end) = &self.end {
            end.has_sent_all.set(true);
        }
    }

    /// All that is left to write will be written now, and then the stream ends.
    pub(crate) fn begin(&self) {
        // A Unix connection has no packets to save.
        self.is_on.set(self.end.as_ref().is_some_and(|end| end.transport == Transport::Tcp));
    }

    /// Something has come in between: what was held back leaves now.
    pub(crate) fn call_off(&self) {
        self.is_on.set(false);
        if let Some(end) = &self.end
            && self.holds.take()
            && let Ok(socket) = end.socket().fd()
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
    pub(crate) fn said(&self) {
        self.holds.set(false);
    }

    /// Whether the end of the stream has to be said by itself. Closing would say it too; but if the client has sent more
    /// than was read, it resets the connection, and what is held back is lost.
    pub(crate) fn holds(&self) -> bool {
        self.holds.get()
    }
}
