//! A place for a connection: its socket, when it has one, and the exchange on it.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::{Errno, Result, read, writev};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, send, socket_with, sockopt,
};

use super::deadlines::Ticket;
use super::response::Response;

/// What bodies of requests are made of, as much of it as goes into one system call.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// After so many system calls for one body it is the turn of the others.
const CALLS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub struct Connection {
    socket: Option<OwnedFd>,
    phase: Phase,
    /// Counts the sockets of this place, so that late events of a former one are known.
    generation: u32,
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

    /// Names the socket in epoll.
    pub fn token(&self, place: usize) -> u64 {
        u64::from(self.generation) << 32 | place as u64
    }

    /// The place of the connection that a token names.
    pub fn place(token: u64) -> usize {
        (token & u64::from(u32::MAX)) as usize
    }

    /// Makes this the place of a request whose head has been written to `head`.
    pub fn begin(&mut self, request: Request) {
        self.number = self.number.wrapping_add(1);
        self.request = request;
        self.sent = 0;
        self.response.reset();
        self.phase = if self.socket.is_some() { Phase::Sending } else { Phase::Connecting };
    }

    /// Makes a socket. An error is a shortage on the side of the generator, unlike one of `connect`.
    pub fn open(&mut self, target: &SocketAddr, source: Option<IpAddr>) -> Result<()> {
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        // The request acknowledges the server's half of the handshake: a packet less, as by every client that has
        // something to say at once. Of the CPU that a connection takes on the loopback, packets are the greater part.
        sockopt::set_tcp_quickack(&socket, false)?;
        if let Some(source) = source {
            come_from(&socket, source)?;
        }
        self.phase = Phase::Connecting;
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
        self.generation = self.generation.wrapping_add(1);
        self.socket.take()
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

/// The port is chosen by `connect`, when the target is known: `bind` would take one that no connection has, of which
/// there are 28,000 for all targets.
fn come_from(socket: &OwnedFd, source: IpAddr) -> Result<()> {
    setsockopt(socket, IpBindAddressNoPort, &true).map_err(|error| Errno::from_raw_os_error(error as i32))?;
    bind(socket, &SocketAddr::new(source, 0))
}
