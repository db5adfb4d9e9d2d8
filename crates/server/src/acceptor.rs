//! An I/O thread's loop: connections come in, are served, and drain.

use crate::front::{Door, Front};
use crate::hooks;
use crate::listener::Listener;
use crate::service::Service;
use crate::vigil::Vigil;
use regent_engines::{AdmissionBounds, AdmissionControl, ClientStart, EngineClient};
use regent_gateway::{BodyLimits, Gateway, Inlined, NativeGateway, Spools};
use regent_http::Settings;
use regent_net::{Arrival, Listeners};
use regent_tls::{Acceptor, Handshakes};
use regent_wire::clock;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;

/// Wait after an `accept` that failed for want of something (descriptors, memory) which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Between two looks at which requests are running.
const RUNNING_LOOK: Duration = Duration::from_millis(20);
/// Between two looks for damage that engines have done to their requests, in looks at what is running: 260 ms.
const INSPECTION: u32 = 13;

/// What an I/O thread is told.
pub(crate) enum Command {
    /// A connection that another thread accepted.
    Serve(OwnedFd, Arrival),
    /// Native handlers that run in the server come from these modules now; those before are given back.
    Inline(Arc<Inlined>, oneshot::Sender<Arc<Inlined>>),
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
    pub php: ClientStart,
    /// `None`: there are no native services.
    pub native: Option<NativeAccess>,
    pub listeners: Vec<Listener>,
    pub settings: Settings,
    pub limits: BodyLimits,
    pub bounds: AdmissionBounds,
    pub spools: Arc<Spools>,
    pub vigil: Vigil,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub stage: watch::Receiver<Stage>,
    /// The first thread accepts, and deals connections out to all.
    pub accept: Option<Dealer>,
}

/// What the way to native services takes.
pub(crate) struct NativeAccess {
    pub engine: ClientStart,
    /// Names of the services, by their ids.
    pub services: Vec<String>,
    pub inlined: Arc<Inlined>,
}

/// Accepts connections and deals them out in turn. (Were each I/O thread to accept from sockets of its own, a hash
/// would choose the thread, and spread few connections unevenly.)
pub(crate) struct Dealer {
    /// By listening address: the non-blocking sockets that share it.
    pub listeners: Vec<Vec<OwnedFd>>,
    /// All I/O threads, this one first.
    pub threads: Vec<mpsc::UnboundedSender<Command>>,
}

/// Runs an I/O thread until it is told to drain and has.
pub(crate) fn run(start: IoStart) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(hooks::before_park)
        .on_thread_unpark(hooks::after_unpark)
        .build_local(tokio::runtime::LocalOptions::default())?;
    let result = runtime.block_on(serve(start));
    hooks::unhook();
    result
}

async fn serve(start: IoStart) -> io::Result<()> {
    let gateway = |client: ClientStart| open(client, start.bounds, start.limits, &start.spools);
    let php = Rc::new(gateway(start.php)?);
    let native = match start.native {
        Some(NativeAccess { engine, services, inlined }) => {
            Some(Rc::new(NativeGateway::new(gateway(engine)?, services, inlined)))
        }
        None => None,
    };
    let max_header_size = start.settings.max_header_size;
    let handshakes = Handshakes::default();
    let door = |listener: Listener| {
        Rc::new(Door {
            service: Rc::new(Service {
                max_header_size,
                sites: listener.sites,
                sni_host: listener.sni_host,
                tls: listener.tls.clone(),
                php: Rc::clone(&php),
                native: native.clone(),
            }),
            tls: listener.tls.map(|sites| Acceptor::new(sites, handshakes.clone())),
            protocols: listener.protocols,
        })
    };
    let doors = start.listeners.into_iter().map(door).collect();
    let front = Rc::new(Front::new(doors, start.settings, start.vigil));
    let links: Vec<Rc<EngineClient>> =
        std::iter::once(php.link()).chain(native.as_deref().map(NativeGateway::link)).cloned().collect();
    let (sockets, vigil) = (Rc::clone(&front.sockets), Rc::clone(&front.vigil));
    hooks::hook(links.clone(), Rc::clone(&sockets), Rc::clone(&vigil));
    spawn_local(async move { vigil.keep(&links, &sockets).await });
    if let Some(dealer) = start.accept {
        front.accept(dealer)?;
    }
    spawn_local(obey(start.commands, Rc::clone(&front), native));
    drained(start.stage).await;
    front.drain.begin();
    front.none_left().await;
    Ok(())
}

