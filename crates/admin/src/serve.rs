//! Connections of the admin listener: few, bounded, and of no consequence to the rest of the server.

use crate::answer::Answer;
use crate::calls::{self, Shared};
use crate::control::Control;
use crate::failure::Failure;
use crate::guard::{Access, Guard};
use crate::listener::{Listener, Listeners};
use crate::router;
use futures_util::future::select_all;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use regent_metrics::AdminRequest;
use regent_net::SocketFile;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

/// Connections at once; further ones wait in the kernel until one ends.
const MOST_CONNECTIONS: usize = 64;
/// Bytes of a request's head; beyond it the answer is 431.
const LONGEST_HEAD: usize = 16 * 1024;
/// Longest time for a request's head, counted from the end of the last one: silence between requests ends a connection
/// too.
const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// Longest time in which a client takes nothing of an answer.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long running calls may take to end once it is to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Before accepting is tried again when the system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the listener is to do. Without anybody who says so it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// Whoever comes waits: another server is about to take the sockets over.
    Paused,
    /// It stops.
    Stopped,
    /// It stops, and the file of a Unix socket stays: another server has taken it over.
    Left,
}

/// Answers on the listeners until it is to stop; then the calls that are running are answered, for five seconds at most.
/// Must be called within a tokio runtime with I/O and time; dropped, it ends at once.
///
/// # Errors
/// When the runtime does not take the sockets.
pub async fn serve(
    listeners: Listeners,
    access: Access,
    control: Arc<dyn Control>,
    mut phases: watch::Receiver<Phase>,
) -> io::Result<()> {
    let site = Arc::new(Site { guard: Guard::new(&listeners, access), shared: Shared::new(control) });
    let sockets: Vec<Socket> = listeners.sockets.into_iter().map(Socket::new).collect::<Result<_, _>>()?;
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let phase = *phases.borrow_and_update();
        if matches!(phase, Phase::Stopped | Phase::Left) {
            break;
        }
        tokio::select! {
            // Before it accepts: once it is paused, nobody is answered here any more.
            biased;
            changed = phases.changed() => match changed {
                Ok(()) => {}
                Err(_) => break,
            },
            (connection, permit) = next(&sockets, &permits), if phase == Phase::Serving => {
                connections.spawn(connection.serve(Arc::clone(&site), graceful.watcher(), permit));
            }
            // Taken away as they end, lest they be kept for ever.
            Some(_) = connections.join_next() => {}
        }
    }
    let has_left = *phases.borrow() == Phase::Left;
    sockets.into_iter().for_each(|socket| {
        if has_left {
            socket.leave()
        }
    });
    // Calls that still run are cut off when the set is dropped.
    let _ = tokio::time::timeout(STOP_PATIENCE, graceful.shutdown()).await;
    Ok(())
}

/// What all connections share.
struct Site {
    guard: Guard,
    shared: Shared,
}

impl Site {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        self.call(request).await.unwrap_or_else(|failure| failure.answer())
    }

    async fn call(&self, request: Request<Incoming>) -> Result<Answer, Failure> {
        let (head, body) = request.into_parts();
        self.guard.check(&head)?;
        let path = head.uri.path().to_owned();
        let found = router::find(&head.method, &path)?;
        let method = head.method.clone();
        let answer = calls::answer(&self.shared, &found, Request::from_parts(head, body)).await;
        let answer = answer.unwrap_or_else(|failure| failure.answer());
        let status = answer.status().as_u16();
        self.shared.control.answered(AdminRequest { path: found.form, method: method.as_str(), status });
        Ok(answer)
    }
}

enum Socket {
    Tcp(TcpListener),
    /// The file is removed with the socket.
    Unix(UnixListener, Option<SocketFile>),
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(socket) => Self::Tcp(TcpListener::from_std(socket)?),
            Listener::Unix(socket, file) => Self::Unix(UnixListener::from_std(socket)?, file),
        })
    }

    /// Closes it, but for its file.
    fn leave(self) {
        if let Self::Unix(_, Some(file)) = self {
            file.leave();
        }
    }

    async fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(socket) => socket.accept().await.map(|(stream, _)| Connection::Tcp(stream)),
            Self::Unix(socket, _) => socket.accept().await.map(|(stream, _)| Connection::Unix(stream)),
        }
    }
}

impl Connection {
    async fn serve(self, site: Arc<Site>, watcher: Watcher, _permit: OwnedSemaphorePermit) {
        match self {
            Self::Tcp(stream) => converse(stream, site, watcher).await,
            Self::Unix(stream) => converse(stream, site, watcher).await,
        }
    }
}

/// The next connection, once there is room for it.
async fn next(sockets: &[Socket], permits: &Arc<Semaphore>) -> (Connection, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await.expect("invariant: nobody closes the semaphore");
    loop {
        let accepted = select_all(sockets.iter().map(|socket| Box::pin(socket.accept()))).await.0;
        match accepted {
            Ok(connection) => return (connection, permit),
            Err(error) => {
                tracing::warn!(%error, "the admin listener could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

type Watcher = hyper_util::server::graceful::Watcher;

async fn converse<S>(stream: S, site: Arc<Site>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_PATIENCE));
    let service = service_fn(|request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    // A broken request has been answered, as far as it can be; a connection that broke has nobody to tell.
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection of the admin listener broke");
    }
}

#[cfg(test)]
mod tests;
