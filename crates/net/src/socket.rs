//! A connection's socket, TCP or Unix, which is registered with the runtime's epoll only if it has to wait for long.
//!
//! Most connections that serve one request have it when they are accepted, and have ended before they would be registered:
//! they cost no `epoll_ctl`, and their events wake nobody. A socket that waits for bytes is registered before the thread
//! sleeps, or after [`PATIENCE`], with the next use of any socket, if the thread always has something to do.

use crate::coarse_instant::CoarseInstant;
use crate::cork::Cork;
use crate::lazy_socket::{LazySocket, SocketState, Transport};
use crate::stream::Stream;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a socket may wait to be registered.
const PATIENCE: Duration = Duration::from_millis(10);

/// The most that is read at once from a socket that is not registered.
const PART: usize = 16 * 1024;

/// A non-blocking stream socket.
pub struct Socket {
    inner: Rc<LazySocket>,
    sockets: Rc<Sockets>,
    cork: Rc<Cork>,
}

/// What the sockets of one thread share.
pub struct Sockets {
    /// Those that wait for bytes and are not registered.
    deferred: Waiting,
    /// The caller's buffers are memory without contents, of which safe code can make no slice.
    buffer: RefCell<Box<[u8]>>,
}

/// In the order in which they began to wait, and since when.
#[derive(Default)]
struct Waiting(RefCell<VecDeque<(CoarseInstant, Weak<LazySocket>)>>);

impl Socket {
    /// Must be used within a runtime. The cork is for who serves it.
    pub fn new(socket: OwnedFd, transport: Transport, sockets: &Rc<Sockets>) -> (Self, Rc<Cork>) {
        let inner = Rc::new(LazySocket::new(socket, transport));
        let cork = Cork::of(&inner);
        (Self { inner, sockets: Rc::clone(sockets), cork: Rc::clone(&cork) }, cork)
    }

    fn poll_read_unregistered(
        &self,
        socket: BorrowedFd<'_>,
        context: &Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.inner.is_drained.get() {
            match self.sockets.receive(socket, buffer) {
                Err(Errno::AGAIN) => self.inner.is_drained.set(true),
                result => {
                    // What is less than asked for is all that there is. More would be seen once it is registered.
                    self.inner.is_drained.set(result? == Received::All);
                    return Poll::Ready(Ok(()));
                }
            }
        }
        self.inner.reader.set(Some(context.waker().clone()));
        self.sockets.list(&self.inner);
        Poll::Pending
    }

