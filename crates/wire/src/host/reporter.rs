//! Sends events to the server.

use crate::control::{self, Event};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time that a thread waits for a server that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The writing side of the control socket.
pub struct Reporter {
    socket: Mutex<UnixStream>,
}

impl Reporter {
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket: Mutex::new(socket) })
    }

    /// An event that cannot be sent is dropped: either the server is gone, and so is this process soon, or it is
    /// stuck, and waiting would stop the requests too.
    pub fn send(&self, event: &Event) {
        let line = control::encode(event);
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.write_all(&line);
    }
}
