//! A gate that scripts stop at: the test sees who has come, and lets them go one by one.
//!
//! So a test decides how long a request takes, and a request that is at the gate is known to run at this moment.

use crate::{Setup, until};
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};

/// PHP that comes to the gate, named by the query of its request, and goes on when it is let go.
pub const STOP_AT_GATE: &str = "\
    $gate = stream_socket_client('unix://' . dirname($_SERVER['DOCUMENT_ROOT']) . '/gate'); \
    fwrite($gate, $_SERVER['QUERY_STRING'] . \"\\n\"); fgets($gate); fclose($gate);";

/// The gate of one server.
pub struct Gate {
    listener: UnixListener,
}

/// A request at the gate. It goes on when this is dropped.
pub struct Visitor {
    /// The query of the request.
    pub name: String,
    _stream: UnixStream,
}

impl Gate {
    /// The gate of the server that is set up here.
    pub fn of(setup: &Setup) -> Self {
        let listener =
            UnixListener::bind(setup.directory().join("gate")).expect("the directory is fresh and ours");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        Self { listener }
    }

    /// Waits for the next request to come.
    pub fn next(&self) -> Visitor {
        until("a request comes to the gate", || self.poll())
    }

    /// Waits until so many requests have come.
    pub fn wait_for(&self, count: usize) -> Vec<Visitor> {
        (0..count).map(|_| self.next()).collect()
    }

    /// The request that has come, if there is one.
    pub fn poll(&self) -> Option<Visitor> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("the gate: {error}"),
        };
        let mut name = String::new();
        BufReader::new(&stream).read_line(&mut name).expect("the script says its name");
        Some(Visitor { name: name.trim_end().to_owned(), _stream: stream })
    }
}