    fn try_write(&self, socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | self.cork.flags();
        let sent =
            rustix::io::retry_on_intr(|| sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), flags))?;
        self.cork.written();
        Ok(sent)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.sockets.register_overdue(CoarseInstant::now());
        match &mut *self.inner.state_mut() {
            SocketState::Registered(socket) => socket.poll_read(context, buffer),
            socket => self.poll_read_unregistered(socket.fd()?, context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.sockets.register_overdue(CoarseInstant::now());
        // Almost always there is room.
        let is_full =
            |result: &io::Result<_>| matches!(result, Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        let result = self.try_write(self.inner.state().fd()?, parts);
        if !is_full(&result) {
            return Poll::Ready(result);
        }
        self.inner.register();
        let socket = self.inner.state();
        let SocketState::Registered(registered) = &*socket else {
            return Poll::Ready(socket.fd().map(|_| 0));
        };
        loop {
            ready!(registered.poll_write_ready(context))?;
            let result = registered.try_write(|| self.try_write(socket.fd()?, parts));
            if !is_full(&result) {
                return Poll::Ready(result);
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.cork.ended();
        match shutdown(self.inner.state().fd()?, Shutdown::Write) {
            // The client was faster.
            Err(Errno::NOTCONN) => Poll::Ready(Ok(())),
            result => Poll::Ready(Ok(result?)),
        }
    }
}

impl Stream for Socket {
    fn close_says_all(&self) -> bool {
        true
    }
}

/// How much of what has come was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Received {
    All,
    /// There may be more, or it is the end.
    Part,
}

impl Default for Sockets {
    fn default() -> Self {
        Self { deferred: Waiting::default(), buffer: RefCell::new(vec![0; PART].into_boxed_slice()) }
    }
}

impl Sockets {
    /// Registers all sockets that wait for bytes which may come. Must be called, within the runtime, before it sleeps.
    pub fn register(&self) {
        self.deferred.register_while(|_| true);
    }

    fn list(&self, socket: &Rc<LazySocket>) {
        if !socket.is_listed.replace(true) {
            self.deferred.add(socket);
        }
    }

    /// A thread that always has something to do never sleeps: what waits is registered all the same.
    fn register_overdue(&self, now: CoarseInstant) {
        self.deferred.register_while(|since| now.left(since, PATIENCE).is_zero());
    }

    fn receive(&self, socket: BorrowedFd<'_>, buffer: &mut ReadBuf<'_>) -> rustix::io::Result<Received> {
        let mut part = self.buffer.borrow_mut();
        let room = buffer.remaining().min(part.len());
        let length = rustix::io::retry_on_intr(|| {
            recv(socket, &mut part[..room], RecvFlags::empty()).map(|(_, length)| length)
        })?;
        buffer.put_slice(&part[..length]);
        Ok(if (1..room).contains(&length) { Received::All } else { Received::Part })
    }
}

impl Waiting {
    fn add(&self, socket: &Rc<LazySocket>) {
        self.0.borrow_mut().push_back((CoarseInstant::now(), Rc::downgrade(socket)));
    }

    /// Since when the first of them has waited.
    fn first(&self) -> Option<CoarseInstant> {
        self.0.borrow().front().map(|(since, _)| *since)
    }

    fn register_while(&self, is_due: impl Fn(CoarseInstant) -> bool) {
        // Not borrowed while tasks are woken.
        let next = || if is_due(self.first()?) { self.0.borrow_mut().pop_front() } else { None };
        while let Some((_, socket)) = next() {
            socket.upgrade().inspect(|socket| socket.register_for_reader());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_quickack;
    use std::future::{Future, poll_fn};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::pin::pin;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Pair {
        sockets: Rc<Sockets>,
        socket: Socket,
        cork: Rc<Cork>,
        client: TcpStream,
    }

    fn pair() -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let sockets = Rc::new(Sockets::default());
        let (socket, cork) = Socket::new(accepted.into(), Transport::Tcp, &sockets);
        Pair { sockets, socket, cork, client }
    }

    impl Pair {
        fn is_registered(&self) -> bool {
            matches!(*self.socket.inner.state(), SocketState::Registered(_))
        }

        /// Reads once; `None` if there is nothing yet.
        fn try_read(&mut self) -> Option<Vec<u8>> {
            let mut bytes = vec![0; 1024];
            let mut buffer = ReadBuf::new(&mut bytes);
            let mut context = Context::from_waker(Waker::noop());
            match Pin::new(&mut self.socket).poll_read(&mut context, &mut buffer) {
                Poll::Ready(result) => {
                    result.unwrap();
                    Some(buffer.filled().to_vec())
                }
                Poll::Pending => None,
            }
        }

        /// What has arrived at the client.
        fn received(&mut self) -> Vec<u8> {
            let mut bytes = [0; 1024];
            match self.client.read(&mut bytes) {
                Ok(length) => bytes[..length].to_vec(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Vec::new(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn a_request_that_is_there_is_answered_without_being_registered() {
        let mut pair = pair();
        pair.client.write_all(b"request").unwrap();
        assert_eq!(pair.try_read().unwrap(), b"request");
        assert_eq!(pair.try_read(), None);
        pair.socket.write_all(b"answer").await.unwrap();
        assert_eq!(pair.received(), b"answer");
        assert!(!pair.is_registered());
        let Pair { socket, cork, sockets, mut client } = pair;
        drop((socket, cork));
        sockets.register();
        client.set_nonblocking(false).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "it is closed, with nothing to keep it open");
    }

    #[tokio::test]
    async fn what_comes_before_and_after_it_is_registered_is_read() {
        let mut pair = pair();
        assert_eq!(pair.try_read(), None);
        pair.client.write_all(b"before").unwrap();
        assert_eq!(pair.try_read(), None, "nobody has looked yet");
        pair.sockets.register();
        assert!(pair.is_registered());
        let mut bytes = [0; 16];
        assert_eq!(pair.socket.read(&mut bytes).await.unwrap(), 6);
        let (mut client, socket) = (pair.client.try_clone().unwrap(), &mut pair.socket);
        let (read, ()) = tokio::join!(socket.read(&mut bytes), async { client.write_all(b"after").unwrap() });
        assert_eq!(read.unwrap(), 5);
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_what_comes_once_it_is_registered() {
        let Pair { sockets, mut socket, mut client, cork: _cork } = pair();
        let mut bytes = [0; 16];
        let mut reading = pin!(socket.read(&mut bytes));
        assert!(poll_once(reading.as_mut()).await.is_pending());
        sockets.register();
        let (read, ()) = tokio::join!(reading, async { client.write_all(b"bytes").unwrap() });
        assert_eq!(read.unwrap(), 5);
    }

    /// Nagle's algorithm keeps the next part of its request back until then.
    #[tokio::test]
    async fn what_has_come_is_acknowledged_when_more_has_to_be_waited_for() {
        let listener = crate::listen("127.0.0.1:0".parse().unwrap(), crate::Neighbours::None).unwrap();
        let mut client = TcpStream::connect(listener[0].local_addr().unwrap()).unwrap();
        client.write_all(b"half a").unwrap();
        let accepted = listener.iter().find_map(|listener| listener.accept().ok()).unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        let sockets = Rc::new(Sockets::default());
        let (socket, cork) = Socket::new(accepted.into(), Transport::Tcp, &sockets);
        let mut pair = Pair { sockets, socket, cork, client };
        let acknowledges = |pair: &Pair| tcp_quickack(pair.socket.inner.state().fd().unwrap()).unwrap();
        assert_eq!(pair.try_read().unwrap(), b"half a");
        assert_eq!(pair.try_read(), None);
        assert!(!acknowledges(&pair));
        pair.sockets.register();
        assert!(acknowledges(&pair));
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_seen_once_it_is_registered() {
        let mut pair = pair();
        pair.client.write_all(b"request").unwrap();
        pair.client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(pair.try_read().unwrap(), b"request");
        assert_eq!(pair.try_read(), None);
        pair.sockets.register();
        assert_eq!(pair.socket.read(&mut [0; 16]).await.unwrap(), 0);
    }

    /// A thread that never sleeps registers too.
    #[tokio::test]
    async fn a_socket_that_has_waited_for_long_is_registered_with_the_next_use_of_another() {
        let mut waiting = pair();
        assert_eq!(waiting.try_read(), None);
        let listed = CoarseInstant::now();
        waiting.sockets.register_overdue(listed);
        assert!(!waiting.is_registered());
        let later = listed.after(PATIENCE);
        waiting.sockets.register_overdue(later);
        assert!(waiting.is_registered());
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_waited_for() {
        let Pair { mut socket, mut client, .. } = pair();
        // More than both ends have room for.
        let most = vec![7; 64 << 20];
        let mut writing = pin!(socket.write_all(&most));
        assert!(poll_once(writing.as_mut()).await.is_pending());
        client.set_nonblocking(false).unwrap();
        let length = most.len();
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; length];
            client.read_exact(&mut all).unwrap();
            all
        });
        writing.await.unwrap();
        assert!(reader.join().unwrap() == most);
    }

    #[tokio::test]
    async fn the_last_bytes_leave_with_the_end() {
        let mut pair = pair();
        pair.cork.arm();
        pair.socket.write_all(b"bye").await.unwrap();
        assert!(pair.cork.is_holding());
        // The kernel holds them for 200 ms at most.
        assert_eq!(pair.received(), b"");
        pair.socket.shutdown().await.unwrap();
        assert!(!pair.cork.is_holding());
        pair.client.set_nonblocking(false).unwrap();
        let mut all = Vec::new();
        pair.client.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"bye");
    }

    #[tokio::test]
    async fn a_cork_that_is_released_sends_what_it_held() {
        let mut pair = pair();
        pair.cork.arm();
        pair.socket.write_all(b"not yet").await.unwrap();
        pair.cork.release();
        assert_eq!(pair.received(), b"not yet");
        pair.socket.write_all(b"and on").await.unwrap();
        assert_eq!(pair.received(), b"and on");
    }

    #[tokio::test]
    async fn a_unix_connection_holds_nothing_back() {
        let (client, socket) = UnixStream::pair().unwrap();
        for end in [&client, &socket] {
            end.set_nonblocking(true).unwrap();
        }
        let (mut socket, cork) = Socket::new(socket.into(), Transport::Unix, &Rc::default());
        cork.arm();
        socket.write_all(b"bye").await.unwrap();
        assert!(!cork.is_holding());
        assert_eq!((&client).read(&mut [0; 8]).unwrap(), 3);
    }

    /// A future's state after one poll.
    async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
    }
}
