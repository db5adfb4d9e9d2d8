//! Listening sockets of both families, TCP and Unix.

use regent_http::RegisteredSocket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with, getsockname};
use std::io;
use std::net::SocketAddr;

/// A socket that connections come from.
pub(crate) struct Listener(RegisteredSocket);

impl Listener {
    /// Of a non-blocking socket that listens. Must be called within a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        RegisteredSocket::new(socket).map(Self)
    }

    /// The next connection, non-blocking, and its client's address, if that has one.
    pub async fn next(&self) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accept = || Ok(rustix::io::retry_on_intr(|| acceptfrom_with(&self.0, flags))?);
        let (socket, remote) = self.0.when_readable(accept).await?;
        Ok((socket, remote.and_then(ip_address)))
    }

    /// The address of all its connections at this end, unless it listens on all of the machine's.
    pub fn specific_address(&self) -> Option<SocketAddr> {
        local_address(&self.0).filter(|address| !address.ip().is_unspecified())
    }
}

/// The address of this end, if it has one.
pub(crate) fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    getsockname(socket).ok().and_then(ip_address)
}

fn ip_address(address: SocketAddrAny) -> Option<SocketAddr> {
    address.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(address: &str) -> std::net::TcpListener {
        let socket = std::net::TcpListener::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_a_specific_address_is_that_of_every_connection() {
        let socket = listen("127.0.0.1:0");
        let address = socket.local_addr().unwrap();
        assert_eq!(Listener::new(socket.into()).unwrap().specific_address(), Some(address));
        assert_eq!(Listener::new(listen("0.0.0.0:0").into()).unwrap().specific_address(), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_comes_with_both_addresses_and_does_not_block() {
        let socket = listen("127.0.0.1:0");
        let address = socket.local_addr().unwrap();
        let listener = Listener::new(socket.into()).unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        let (accepted, remote) = listener.next().await.unwrap();
        assert_eq!((remote, local_address(&accepted)), (client.local_addr().ok(), Some(address)));
        let error = rustix::io::read(&accepted, &mut [0; 1]).unwrap_err();
        assert_eq!(error, rustix::io::Errno::AGAIN);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_over_a_unix_socket_has_no_addresses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = Listener::new(socket.into()).unwrap();
        let _client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let (accepted, remote) = listener.next().await.unwrap();
        assert_eq!((remote, local_address(&accepted), listener.specific_address()), (None, None, None));
    }
}
