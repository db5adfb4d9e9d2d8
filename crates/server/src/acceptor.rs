//! An I/O thread's loop: connections come in, are served, and drain.

use crate::gate::{Gate, GateBounds};
use crate::io_thread::{self, IoThread};
use crate::php::{PhpGateway, PhpLimits};
use crate::pools::Pools;
use crate::pressure::Pressure;
use crate::service::{Ends, Service};
use crate::spool::Spools;
use crate::variables::Peer;
use regent_handlers::Sites;
use regent_http::{Drain, Settings};
use regent_wire::{Backend, RequestLine, Token, clock};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::spawn_local;

/// Wait after an `accept` that failed for want of something (descriptors, memory) which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Between two looks at which requests are running.
const RUNNING_LOOK: Duration = Duration::from_millis(20);

/// What an I/O thread is told.
pub(crate) enum Command {
    /// A connection that another thread accepted.
    Serve(Accepted<TcpStream>),
    /// New requests go to this engine; the sender is told when it is so.
    Switch(Arc<Backend>, oneshot::Sender<()>),
    /// This engine is dead; another one is current.
    Bury(Arc<Backend>),
    /// What are these requests of the engine? Those of other I/O threads are passed over.
    Describe(Arc<Backend>, Arc<[Token]>, oneshot::Sender<Vec<(Token, RequestLine)>>),
}

/// A new connection.
pub(crate) struct Accepted<S> {
    pub stream: S,
    /// The client.
    pub remote: SocketAddr,
    /// This end; `None`: one of the machine's addresses, which the system has to be asked for.
    pub local: Option<SocketAddr>,
    /// The number of the listener that it came to.
    pub listener: usize,
}

/// How far the server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    /// No new connections; those that are there end with their running request.
    Draining,
}

/// Everything that an I/O thread starts with.
pub(crate) struct IoStart {
    pub index: usize,
    pub slots: usize,
    pub backend: Arc<Backend>,
    pub doorbell: Arc<OwnedFd>,
    pub sites: Vec<Arc<Sites>>,
    pub settings: Settings,
    pub limits: PhpLimits,
    pub bounds: GateBounds,
    pub pools: Arc<Pools>,
    pub spools: Arc<Spools>,
    pub pressure: Arc<Pressure>,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub stage: watch::Receiver<Stage>,
    /// The first thread accepts, and deals connections out to all.
    pub accept: Option<Dealer>,
}

/// Accepts connections and deals them out in turn. (Were each I/O thread to accept from sockets of its own, a hash
/// would choose the thread, and spread few connections unevenly.)
pub(crate) struct Dealer {
    /// By listener: the sockets that share its address.
    pub listeners: Vec<Vec<TcpListener>>,
    /// All I/O threads, this one first.
    pub threads: Vec<mpsc::UnboundedSender<Command>>,
}

/// Connections of this thread.
#[derive(Default)]
struct Connections {
    open: Cell<usize>,
    closed: Notify,
}

/// Runs an I/O thread until it is told to drain and has.
pub(crate) fn run(start: IoStart) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(io_thread::before_park)
        .on_thread_unpark(io_thread::after_unpark)
        .build_local(tokio::runtime::LocalOptions::default())?;
    let result = runtime.block_on(serve(start));
    io_thread::unhook();
    result
}

async fn serve(start: IoStart) -> io::Result<()> {
    let io =
        IoThread::new(start.index, start.slots, start.backend, start.pressure, start.doorbell.try_clone()?)?;
    io.hook();
    let gate = Gate::new(start.pools, start.bounds);
    spawn_local(watch_running(Rc::clone(&io), Rc::clone(&gate)));
    let php = Rc::new(PhpGateway::new(Rc::clone(&io), gate, start.limits, start.spools));
    let max_header_size = start.settings.max_header_size;
    let services: Vec<_> = start
        .sites
        .into_iter()
        .map(|sites| Rc::new(Service { max_header_size, sites, php: Rc::clone(&php) }))
        .collect();
    let front = Rc::new(Front {
        services,
        settings: start.settings,
        drain: Drain::default(),
        connections: Connections::default(),
    });
    if let Some(dealer) = start.accept {
        front.accept(dealer)?;
    }
    spawn_local(obey(start.commands, Rc::clone(&io), Rc::clone(&front)));
    drained(start.stage).await;
    front.drain.begin();
    front.connections.none_left().await;
    Ok(())
}

/// What all connections of a thread share.
struct Front {
    /// By listener.
    services: Vec<Rc<Service>>,
    settings: Settings,
    drain: Drain,
    connections: Connections,
}

