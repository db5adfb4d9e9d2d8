//! A connection on its way to the I/O thread that serves it.

use crate::datagrams::Receiving;
use regent_http::h3::Arriving;
use regent_net::Arrival;
use rustix::fd::OwnedFd;

/// A connection for one of the I/O threads.
pub enum Dealt {
    Stream(OwnedFd, Arrival),
    /// A client of HTTP/3, at the address of this number.
    Datagrams(Box<Arriving>, usize, Receiving),
    /// None: no other follows.
    Nothing,
}
