//! Listening sockets of both families, TCP and Unix.

use crate::keepalive::Keepalive;
use crate::listen::BACKLOG;
use crate::registration::RegisteredSocket;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with, getsockname};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use tokio::task::yield_now;

/// The most sockets that are accepted from in one round.
const ROUND: usize = 64;

/// All sockets that a server's connections come from.
///
/// They have an epoll instance of their own, which says where connections wait, whenever they came (it is
/// level-triggered). The runtime's says only that one has come. That it was the last would show when the next `accept`
/// finds none, after the kernel has made a socket and a file for it: ten times the cost of asking.
pub struct Listeners {
    /// Places of sockets that were closed are taken by the next.
    sockets: Vec<Option<Listener>>,
    /// Indices of those that no connection is to come from yet.
    prepared: Vec<usize>,
    /// The epoll instance: the runtime's watches it as it does a socket.
    epoll: RegisteredSocket,
    /// Indices of the sockets that a connection waits at, in this round.
    round: VecDeque<usize>,
}

/// How a connection came here.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// The client; `None` on a Unix socket.
    pub remote: Option<SocketAddr>,
    /// This end; `None`: the connection has to be asked for it.
    pub local: Option<SocketAddr>,
    /// The number that the listening address was opened with.
    pub listener: usize,
}

struct Listener {
    socket: OwnedFd,
    /// The number of its listening address.
    number: usize,
    /// This end of all its connections, unless it listens on all of the machine's addresses.
    local: Option<SocketAddr>,
}

