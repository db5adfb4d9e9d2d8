//! The lines of a log that is written to the test's own socket, as they come.

use crate::DEADLINE;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A listener for `output net`.
pub struct LogReader {
    listener: TcpListener,
    stream: Option<BufReader<TcpStream>>,
}

impl Default for LogReader {
    fn default() -> Self {
        Self::new()
    }
}

impl LogReader {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        Self { listener, stream: None }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }

    /// The next line, as JSON.
    pub fn next_line(&mut self) -> serde_json::Value {
        let stream = self.stream.get_or_insert_with(|| {
            let (stream, _) = self.listener.accept().expect("the server connects");
            stream.set_read_timeout(Some(DEADLINE)).expect("the time is not zero");
            BufReader::new(stream)
        });
        let mut line = String::new();
        stream.read_line(&mut line).expect("the server writes a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}
