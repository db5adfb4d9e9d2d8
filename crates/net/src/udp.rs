//! Sockets for datagrams.

use crate::Neighbours;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Bytes that the kernel may hold of what has come, and of what is to be sent. One socket receives for all connections; the kernel caps
/// this at `net.core.rmem_max` and `net.core.wmem_max`.
const BUFFER: usize = 7 * 1024 * 1024;

/// A non-blocking socket for datagrams to this address. That of the IPv6 wildcard takes IPv4 too.
pub fn bind_udp(address: SocketAddr, neighbours: Neighbours) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    prepare(SockRef::from(&socket))?;
    // As of listening sockets: it is alone at its address, and may come to overlap others of this server.
    socket.set_reuse_port(neighbours == Neighbours::Own)?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

/// What does not depend on who has bound it.
pub(crate) fn prepare(socket: SockRef<'_>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // Smaller ones only lose datagrams sooner.
    let _ = (socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wildcard_takes_ipv4() {
        let socket = bind_udp("[::]:0".parse().unwrap(), Neighbours::None).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        client.send_to(b"hello", ("127.0.0.1", port)).unwrap();
        socket.set_nonblocking(false).unwrap();
        let mut buffer = [0; 9];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from.port()), (&b"hello"[..], client.local_addr().unwrap().port()));
    }

    #[test]
    fn an_address_in_use_is_an_error() {
        let first = bind_udp("127.0.0.1:0".parse().unwrap(), Neighbours::None).unwrap();
        let error = bind_udp(first.local_addr().unwrap(), Neighbours::None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_address_may_overlap_another_of_the_same_server() {
        let every = bind_udp("[::]:0".parse().unwrap(), Neighbours::None).unwrap();
        let local = SocketAddr::from(([127, 0, 0, 1], every.local_addr().unwrap().port()));
        assert_eq!(bind_udp(local, Neighbours::None).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        bind_udp(local, Neighbours::Own).unwrap();
    }
}