impl Listeners {
    /// Without any. Must be called within a runtime.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // To epoll it means nothing; a debug build of the runtime takes no descriptor without it.
        fcntl_setfl(&epoll, OFlags::NONBLOCK)?;
        let epoll = RegisteredSocket::new(epoll)?;
        let round = VecDeque::with_capacity(ROUND);
        Ok(Self { sockets: Vec::new(), prepared: Vec::new(), epoll, round })
    }

    /// Connections can come from these non-blocking sockets too, once [`Self::begin`] is called. They listen on the address
    /// of this number, which no other has.
    ///
    /// # Errors
    /// When the system watches no more sockets. [`Self::discard`] closes those that it does watch.
    pub fn prepare(&mut self, number: usize, shared: Vec<OwnedFd>) -> io::Result<()> {
        for socket in shared {
            let free = self.sockets.iter().position(Option::is_none);
            let index = free.unwrap_or(self.sockets.len());
            epoll::add(&self.epoll, &socket, EventData::new_u64(index as u64), EventFlags::empty())?;
            // Inherited, it costs connections nothing. A Unix socket has no such thing, nor any need for it.
            let _ = Keepalive::USUAL.set(&socket);
            let listener = Some(Listener::new(socket, number));
            match free {
                Some(free) => self.sockets[free] = listener,
                None => self.sockets.push(listener),
            }
            self.prepared.push(index);
        }
        Ok(())
    }

    /// From now on connections come from all that was prepared, which cannot fail any more.
    pub fn begin(&mut self) {
        for index in std::mem::take(&mut self.prepared) {
            let Some(listener) = &self.sockets[index] else { continue };
            // An error: it is not watched, which it is.
            let _ = epoll::modify(
                &self.epoll,
                &listener.socket,
                EventData::new_u64(index as u64),
                EventFlags::IN,
            );
        }
    }

    /// Closes all that was prepared and has not begun.
    pub fn discard(&mut self) {
        for index in std::mem::take(&mut self.prepared) {
            self.close_at(index);
        }
    }

    /// Takes all connections that wait at this moment, at the address of this number or at all.
    pub fn take_waiting(&self, number: Option<usize>, mut take: impl FnMut(OwnedFd, Arrival)) {
        let sockets = self.sockets.iter().flatten();
        for listener in sockets.filter(|listener| number.is_none_or(|number| listener.number == number)) {
            // Whoever never ceases to connect must not keep the socket open.
            for _ in 0..BACKLOG {
                match listener.accept() {
                    Ok(Some((socket, arrival))) => take(socket, arrival),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }

    /// Closes the sockets of the address. Connections that wait there are reset.
    pub fn close(&mut self, number: usize) {
        for index in 0..self.sockets.len() {
            if self.sockets[index].as_ref().is_some_and(|listener| listener.number == number) {
                self.close_at(index);
            }
        }
    }

    /// Other descriptors of all that connections come from, each with the number of its address.
    pub fn lend(&self) -> io::Result<Vec<(usize, OwnedFd)>> {
        let sockets = self.sockets.iter().flatten();
        sockets.map(|listener| Ok((listener.number, listener.socket.try_clone()?))).collect()
    }

    fn close_at(&mut self, index: usize) {
        if let Some(listener) = self.sockets[index].take() {
            // The socket of a Unix address has another descriptor, which its file keeps. An error: it is not watched.
            let _ = epoll::delete(&self.epoll, &listener.socket);
        }
    }

    /// The next connection, non-blocking, one of each socket in turn. Whatever else can be done is done between two
    /// rounds.
    pub async fn next(&mut self) -> io::Result<(OwnedFd, Arrival)> {
        loop {
            if self.round.is_empty() {
                yield_now().await;
                let Self { epoll, round, .. } = self;
                epoll.when_readable(|| begin_round(epoll, round)).await?;
            }
            if let Some(index) = self.round.pop_front()
                && let Some(listener) = &self.sockets[index]
                && let Some(connection) = listener.accept()?
            {
                return Ok(connection);
            }
        }
    }
}

fn begin_round(epoll: &RegisteredSocket, round: &mut VecDeque<usize>) -> io::Result<()> {
    let mut events = [MaybeUninit::<Event>::uninit(); ROUND];
    // Not at all: a signal cannot interrupt it either.
    let patience = Timespec { tv_sec: 0, tv_nsec: 0 };
    let (ready, _) = epoll::wait(epoll, &mut events, Some(&patience))?;
    round.extend(ready.iter().map(|event| { event.data }.u64() as usize));
    if round.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

impl Listener {
    fn new(socket: OwnedFd, number: usize) -> Self {
        let local = local_address(&socket).filter(|address| !address.ip().is_unspecified());
        Self { socket, number, local }
    }

    /// `None`: another process that shares the socket was faster.
    fn accept(&self) -> io::Result<Option<(OwnedFd, Arrival)>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::io::retry_on_intr(|| acceptfrom_with(&self.socket, flags)) {
            Ok((socket, remote)) => {
                let remote = remote.and_then(ip_address);
                Ok(Some((socket, Arrival { remote, local: self.local, listener: self.number })))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The address of this end, if it has one.
pub fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    getsockname(socket).ok().and_then(ip_address)
}

/// IPv4 over an IPv6 socket is IPv4 for all that ask (RFC 4291 §2.5.5.2): logs, matchers, placeholders, PHP.
fn ip_address(address: SocketAddrAny) -> Option<SocketAddr> {
    let address: SocketAddr = address.try_into().ok()?;
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => Some(SocketAddr::from((ip, address.port()))),
        IpAddr::V6(_) => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::pin::Pin;
    use std::task::Poll;

    fn listen(address: &str) -> (OwnedFd, SocketAddr) {
        let socket = TcpListener::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        (socket.into(), address)
    }

    /// Each socket with a number of its own, from 0.
    fn listeners(sockets: Vec<OwnedFd>) -> Listeners {
        let mut listeners = Listeners::new().unwrap();
        for (number, socket) in sockets.into_iter().enumerate() {
            listeners.prepare(number, vec![socket]).unwrap();
        }
        listeners.begin();
        listeners
    }

    #[test]
    fn ipv4_over_an_ipv6_socket_is_ipv4() {
        let plain = |text: &str| ip_address(text.parse::<SocketAddr>().unwrap().into()).unwrap().to_string();
        assert_eq!(plain("[::ffff:127.0.0.1]:80"), "127.0.0.1:80");
        assert_eq!(plain("[2001:db8::1%3]:80"), "[2001:db8::1%3]:80");
        assert_eq!(plain("[::]:80"), "[::]:80");
    }

    fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).unwrap()
    }

    #[test]
    fn only_a_specific_address_is_that_of_every_connection() {
        let (socket, address) = listen("127.0.0.1:0");
        assert_eq!(Listener::new(socket, 0).local, Some(address));
        assert_eq!(Listener::new(listen("0.0.0.0:0").0, 0).local, None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_comes_with_both_addresses_and_does_not_block() {
        let (socket, address) = listen("127.0.0.1:0");
        let mut listeners = listeners(vec![socket]);
        let client = connect(address);
        let (accepted, arrival) = listeners.next().await.unwrap();
        assert_eq!((arrival.remote, arrival.local), (client.local_addr().ok(), Some(address)));
        assert_eq!(local_address(&accepted), Some(address));
        let error = rustix::io::read(&accepted, &mut [0; 1]).unwrap_err();
        assert_eq!(error, Errno::AGAIN);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_over_a_unix_socket_has_no_addresses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = UnixListener::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut listeners = listeners(vec![socket.into()]);
        let _client = UnixStream::connect(&path).unwrap();
        let (_, arrival) = listeners.next().await.unwrap();
        assert_eq!((arrival.remote, arrival.local), (None, None));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn each_socket_has_its_turn_until_none_has_more() {
        let ((busy, at_busy), (other, at_other)) = (listen("127.0.0.1:0"), listen("127.0.0.1:0"));
        let mut listeners = listeners(vec![busy, other]);
        let _clients = [connect(at_busy), connect(at_busy), connect(at_busy), connect(at_other)];
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.push(listeners.next().await.unwrap().1.listener);
        }
        assert_eq!(turns, [0, 1, 0, 0]);
    }

    /// Polls until there is nothing that the runtime could do.
    async fn assert_waits(next: &mut (impl Future + Unpin)) {
        for _ in 0..10 {
            let is_waiting = poll_fn(|context| Poll::Ready(Pin::new(&mut *next).poll(context).is_pending()));
            assert!(is_waiting.await);
            yield_now().await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_comes_while_it_waits_wakes_it_every_time() {
        let (socket, address) = listen("127.0.0.1:0");
        let mut listeners = listeners(vec![socket]);
        for _ in 0..3 {
            let mut next = Box::pin(listeners.next());
            assert_waits(&mut next).await;
            let client = connect(address);
            assert_eq!(next.await.unwrap().1.remote, client.local_addr().ok());
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_another_process_took_is_not_waited_for() {
        let (socket, address) = listen("127.0.0.1:0");
        let shared = socket.try_clone().unwrap();
        let mut listeners = listeners(vec![socket]);
        let _taken = connect(address);
        begin_round(&listeners.epoll, &mut listeners.round).unwrap();
        TcpListener::from(shared).accept().unwrap();
        let mut next = Box::pin(listeners.next());
        assert_waits(&mut next).await;
        let client = connect(address);
        assert_eq!(next.await.unwrap().1.remote, client.local_addr().ok());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn addresses_are_opened_and_closed_while_others_are_listened_on() {
        let ((first, at_first), (kept, at_kept)) = (listen("127.0.0.1:0"), listen("127.0.0.1:0"));
        let mut listeners = listeners(vec![first, kept]);
        listeners.close(0);
        assert!(TcpStream::connect(at_first).is_err());
        let (next, at_next) = listen("127.0.0.1:0");
        listeners.prepare(7, vec![next]).unwrap();
        listeners.begin();
        for (address, number) in [(at_kept, 1), (at_next, 7)] {
            let _client = connect(address);
            assert_eq!(listeners.next().await.unwrap().1.listener, number);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_waits_at_an_address_that_is_closed_can_be_taken_before() {
        let ((left, at_left), (kept, at_kept)) = (listen("127.0.0.1:0"), listen("127.0.0.1:0"));
        let mut listeners = listeners(vec![left, kept]);
        let clients = [connect(at_left), connect(at_left), connect(at_kept)];
        let mut taken = Vec::new();
        listeners.take_waiting(Some(0), |socket, arrival| taken.push((socket, arrival)));
        listeners.close(0);
        let remotes = |taken: &[(OwnedFd, Arrival)]| {
            taken.iter().map(|(_, arrival)| arrival.remote).collect::<Vec<_>>()
        };
        assert_eq!(remotes(&taken), [clients[0].local_addr().ok(), clients[1].local_addr().ok()]);
        taken.clear();
        listeners.take_waiting(None, |socket, arrival| taken.push((socket, arrival)));
        assert_eq!(remotes(&taken), [clients[2].local_addr().ok()]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn nobody_comes_from_what_is_only_prepared() {
        let mut listeners = listeners(Vec::new());
        let ((socket, address), (discarded, at_discarded)) = (listen("127.0.0.1:0"), listen("127.0.0.1:0"));
        listeners.prepare(0, vec![discarded]).unwrap();
        listeners.discard();
        assert!(TcpStream::connect(at_discarded).is_err());
        listeners.prepare(1, vec![socket]).unwrap();
        let client = connect(address);
        assert!(begin_round(&listeners.epoll, &mut listeners.round).is_err());
        listeners.begin();
        assert_eq!(listeners.next().await.unwrap().1.remote, client.local_addr().ok());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_cannot_be_watched_is_an_error_that_can_be_undone() {
        let (socket, address) = listen("127.0.0.1:0");
        let mut listeners = listeners(Vec::new());
        // epoll takes no regular file.
        let file = tempfile::tempfile().unwrap().into();
        assert!(listeners.prepare(0, vec![socket, file]).is_err());
        listeners.discard();
        assert!(TcpStream::connect(address).is_err());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn there_is_no_round_without_a_connection() {
        let mut listeners = listeners(vec![listen("127.0.0.1:0").0]);
        let error = begin_round(&listeners.epoll, &mut listeners.round).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
