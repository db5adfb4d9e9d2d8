//! An I/O thread's loop: connections come in, are served, and drain.

use crate::app::{App, AppStart, ThreadParts};
use crate::blocking;
use crate::datagrams::{Datagrams, Receiving};
use crate::engine_clients::ThreadClients;
use crate::front::Front;
use crate::hooks;
use crate::listener::Opened;
use crate::scrapes::Scrapes;
use regent_config::HealthCheck;
use regent_gateway::Inlined;
use regent_http::h3::Arriving;
use regent_metrics::{ConnectionMeter, HttpMeter, Recorder};
use regent_net::{Arrival, BusyPoll, Listeners};
use regent_tls::Handshakes;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_local};

/// Wait after an `accept` that failed for want of something (descriptors, memory) which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// How long a client that keeps its connection may take to its last request when another server takes this one's place. Whose
/// request is on its way while the connection is closed would lose it.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// What an I/O thread is told.
pub(crate) enum Command {
    /// A connection that another thread accepted.
    Serve(OwnedFd, Arrival),
    /// A client of HTTP/3, at the address of this number.
    ServeDatagrams(Box<Arriving>, usize, Receiving),
    /// Makes an App beside the current one.
    Prepare(Box<AppStart>, oneshot::Sender<io::Result<()>>),
    /// The App that was prepared last is current from now on.
    Change(oneshot::Sender<()>),
    /// The App that was prepared last is not wanted.
    Discard,
    /// Native handlers that run in the server come from these modules now; those before are given back.
    Inline(Arc<Inlined>, oneshot::Sender<Option<Arc<Inlined>>>),
    /// Asks PHP, as `health_uri` says.
    Probe(HealthCheck, oneshot::Sender<Result<(), String>>),
    /// Shows that the thread does its work.
    Answer(oneshot::Sender<()>),
}

/// What becomes of listening addresses while the server runs.
pub(crate) enum ListenerChange {
    /// Connections are to come from these addresses with the next [`Self::Begin`].
    Prepare(Vec<Opened>, oneshot::Sender<io::Result<()>>),
    Begin,
    /// Those that were prepared are not wanted.
    Discard,
    /// The address of this number. The sender is told when no connection comes from it any more.
    Close(usize, oneshot::Sender<()>),
    /// Gives other descriptors of all sockets, each with the number of its address.
    Lend(oneshot::Sender<io::Result<Vec<(usize, OwnedFd)>>>),
}

/// How far the server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    /// No new connections, which another server takes now. Those that are there can bring a last request for a moment.
    Leaving,
    /// No new connections; those that are there end with their running request.
    Draining,
}

/// Everything that an I/O thread starts with.
pub(crate) struct IoStart {
    pub index: usize,
    pub app: AppStart,
    pub recorder: Recorder,
    pub meter: HttpMeter,
    pub connections: ConnectionMeter,
    pub scrapes: Scrapes,
    pub busy_poll: BusyPoll,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub stage: watch::Receiver<Stage>,
    /// The first thread accepts, and deals connections out to all.
    pub accept: Option<Dealer>,
}

/// Accepts connections and deals them out in turn. (Were each I/O thread to accept from sockets of its own, a hash
/// would choose the thread, and spread few connections unevenly.)
pub(crate) struct Dealer {
    pub addresses: Vec<Opened>,
    pub changes: mpsc::UnboundedReceiver<ListenerChange>,
    /// All I/O threads, this one first.
    pub threads: Vec<mpsc::UnboundedSender<Command>>,
    /// Dropped when nothing is received by UDP any more.
    pub receiving: oneshot::Sender<Infallible>,
}

/// Runs an I/O thread until it is told to drain and has.
pub(crate) fn run(start: IoStart) -> io::Result<()> {
    let runtime = blocking::runtime()
        .on_thread_park(hooks::before_park)
        .on_thread_unpark(hooks::after_unpark)
        .build_local(tokio::runtime::LocalOptions::default())?;
    let result = runtime.block_on(serve(start));
    hooks::unhook();
    // What still waits for a disk, it does for nobody.
    runtime.shutdown_background();
    result
}

async fn serve(start: IoStart) -> io::Result<()> {
    spawn_local(blocking::keep_one_thread());
    let clients = Rc::<ThreadClients>::default();
    let parts = ThreadParts {
        clients: Rc::clone(&clients),
        recorder: Rc::new(start.recorder),
        meter: Rc::new(start.meter),
        scrapes: start.scrapes,
        handshakes: Handshakes::default(),
    };
    let app = App::build(start.app, &parts, None)?;
    let front = Rc::new(Front::new(app, start.busy_poll, start.connections));
    let (sockets, busy_poll) = (Rc::clone(&front.sockets), Rc::clone(&front.busy_poll));
    hooks::hook(Rc::clone(&clients), Rc::clone(&sockets), Rc::clone(&busy_poll));
    spawn_local(async move { busy_poll.keep(&clients, &sockets).await });
    let mut stage = start.stage;
    let accepting = start.accept.map(|dealer| front.accept(dealer, stage.clone())).transpose()?;
    spawn_local(obey(start.commands, Rc::clone(&front), parts));
    if left(&mut stage).await == Stage::Leaving {
        front.leave();
        let _ = tokio::time::timeout(LAST_REQUEST, front.none_left()).await;
    }
    front.drain();
    front.none_left().await;
    if let Some(accepting) = accepting {
        // This thread receives for those of HTTP/3 on all threads. An error: it has panicked.
        let _ = accepting.await;
    }
    Ok(())
}

