//! Sends events to the server.

use crate::flood::Flood;
use crate::processes::FromProcess;
use regent_wire::control::{self, Event};
use regent_wire::{clock, log_line};
use std::io::{self, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time that a thread waits for a server that does not read.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of a line for the log; the rest of it is left out. As JSON it fits into an event, whatever it holds.
const LONGEST_LOG: usize = 16 * 1024;
/// The same of its context.
const LONGEST_CONTEXT: usize = 8 * 1024;
/// The level of syslog's warnings.
const WARNING: u8 = 4;

/// Where events go.
pub struct Reporter {
    channel: Channel,
    flood: Mutex<Flood>,
}

enum Channel {
    /// The writing side of the control socket.
    Server(Mutex<Socket>),
    /// Of a process that was forked: to the one that has the control socket, whole messages, so that those of several
    /// processes do not mix, and one that is killed leaves none half sent.
    Manager(UnixDatagram),
}

struct Socket {
    stream: UnixStream,
    /// The last line may lack its end.
    torn: bool,
}

impl Reporter {
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            channel: Channel::Server(Mutex::new(Socket { stream: socket, torn: false })),
            flood: Mutex::new(Flood::new()),
        })
    }

    pub(crate) fn of_process(manager: UnixDatagram) -> io::Result<Self> {
        manager.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { channel: Channel::Manager(manager), flood: Mutex::new(Flood::new()) })
    }

    /// An event that cannot be sent is dropped: either the server is gone, and so is this process soon, or it is
    /// stuck, and waiting would stop the requests too.
    pub fn send(&self, event: &Event) {
        self.deliver(event);
    }

    /// The same; answers whether it was sent.
    pub fn deliver(&self, event: &Event) -> bool {
        match &self.channel {
            Channel::Server(socket) => lock(socket).write(control::encode(event)),
            Channel::Manager(socket) => {
                let message = FromProcess::Event(Box::new(event.clone()));
                socket.send(&control::encode(&message)).is_ok()
            }
        }
    }

    /// Of a process that was forked: what the manager has to know, however long it takes to read it. Nothing if it is gone.
    pub(crate) fn tell(&self, message: &FromProcess) {
        let Channel::Manager(socket) = &self.channel else { return };
        let message = control::encode(message);
        let is_later = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        };
        while socket.send(&message).is_err_and(|error| is_later(&error)) {}
    }

    /// Logs a line that belongs to no request, at one of syslog's levels. Of a flood a part is dropped, so that events
    /// get through beside it; the next line that is not says how many were.
    /// `context`: a JSON object, or empty.
    pub fn log(&self, level: u8, message: &[u8], context: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let message = text(&log_line::text(message, LONGEST_LOG));
        let context = text(&log_line::object(context, LONGEST_CONTEXT));
        let admitted = lock(&self.flood).admit(message.len() + context.len(), clock::now());
        let Some(dropped) = admitted else { return };
        if dropped > 0 {
            let message = format!("{dropped} lines were dropped here: too many came outside of requests");
            self.send(&Event::Log { level: WARNING, message, context: String::new() });
        }
        self.send(&Event::Log { level, message, context });
    }
}

impl Socket {
    fn write(&mut self, mut line: Vec<u8>) -> bool {
        if self.torn {
            line.insert(0, b'\n');
        }
        self.torn = self.stream.write_all(&line).is_err();
        !self.torn
    }
}

/// A thread that panics while it sends leaves a torn line.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// All that a server gets.
    fn told(tell: impl FnOnce(&Reporter)) -> Vec<Event> {
        let (ours, mut servers) = UnixStream::pair().unwrap();
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            servers.read_to_string(&mut text).unwrap();
            assert!(text.lines().all(|line| line.len() < control::MAX_EVENT));
            text.lines().map(|line| control::decode(line).unwrap()).collect()
        });
        let reporter = Reporter::new(ours).unwrap();
        tell(&reporter);
        drop(reporter);
        reading.join().unwrap()
    }

    #[test]
    fn a_line_that_is_longer_than_an_event_is_cut() {
        for byte in [b'a', 0, 0xFF, b'"'] {
            let events = told(|reporter| reporter.log(3, &vec![byte; 1 << 20], b""));
            let [Event::Log { level: 3, message, .. }] = events.as_slice() else { panic!() };
            assert!(message.ends_with(" more bytes]"), "{}", message.len());
        }
    }

    #[test]
    fn a_flood_of_lines_is_cut_and_other_events_are_not() {
        let events = told(|reporter| {
            (0..20_000).for_each(|_| reporter.log(3, b"flood", b""));
            reporter.send(&Event::Ready);
        });
        assert!((1000..19_000).contains(&events.len()), "{}", events.len());
        assert_eq!(events.last(), Some(&Event::Ready));
    }

    #[test]
    fn an_event_that_was_torn_does_not_spoil_the_next() {
        let (ours, mut servers) = UnixStream::pair().unwrap();
        let reporter = Reporter::new(ours).unwrap();
        let most = Event::Failed { message: "x".repeat(4 << 20) };
        reporter.send(&most);
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            servers.read_to_string(&mut text).unwrap();
            text
        });
        reporter.send(&Event::Ready);
        drop(reporter);
        let text = reading.join().unwrap();
        assert_eq!(text.lines().last(), Some("\"ready\""));
        assert_eq!(text.lines().count(), 2);
    }
}
