//! Sockets that are registered with the runtime's epoll.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, Interest, ReadBuf};

/// A non-blocking socket of any kind, registered until it is closed.
///
/// tokio's `TcpStream` does it: made from a descriptor, it registers that, and is no different for a Unix socket or
/// an epoll instance. It owns the descriptor and so can be made safely, which `AsyncFd` cannot.
pub struct RegisteredSocket(tokio::net::TcpStream);

impl RegisteredSocket {
    /// Must be called within a runtime. An error closes the socket.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        tokio::net::TcpStream::from_std(TcpStream::from(socket)).map(Self)
    }

    /// Waits until `call` does not say that it would block. It is a call that waits for something to read.
    pub async fn when_readable<T>(&self, call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.0.async_io(Interest::READABLE, call).await
    }

    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(context)
    }

    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }

    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_write_ready(context)
    }

    /// `call` waits for room to write.
    pub(crate) fn try_write(&self, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        self.0.try_io(Interest::WRITABLE, call)
    }
}

impl AsFd for RegisteredSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
