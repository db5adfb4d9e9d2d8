//! A place for a connection: its socket, when it has one, and the exchange on it.
//!
//! A socket whose connection both sides have ended can serve the place's next connection too. The packets are the same;
//! to make a socket and a file, to register it, and to take it all apart again is about a sixth of what a connection
//! costs the generator, which shares its machine with the servers under test.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::{Errno, Result, read, writev};
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, connect_unspec, ipproto,
    send, shutdown, socket_with, sockopt,
};

use super::deadlines::Ticket;
use super::poller::Interest;
use super::response::Response;

/// What bodies of requests are made of, as much of it as goes into one system call.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// After so many system calls for one body it is the turn of the others.
const CALLS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub struct Connection {
    socket: Option<OwnedFd>,
    /// The socket of the last connection, disconnected.
    spare: Option<OwnedFd>,
    /// What the poller watches the socket for, if it does.
    pub watched: Option<Interest>,
    /// The poller's round in which the connection was opened.
    opened: u64,
    phase: Phase,
    /// Counts the requests of this place.
    number: u32,
    request: Request,
    /// The head of the request.
    pub head: Vec<u8>,
    /// Of head and body together.
    sent: u64,
    pub response: Response,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No request; the socket, if any, may serve another one.
    #[default]
    Idle,
    Connecting,
    Sending,
    Receiving,
    /// The answer is whole; the server has said that it will close, and does so soon.
    Closing,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The index of its kind.
    pub kind: usize,
    pub start: Duration,
    pub body_bytes: u64,
}

impl Connection {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn request(&self) -> Request {
        self.request
    }

    pub fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    pub fn ticket(&self, place: usize) -> Ticket {
        Ticket { place, number: self.number }
    }

    /// Whether the request with this ticket has not been answered or given up.
    pub fn is_under_way(&self, ticket: Ticket) -> bool {
        self.is_occupied(ticket) && self.phase != Phase::Closing
    }

    /// Whether the request with this ticket still keeps others from this connection.
    pub fn is_occupied(&self, ticket: Ticket) -> bool {
        self.number == ticket.number && self.phase != Phase::Idle
    }

    /// Whether there is a connection that was opened before this round of the poller: events of the round in which it was
    /// opened are of one before it.
    pub fn was_open_before(&self, round: u64) -> bool {
        self.socket.is_some() && self.opened < round
    }

    /// Makes this the place of a request whose head has been written to `head`.
    pub fn begin(&mut self, request: Request) {
        self.number = self.number.wrapping_add(1);
        self.request = request;
        self.sent = 0;
        self.response.reset();
        self.phase = if self.socket.is_some() { Phase::Sending } else { Phase::Connecting };
    }

    /// Takes the spare socket, or makes one. An error is a shortage on the side of the generator, unlike one of `connect`.
    pub fn open(&mut self, target: &SocketAddr, source: Option<IpAddr>, round: u64) -> Result<()> {
        let socket = self.spare.take().map_or_else(|| new_socket(target, source), Ok)?;
        // The request acknowledges the server's half of the handshake: a packet less, as by every client that has
        // something to say at once. Of the CPU that a connection takes on the loopback, packets are the greater part.
        sockopt::set_tcp_quickack(&socket, false)?;
        self.phase = Phase::Connecting;
        self.opened = round;
        self.socket = Some(socket);
        Ok(())
    }

    pub fn connect(&self, target: &SocketAddr) -> Result<()> {
        match connect(self.open_socket(), target) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends what the socket takes of the rest of the request; `AGAIN` when there is more.
    pub fn send(&mut self) -> Result<()> {
        for _ in 0..CALLS_AT_ONCE {
            let sent = self.send_once()?;
            self.phase = Phase::Sending;
            self.sent += sent as u64;
            if self.is_sent() {
                self.phase = Phase::Receiving;
                return Ok(());
            }
        }
        Err(Errno::AGAIN)
    }

    /// The server takes no more of the request; it may have answered before that.
    pub fn stop_sending(&mut self) {
        self.phase = Phase::Receiving;
    }

    pub fn is_sent(&self) -> bool {
        self.sent == self.head.len() as u64 + self.request.body_bytes
    }

    /// Whether nothing of the request has left, so that another connection may take it.
    pub fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    pub fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        read(self.open_socket(), buffer)
    }

    /// The answer is whole and the server closes.
    pub fn await_close(&mut self) {
        self.phase = Phase::Closing;
    }

