//! Listening sockets.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Connections that the kernel holds until they are accepted. The default of most servers, 511, refuses or delays
/// clients from a thousand simultaneous ones on; the kernel caps this at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Listens on an address, non-blocking. The IPv6 wildcard takes IPv4 too; where IPv6 is off, it becomes the IPv4
/// wildcard.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let wildcard = address.is_ipv6() && address.ip().is_unspecified();
    match bind(address) {
        Err(error) if wildcard && error.kind() != io::ErrorKind::AddrInUse => {
            bind(SocketAddr::from(([0, 0, 0, 0], address.port()))).map_err(|_| error)
        }
        result => result,
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A restart must not wait for the connections of the last run to time out (TIME_WAIT).
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn the_wildcard_takes_ipv4_connections() {
        let listener = listen("[::]:0".parse().unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }

    #[test]
    fn an_address_in_use_is_an_error() {
        let first = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = listen(first.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