async fn obey(mut commands: mpsc::UnboundedReceiver<Command>, front: Rc<Front>, parts: ThreadParts) {
    let mut prepared = None;
    while let Some(command) = commands.recv().await {
        // Who asked may have gone, and then the answer is for nobody.
        match command {
            Command::Serve(socket, arrival) => front.serve(socket, arrival),
            Command::ServeDatagrams(arriving, number, receiving) => {
                front.serve_datagrams(arriving, number, receiving);
            }
            Command::Prepare(start, done) => {
                let built = App::build(*start, &parts, Some(&front.app()));
                let _ = done.send(built.map(|app| prepared = Some(app)));
            }
            Command::Change(done) => {
                prepared.take().into_iter().for_each(|app| front.change_to(app));
                let _ = done.send(());
            }
            Command::Discard => prepared = None,
            Command::Inline(inlined, old) => drop(old.send(front.app().replace_inlined(inlined))),
            Command::Probe(check, done) => {
                let app = front.app();
                spawn_local(async move { drop(done.send(app.probe(&check).await)) });
            }
            Command::Answer(done) => drop(done.send(())),
        }
    }
}

impl Front {
    /// Accepts until the server drains. The task ends when no connection needs it any more.
    fn accept(
        self: &Rc<Self>,
        dealer: Dealer,
        mut stage: watch::Receiver<Stage>,
    ) -> io::Result<JoinHandle<()>> {
        let deal = Rc::new(Deal { front: Rc::clone(self), threads: dealer.threads, next: Cell::new(0) });
        let datagrams = Datagrams::new(Rc::clone(&self.meter));
        let mut doors = Doors { listeners: Listeners::new()?, datagrams, deal };
        doors.prepare(dealer.addresses)?;
        doors.begin();
        Ok(spawn_local(async move {
            tokio::select! {
                () = doors.deal_out(dealer.changes) => {}
                _ = left(&mut stage) => {}
            }
            let Doors { listeners, datagrams, .. } = doors;
            drop(listeners);
            datagrams.none_left().await;
            drop(dealer.receiving);
        }))
    }
}

/// Where connections come from.
struct Doors {
    listeners: Listeners,
    datagrams: Datagrams,
    deal: Rc<Deal>,
}

impl Doors {
    /// Those that are being served go first, between two rounds of the listening sockets: of thousands that are read
    /// before one is answered, nothing is left in the caches when it is.
    async fn deal_out(&mut self, mut changes: mpsc::UnboundedReceiver<ListenerChange>) {
        loop {
            let accepted = tokio::select! {
                biased;
                Some(change) = changes.recv() => {
                    self.apply(change);
                    continue;
                }
                accepted = self.listeners.next() => accepted,
            };
            match accepted {
                Ok((socket, arrival)) => self.deal.out(socket, arrival),
                // The client was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// All or none.
    fn prepare(&mut self, addresses: Vec<Opened>) -> io::Result<()> {
        let prepared = addresses.into_iter().try_for_each(|opened| match opened {
            Opened::Stream(number, sockets) => self.listeners.prepare(number, sockets),
            Opened::Udp(number, socket) => self.datagrams.prepare(number, socket),
        });
        prepared.inspect_err(|_| self.discard())
    }

    fn begin(&mut self) {
        self.listeners.begin();
        let deal = Rc::clone(&self.deal);
        self.datagrams
            .begin(move |arriving, number, receiving| deal.out_datagrams(arriving, number, receiving));
    }

    fn discard(&mut self) {
        self.listeners.discard();
        self.datagrams.discard();
    }

    fn apply(&mut self, change: ListenerChange) {
        match change {
            ListenerChange::Prepare(addresses, done) => {
                // Who asked has given up otherwise.
                if done.send(self.prepare(addresses)).is_err() {
                    self.discard();
                }
            }
            ListenerChange::Begin => self.begin(),
            ListenerChange::Discard => self.discard(),
            ListenerChange::Close(number, done) => {
                self.listeners.close(number);
                self.datagrams.close(number);
                // Who asked has gone otherwise.
                let _ = done.send(());
            }
            ListenerChange::Lend(done) => {
                let lent = self.listeners.lend().and_then(|mut lent| {
                    lent.extend(self.datagrams.lend()?);
                    Ok(lent)
                });
                let _ = done.send(lent);
            }
        }
    }
}

/// Deals connections out to all I/O threads.
struct Deal {
    /// Of this thread.
    front: Rc<Front>,
    /// This one first.
    threads: Vec<mpsc::UnboundedSender<Command>>,
    /// The thread whose turn it is.
    next: Cell<usize>,
}

impl Deal {
    fn out(&self, socket: OwnedFd, arrival: Arrival) {
        match self.turn() {
            0 => self.front.serve(socket, arrival),
            // A thread that has ended drops the connection, as the server is about to.
            thread => drop(self.threads[thread].send(Command::Serve(socket, arrival))),
        }
    }

    fn out_datagrams(&self, arriving: Box<Arriving>, number: usize, receiving: Receiving) {
        match self.turn() {
            0 => self.front.serve_datagrams(arriving, number, receiving),
            // As above.
            thread => {
                let command = Command::ServeDatagrams(arriving, number, receiving);
                drop(self.threads[thread].send(command));
            }
        }
    }

    fn turn(&self) -> usize {
        self.next.replace((self.next.get() + 1) % self.threads.len())
    }
}

/// Ends when the server takes no more connections, and says why.
async fn left(stage: &mut watch::Receiver<Stage>) -> Stage {
    // The sender goes only after everything else.
    stage.wait_for(|stage| *stage != Stage::Running).await.map_or(Stage::Draining, |stage| *stage)
}
