//! Listening sockets and connections of both families, TCP and Unix.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// What listens on one address.
pub(crate) enum Listeners {
    /// Sockets that share it, at least one.
    Tcp(Vec<std::net::TcpListener>),
    Unix(std::os::unix::net::UnixListener),
}

/// A socket that connections come from.
pub(crate) trait Listener {
    type Stream: Stream;

    /// The next connection, and its client's address, if that has one.
    async fn next(&self) -> io::Result<(Self::Stream, Option<SocketAddr>)>;

    /// The address of all its connections at this end, unless it listens on all of the machine's.
    fn specific_address(&self) -> Option<SocketAddr>;
}

/// A connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + 'static {
    /// The address of this end, if it has one.
    fn local(&self) -> Option<SocketAddr>;

    /// To be taken over by another I/O thread.
    fn detach(self) -> io::Result<Detached>;
}

/// A connection that no I/O thread serves yet.
pub(crate) enum Detached {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        self.accept().await.map(|(stream, remote)| (stream, Some(remote)))
    }

    fn specific_address(&self) -> Option<SocketAddr> {
        self.local_addr().ok().filter(|address| !address.ip().is_unspecified())
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        self.accept().await.map(|(stream, _)| (stream, None))
    }

    fn specific_address(&self) -> Option<SocketAddr> {
        None
    }
}

impl Stream for TcpStream {
    fn local(&self) -> Option<SocketAddr> {
        self.local_addr().ok()
    }

    fn detach(self) -> io::Result<Detached> {
        self.into_std().map(Detached::Tcp)
    }
}

impl Stream for UnixStream {
    fn local(&self) -> Option<SocketAddr> {
        None
    }

    fn detach(self) -> io::Result<Detached> {
        self.into_std().map(Detached::Unix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn only_a_specific_address_is_that_of_every_connection() {
        let specific = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(specific.specific_address(), specific.local_addr().ok());
        let wildcard = TcpListener::bind("0.0.0.0:0").await.unwrap();
        assert_eq!(wildcard.specific_address(), None);
    }
}
