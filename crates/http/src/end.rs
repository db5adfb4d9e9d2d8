//! The server's end of a connection: its socket, watched or not yet.

use crate::watched_fd::WatchedFd;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::io;
use std::task::{Context, Waker};

pub(crate) struct End {
    socket: RefCell<EndSocket>,
    /// All that had come was read. Only while it is not watched.
    pub is_drained: Cell<bool>,
    /// Whether it is among those that wait to be watched.
    pub is_listed: Cell<bool>,
    /// Who waits for bytes, while it is not watched.
    pub reader: Cell<Option<Waker>>,
}

pub(crate) enum EndSocket {
    Unwatched(OwnedFd),
    Watched(WatchedFd),
    /// It could not be watched, and was closed.
    Lost(io::ErrorKind),
}

impl End {
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket: RefCell::new(EndSocket::Unwatched(socket)),
            is_drained: Cell::new(false),
            is_listed: Cell::new(false),
            reader: Cell::new(None),
        }
    }

    pub fn socket(&self) -> Ref<'_, EndSocket> {
        self.socket.borrow()
    }

    pub fn socket_mut(&self) -> RefMut<'_, EndSocket> {
        self.socket.borrow_mut()
    }

    /// Must be called within a runtime.
    pub fn watch(&self) {
        let mut socket = self.socket.borrow_mut();
        *socket = match std::mem::replace(&mut *socket, EndSocket::Lost(io::ErrorKind::Other)) {
            EndSocket::Unwatched(socket) => match WatchedFd::new(socket) {
                Ok(watched) => EndSocket::Watched(watched),
                Err(error) => EndSocket::Lost(error.kind()),
            },
            other => other,
        };
    }

    /// Watches, and has who waits for bytes woken when there are some.
    pub fn watch_for_reader(&self) {
        self.watch();
        let Some(reader) = self.reader.take() else { return };
        let is_pending = match &*self.socket.borrow() {
            EndSocket::Watched(socket) => {
                socket.poll_read_ready(&mut Context::from_waker(&reader)).is_pending()
            }
            EndSocket::Unwatched(_) | EndSocket::Lost(_) => false,
        };
        if !is_pending {
            reader.wake();
        }
    }
}

impl EndSocket {
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Unwatched(socket) => Ok(socket.as_fd()),
            Self::Watched(socket) => Ok(socket.as_fd()),
            Self::Lost(kind) => Err((*kind).into()),
        }
    }
}
