//! Listening sockets.

use rustix::net::sockopt::set_tcp_quickack;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Connections that the kernel holds for a socket until they are accepted. The default of most servers, 511, refuses
/// or delays clients from a thousand simultaneous ones on; the kernel caps this at `net.core.somaxconn`, by default
/// 4096.
pub(crate) const BACKLOG: i32 = 4096;

/// Sockets that share an address (`SO_REUSEPORT`). Each has a backlog of its own, and the kernel spreads connections
/// over them by a hash, so that together they hold a burst of tens of thousands, of which a single one would drop most:
/// their clients would try again only after a second.
const SOCKETS: usize = 8;

/// What may listen on the same port beside the sockets that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Nothing: another server is an error.
    None,
    /// Other sockets of [`listen`], on an address that overlaps this one: `:8080` and `127.0.0.1:8080`.
    Own,
}

/// Listens on an address, non-blocking: accept from all of the sockets, of which there is at least one. The IPv6 wildcard takes
/// IPv4 too; where IPv6 is off, it becomes the IPv4 wildcard.
pub fn listen(address: SocketAddr, neighbours: Neighbours) -> io::Result<Vec<TcpListener>> {
    let wildcard = address.is_ipv6() && address.ip().is_unspecified();
    match listen_on(address, neighbours) {
        Err(error) if wildcard && error.kind() != io::ErrorKind::AddrInUse => {
            listen_on(SocketAddr::from(([0, 0, 0, 0], address.port())), neighbours).map_err(|_| error)
        }
        result => result,
    }
}

fn listen_on(address: SocketAddr, neighbours: Neighbours) -> io::Result<Vec<TcpListener>> {
    // Alone at first: were the address shared from the start, a second server on it would go unnoticed.
    let sharing = match neighbours {
        Neighbours::None => Sharing::None,
        Neighbours::Own => Sharing::Port,
    };
    let first = bind(address, sharing)?;
    first.set_reuse_port(true)?;
    start(&first)?;
    let address = first.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    // Where the system does not give more of them, fewer hold fewer connections: no reason not to serve.
    let others = (1..SOCKETS).map_while(|_| also_listen(address).ok());
    Ok(std::iter::once(first).chain(others).map(TcpListener::from).collect())
}

fn also_listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = bind(address, Sharing::Port)?;
    start(&socket)?;
    Ok(socket)
}

fn start(socket: &Socket) -> io::Result<()> {
    socket.listen(BACKLOG)?;
    // Accepted connections inherit what is set now (listen(2) resets it): a request that is answered at once is
    // acknowledged by its answer, which is a packet less. `LazySocket` ends that for those that wait. A system that cannot do
    // this serves with the packet more.
    let _ = set_tcp_quickack(socket, false);
    Ok(())
}

/// Whether other sockets of this user may have the same address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    None,
    Port,
}

fn bind(address: SocketAddr, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A restart must not wait for the connections of the last run to time out (TIME_WAIT).
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Port)?;
    // Accepted connections inherit it. Answers are written whole; waiting for more would only delay them.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::net::TcpStream;

    #[test]
    fn the_wildcard_takes_ipv4_connections() {
        let listeners = listen("[::]:0".parse().unwrap(), Neighbours::None).unwrap();
        let port = listeners[0].local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }

    /// More than `net.core.somaxconn` allows one socket: the kernel would drop the rest, and their clients would come
    /// again after a second.
    #[test]
    fn a_burst_beyond_the_backlog_of_one_socket_is_held() {
        let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let burst = somaxconn.trim().parse::<usize>().unwrap().min(BACKLOG as usize) + 500;
        raise_descriptor_limit();
        let listeners = listen("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let clients: Vec<TcpStream> = (0..burst).map(|_| TcpStream::connect(address).unwrap()).collect();
        let accepted = listeners.iter().flat_map(|l| std::iter::from_fn(|| l.accept().ok())).count();
        assert_eq!(accepted, clients.len());
    }

    /// A burst needs two descriptors for each connection, twice a thousand times what many systems give at first.
    fn raise_descriptor_limit() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    }

    #[test]
    fn another_program_cannot_take_the_address() {
        let listeners = listen("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let error = TcpListener::bind(listeners[0].local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn accepted_connections_do_not_wait_for_more_to_send() {
        let listeners = listen("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let _client = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let accepted = listeners.iter().find_map(|listener| listener.accept().ok());
        assert!(accepted.unwrap().0.nodelay().unwrap());
    }

    #[test]
    fn requests_are_acknowledged_by_their_answers() {
        let listeners = listen("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let _client = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let accepted = listeners.iter().find_map(|listener| listener.accept().ok());
        assert!(!rustix::net::sockopt::tcp_quickack(accepted.unwrap().0).unwrap());
    }

    #[test]
    fn an_address_in_use_is_an_error() {
        let first = listen("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let error = listen(first[0].local_addr().unwrap(), Neighbours::None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_address_may_overlap_another_of_the_same_server() {
        let every = listen("[::]:0".parse().unwrap(), Neighbours::None).unwrap();
        let port = every[0].local_addr().unwrap().port();
        let local = SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(listen(local, Neighbours::None).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        listen(local, Neighbours::Own).unwrap();
    }
}