/// Tells the lanes which requests have started: only so a route that hangs is noticed before its requests end.
async fn watch_running(io: Rc<IoThread>, gate: Rc<Gate>) {
    loop {
        io.in_use().await;
        tokio::time::sleep(RUNNING_LOOK).await;
        let now = clock::now();
        // An engine can say anything; nothing starts later than now.
        io.running(|place, since| place.started(since.min(now)));
        gate.tick();
    }
}

async fn obey(mut commands: mpsc::UnboundedReceiver<Command>, io: Rc<IoThread>, front: Rc<Front>) {
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve(accepted) => front.serve(accepted),
            Command::Switch(next, done) => {
                io.switch(next);
                // The supervisor has gone otherwise.
                let _ = done.send(());
            }
            Command::Bury(dead) => io.bury(&dead),
            // Who asked has gone otherwise.
            Command::Describe(backend, tokens, answer) => drop(answer.send(io.describe(&backend, &tokens))),
        }
    }
}

impl Front {
    fn accept(self: &Rc<Self>, dealer: Dealer) -> io::Result<()> {
        let next = Rc::new(AtomicUsize::new(0));
        let threads = Rc::new(dealer.threads);
        let numbered = dealer.listeners.into_iter().enumerate();
        for (number, listener) in numbered.flat_map(|(n, sockets)| sockets.into_iter().map(move |s| (n, s))) {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (front, next, threads) = (Rc::clone(self), Rc::clone(&next), Rc::clone(&threads));
            spawn_local(async move {
                let local = specific_address(&listener);
                let accept = front.accept_from(&listener, |stream, remote| {
                    let thread = next.fetch_add(1, Ordering::Relaxed) % threads.len();
                    deal(&front, &threads, thread, Accepted { stream, remote, local, listener: number });
                });
                tokio::select! {
                    () = accept => {}
                    () = front.drain.begun() => {}
                }
            });
        }
        Ok(())
    }

    async fn accept_from(
        &self,
        listener: &tokio::net::TcpListener,
        deal: impl Fn(tokio::net::TcpStream, SocketAddr),
    ) {
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => deal(stream, remote),
                // The client was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve(self: &Rc<Self>, accepted: Accepted<TcpStream>) {
        let Accepted { stream, remote, local, listener } = accepted;
        match tokio::net::TcpStream::from_std(stream) {
            Ok(stream) => self.serve_async(Accepted { stream, remote, local, listener }),
            Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
        }
    }

    fn serve_async(self: &Rc<Self>, accepted: Accepted<tokio::net::TcpStream>) {
        let Accepted { stream, remote, local, listener } = accepted;
        let (remote, local) = (Some(remote), local.or_else(|| stream.local_addr().ok()));
        let ends = Rc::new(Ends { remote, local, peer: Peer::new(remote, local) });
        let service = Rc::clone(&self.services[listener]);
        let front = Rc::clone(self);
        front.connections.open.set(front.connections.open.get() + 1);
        spawn_local(async move {
            let answer = |request| service.answer(request, &ends);
            let served = regent_http::serve(stream, &front.settings, &front.drain, answer).await;
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended with an error");
            }
            front.connections.one_less();
        });
    }
}

fn deal(
    front: &Rc<Front>,
    threads: &[mpsc::UnboundedSender<Command>],
    thread: usize,
    accepted: Accepted<tokio::net::TcpStream>,
) {
    if thread == 0 {
        front.serve_async(accepted);
        return;
    }
    let Accepted { stream, remote, local, listener } = accepted;
    match stream.into_std() {
        // A thread that has ended drops the connection, as the server is about to.
        Ok(stream) => {
            drop(threads[thread].send(Command::Serve(Accepted { stream, remote, local, listener })))
        }
        Err(error) => tracing::warn!(%error, "a connection could not be dealt out"),
    }
}

/// The address of all its connections, unless it listens on all of the machine's.
fn specific_address(listener: &tokio::net::TcpListener) -> Option<SocketAddr> {
    listener.local_addr().ok().filter(|address| !address.ip().is_unspecified())
}

impl Connections {
    fn one_less(&self) {
        self.open.set(self.open.get() - 1);
        self.closed.notify_one();
    }

    async fn none_left(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }
}

/// Ends when the server drains.
async fn drained(mut stage: watch::Receiver<Stage>) {
    // The sender goes only after everything else.
    let _ = stage.wait_for(|stage| *stage == Stage::Draining).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn only_a_specific_address_is_that_of_every_connection() {
        let specific = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(specific_address(&specific), specific.local_addr().ok());
        let wildcard = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
        assert_eq!(specific_address(&wildcard), None);
    }
}