    /// The request is over.
    pub fn rest(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Gives up the socket: dropping it closes it.
    pub fn close(&mut self) -> Option<OwnedFd> {
        self.watched = None;
        self.socket.take()
    }

    /// Ends a connection that the server has ended, as closing would, but keeps the socket, unless the connection broke.
    pub fn hang_up(&mut self) {
        let disconnect = |socket: &OwnedFd| {
            shutdown(socket, Shutdown::Write).and_then(|()| connect_unspec(socket)).is_ok()
        };
        self.spare = self.socket.take().filter(disconnect);
        if self.spare.is_none() {
            self.watched = None;
        }
    }

    fn send_once(&self) -> Result<usize> {
        let head = usize::try_from(self.sent).ok().and_then(|sent| self.head.get(sent..)).unwrap_or_default();
        if self.request.body_bytes == 0 {
            return send(self.open_socket(), head, SendFlags::NOSIGNAL);
        }
        if self.sent == 0 {
            // Nagle's algorithm would hold back the end of the body.
            sockopt::set_tcp_nodelay(self.open_socket(), true)?;
        }
        let left = self.head.len() as u64 + self.request.body_bytes - self.sent - head.len() as u64;
        let body = &ZEROS[..usize::try_from(left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()))];
        writev(self.open_socket(), &[IoSlice::new(head), IoSlice::new(body)])
    }

    fn open_socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("invariant: an exchange has a socket")
    }
}

fn new_socket(target: &SocketAddr, source: Option<IpAddr>) -> Result<OwnedFd> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    if let Some(source) = source {
        come_from(&socket, source)?;
    }
    Ok(socket)
}

/// The port is chosen by `connect`, when the target is known: `bind` would take one that no connection has, of which
/// there are 28,000 for all targets.
fn come_from(socket: &OwnedFd, source: IpAddr) -> Result<()> {
    setsockopt(socket, IpBindAddressNoPort, &true).map_err(|error| Errno::from_raw_os_error(error as i32))?;
    bind(socket, &SocketAddr::new(source, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    /// Sends a request over a connection, which the server answers and ends. Returns the server's side, and the port of the
    /// other.
    fn exchange(connection: &mut Connection, listener: &TcpListener) -> (TcpStream, u16) {
        let target = listener.local_addr().expect("an address");
        let source = Some([127, 0, 0, 9].into());
        connection.head = b"request".to_vec();
        connection.begin(Request::default());
        connection.open(&target, source, 0).expect("a socket");
        connection.watched.get_or_insert(Interest::Read);
        connection.connect(&target).expect("connected");
        connection.send().expect("sent");
        let (mut server, client) = listener.accept().expect("a connection");
        assert_eq!(client.ip(), IpAddr::from([127, 0, 0, 9]));
        server.read_exact(&mut [0; 7]).expect("the request");
        server.write_all(b"answer").expect("sent");
        server.shutdown(std::net::Shutdown::Write).expect("ended");
        assert_eq!(connection.receive(&mut [0; 16]), Ok(6));
        (server, client.port())
    }

    #[test]
    fn a_socket_serves_one_connection_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut connection = Connection::default();
        let (mut server, first) = exchange(&mut connection, &listener);
        let socket = connection.open_socket().as_raw_fd();
        connection.hang_up();
        assert_eq!(connection.watched, Some(Interest::Read), "epoll keeps it");
        assert!(!connection.was_open_before(1), "it has no connection");
        assert_eq!(server.read(&mut [0; 1]).expect("not reset"), 0, "the server sees the end");
        let (_, second) = exchange(&mut connection, &listener);
        assert_eq!(connection.open_socket().as_raw_fd(), socket);
        assert_ne!(first, second, "it is another connection");
    }

    #[test]
    fn a_broken_connection_leaves_no_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut connection = Connection::default();
        let (server, _) = exchange(&mut connection, &listener);
        rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO)).expect("TCP");
        drop(server);
        connection.hang_up();
        assert_eq!(connection.watched, None);
        exchange(&mut connection, &listener);
    }

    #[test]
    fn events_of_the_round_in_which_a_connection_was_opened_are_not_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut connection = Connection::default();
        connection.open(&listener.local_addr().expect("an address"), None, 7).expect("a socket");
        assert_eq!([7, 8].map(|round| connection.was_open_before(round)), [false, true]);
    }
}