/// Opens the way to the engines of one kind.
fn open(
    client: ClientStart,
    bounds: AdmissionBounds,
    limits: BodyLimits,
    spools: &Arc<Spools>,
) -> io::Result<Gateway> {
    let gate = AdmissionControl::new(Arc::clone(&client.pools), bounds);
    let link = EngineClient::open(client, hooks::drain_links)?;
    spawn_local(watch_running(Rc::clone(&link), Rc::clone(&gate)));
    Ok(Gateway::new(link, gate, limits, Arc::clone(spools)))
}

/// Tells the lanes which requests have started: only so a route that hangs is noticed before its requests end.
/// Now and then it looks at all requests that engines have.
async fn watch_running(link: Rc<EngineClient>, gate: Rc<AdmissionControl>) {
    for look in (0..INSPECTION).cycle() {
        link.used().await;
        tokio::time::sleep(RUNNING_LOOK).await;
        let now = clock::now();
        // An engine can say anything; nothing starts later than now.
        link.running(|place, since| place.started(since.min(now)));
        gate.max_wait_time().into_iter().for_each(|most| link.wake_late(now, most));
        gate.tick();
        if look + 1 == INSPECTION {
            link.inspect();
        }
    }
}

async fn obey(
    mut commands: mpsc::UnboundedReceiver<Command>,
    front: Rc<Front>,
    native: Option<Rc<NativeGateway>>,
) {
    while let Some(command) = commands.recv().await {
        match (command, &native) {
            (Command::Serve(socket, arrival), _) => front.serve(socket, arrival),
            (Command::Inline(inlined, old), Some(native)) => {
                // Who asked has gone otherwise.
                let _ = old.send(native.replace_inlined(inlined));
            }
            // Nobody reloads what there is not.
            (Command::Inline(..), None) => {}
        }
    }
}

impl Front {
    /// Accepts until the server drains.
    fn accept(self: &Rc<Self>, dealer: Dealer) -> io::Result<()> {
        let mut listeners = Listeners::new(dealer.listeners)?;
        let deal = Deal { threads: dealer.threads, next: Cell::new(0) };
        let front = Rc::clone(self);
        spawn_local(async move {
            tokio::select! {
                () = front.deal_out(&mut listeners, &deal) => {}
                () = front.drain.begun() => {}
            }
        });
        Ok(())
    }

    /// Those that are being served go first, between two rounds of the listening sockets: of thousands that are read
    /// before one is answered, nothing is left in the caches when it is.
    async fn deal_out(self: &Rc<Self>, listeners: &mut Listeners, deal: &Deal) {
        loop {
            match listeners.next().await {
                Ok((socket, arrival)) => deal.out(self, socket, arrival),
                // The client was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Deals connections out to all I/O threads.
struct Deal {
    /// This one first.
    threads: Vec<mpsc::UnboundedSender<Command>>,
    /// The thread whose turn it is.
    next: Cell<usize>,
}

impl Deal {
    fn out(&self, front: &Rc<Front>, socket: OwnedFd, arrival: Arrival) {
        let thread = self.next.replace((self.next.get() + 1) % self.threads.len());
        match thread {
            0 => front.serve(socket, arrival),
            // A thread that has ended drops the connection, as the server is about to.
            _ => drop(self.threads[thread].send(Command::Serve(socket, arrival))),
        }
    }
}

/// Ends when the server drains.
async fn drained(mut stage: watch::Receiver<Stage>) {
    // The sender goes only after everything else.
    let _ = stage.wait_for(|stage| *stage == Stage::Draining).await;
}
