//! Connections come in, and are dealt out to the I/O threads.

use crate::addresses::Opened;
use crate::binding::Service;
use crate::datagrams::Datagrams;
use crate::dealt::Dealt;
use crate::front::Front;
use regent_net::Listeners;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_local};

/// Wait after an `accept` that failed for want of something (descriptors, memory) which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What becomes of listening addresses while the server runs.
pub enum ListenerChange {
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
pub enum Stage {
    Running,
    /// No new connections, which another server takes now. Those that are there can bring a last request for a moment.
    Leaving,
    /// No new connections; those that are there end with their running request.
    Draining,
}

/// Accepts connections and deals them out in turn. (Were each I/O thread to accept from sockets of its own, a hash
/// would choose the thread, and spread few connections unevenly.)
pub struct Dealer<C> {
    pub addresses: Vec<Opened>,
    pub changes: mpsc::UnboundedReceiver<ListenerChange>,
    /// All I/O threads, this one first, as they are told of a connection.
    pub threads: Vec<mpsc::UnboundedSender<C>>,
    /// Dropped when nothing is received by UDP any more.
    pub receiving: oneshot::Sender<Infallible>,
}

impl<S: Service> Front<S> {
    /// Accepts until the server drains. The task ends when no connection needs it any more.
    pub fn accept<C: From<Dealt> + 'static>(
        self: &Rc<Self>,
        dealer: Dealer<C>,
        mut stage: watch::Receiver<Stage>,
    ) -> io::Result<JoinHandle<()>> {
        let deal = Rc::new(Deal { front: Rc::clone(self), threads: dealer.threads, next: Cell::new(0) });
        let datagrams = Datagrams::new(Rc::clone(&self.meter));
        let mut entries = Entries { listeners: Listeners::new()?, datagrams, deal };
        entries.prepare(dealer.addresses)?;
        entries.begin();
        Ok(spawn_local(async move {
            let stage = tokio::select! {
                () = entries.deal_out(dealer.changes) => Stage::Draining,
                stage = Stage::left(&mut stage) => stage,
            };
            let Entries { listeners, datagrams, deal } = entries;
            // Another server takes those that wait, which has the same sockets.
            if stage != Stage::Leaving {
                listeners.take_waiting(None, |socket, arrival| deal.out(Dealt::Stream(socket, arrival)));
            }
            drop(listeners);
            deal.end();
            datagrams.none_left().await;
            drop(dealer.receiving);
        }))
    }
}

/// Where connections come from.
struct Entries<S, C> {
    listeners: Listeners,
    datagrams: Datagrams,
    deal: Rc<Deal<S, C>>,
}

impl<S: Service, C: From<Dealt> + 'static> Entries<S, C> {
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
                Ok((socket, arrival)) => self.deal.out(Dealt::Stream(socket, arrival)),
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
        self.datagrams.begin(move |arriving, number, receiving| {
            deal.out(Dealt::Datagrams(arriving, number, receiving));
        });
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
                let deal = &self.deal;
                self.listeners
                    .take_waiting(Some(number), |socket, arrival| deal.out(Dealt::Stream(socket, arrival)));
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
struct Deal<S, C> {
    /// Of this thread.
    front: Rc<Front<S>>,
    /// This one first.
    threads: Vec<mpsc::UnboundedSender<C>>,
    /// The thread whose turn it is.
    next: Cell<usize>,
}

impl<S: Service, C: From<Dealt>> Deal<S, C> {
    fn out(&self, dealt: Dealt) {
        match self.turn() {
            0 => self.front.take(dealt),
            // A thread that has ended drops the connection, as the server is about to.
            thread => drop(self.threads[thread].send(dealt.into())),
        }
    }

    /// No connection follows, on any thread.
    fn end(&self) {
        self.front.take(Dealt::Nothing);
        for thread in &self.threads[1..] {
            // It has ended.
            let _ = thread.send(Dealt::Nothing.into());
        }
    }

    fn turn(&self) -> usize {
        self.next.replace((self.next.get() + 1) % self.threads.len())
    }
}

impl Stage {
    /// Ends when the server takes no more connections, and says why.
    pub async fn left(stage: &mut watch::Receiver<Self>) -> Self {
        // The sender goes only after everything else.
        stage.wait_for(|stage| *stage != Self::Running).await.map_or(Self::Draining, |stage| *stage)
    }
}
