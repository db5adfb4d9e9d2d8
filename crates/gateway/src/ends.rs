//! The two ends of a connection.

use crate::cgi::Peer;
use regent_exchange::Connection;
use std::cell::OnceCell;

/// A connection, and what engines are told of it.
pub struct Ends {
    pub connection: Connection,
    peer: OnceCell<Peer>,
}

impl Ends {
    pub fn new(connection: Connection) -> Self {
        Self { connection, peer: OnceCell::new() }
    }

    /// What engines are told of the connection.
    pub fn peer(&self) -> &Peer {
        self.peer.get_or_init(|| Peer::new(&self.connection))
    }
}
