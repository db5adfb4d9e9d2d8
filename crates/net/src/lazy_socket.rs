//! The socket of a connection, registered with epoll or not yet.

use crate::registration::RegisteredSocket;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::set_tcp_quickack;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::io;
use std::task::{Context, Waker};

/// What a connection goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Unix,
}

pub(crate) struct LazySocket {
    state: RefCell<SocketState>,
    pub transport: Transport,
    /// All that had come was read. Only while it is not registered.
    pub is_drained: Cell<bool>,
    /// Whether it is among those that wait to be registered.
    pub is_listed: Cell<bool>,
    /// Who waits for bytes, while it is not registered.
    pub reader: Cell<Option<Waker>>,
}

pub(crate) enum SocketState {
    Unregistered(OwnedFd),
    Registered(RegisteredSocket),
    /// It could not be registered, and was closed.
    Lost(io::ErrorKind),
}

impl LazySocket {
    pub fn new(socket: OwnedFd, transport: Transport) -> Self {
        Self {
            state: RefCell::new(SocketState::Unregistered(socket)),
            transport,
            is_drained: Cell::new(false),
            is_listed: Cell::new(false),
            reader: Cell::new(None),
        }
    }

    pub fn state(&self) -> Ref<'_, SocketState> {
        self.state.borrow()
    }

    pub fn state_mut(&self) -> RefMut<'_, SocketState> {
        self.state.borrow_mut()
    }

    /// Must be called within a runtime.
    pub fn register(&self) {
        let mut socket = self.state.borrow_mut();
        *socket = match std::mem::replace(&mut *socket, SocketState::Lost(io::ErrorKind::Other)) {
            SocketState::Unregistered(socket) => match RegisteredSocket::new(socket) {
                Ok(registered) => SocketState::Registered(registered),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "a connection was closed because epoll takes no more; raise fs.epoll.max_user_watches"
                    );
                    SocketState::Lost(error.kind())
                }
            },
            other => other,
        };
    }

    /// Registers, and has who waits for bytes woken when there are some.
    pub fn register_for_reader(&self) {
        self.register();
        self.acknowledge();
        let Some(reader) = self.reader.take() else { return };
        let is_pending = match &*self.state.borrow() {
            SocketState::Registered(socket) => {
                socket.poll_read_ready(&mut Context::from_waker(&reader)).is_pending()
            }
            SocketState::Unregistered(_) | SocketState::Lost(_) => false,
        };
        if !is_pending {
            reader.wake();
        }
    }

    /// Acknowledges what has come, and from now on as the kernel would have. A client with Nagle's algorithm sends the
    /// next part of its request only then; the kernel would let it wait for 40 ms, since the listening socket has told
    /// it to leave that to the answer.
    fn acknowledge(&self) {
        if self.transport == Transport::Tcp
            && let Ok(socket) = self.state().fd()
        {
            // An error is one of the connection, which the next use of it meets too.
            let _ = set_tcp_quickack(socket, true);
        }
    }
}

impl SocketState {
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Unregistered(socket) => Ok(socket.as_fd()),
            Self::Registered(socket) => Ok(socket.as_fd()),
            Self::Lost(kind) => Err((*kind).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_setfl};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// epoll refuses a file (EPERM), as it refuses sockets beyond its limit.
    #[tokio::test]
    async fn who_waits_for_what_epoll_refuses_is_told() {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        fcntl_setfl(&file, OFlags::NONBLOCK).unwrap();
        let (socket, woken) = (LazySocket::new(file, Transport::Tcp), Arc::<Woken>::default());
        socket.reader.set(Some(Arc::clone(&woken).into()));
        socket.register_for_reader();
        assert!(woken.0.load(Ordering::Relaxed));
        assert_eq!(socket.state().fd().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
