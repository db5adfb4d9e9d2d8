//! One I/O thread's client of an engine: its slots in the shared memory, and how responses find the tasks that wait for
//! them.

mod clients;
mod deaths;
mod overdue;
mod submitted;
mod waiting;
mod watch;

use crate::admission::Held;
use crate::kind::EngineKind;
use crate::pools::Pools;
use crate::queue_signal::QueueSignal;
use crate::rules::AdmissionBounds;
use overdue::OverdueRequests;
use regent_dispatch::lanes::Place;
use regent_dispatch::routes::Route;
use regent_wire::{EngineMemory, HeadBuilder, Repeats, RequestLine, SlotTable, SubmitError, Token};
use rustix::fd::OwnedFd;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{spawn_local, yield_now};
use waiting::Waiting;

pub use clients::EngineClients;
pub use submitted::Submitted;
pub use watch::ClientWatch;

/// Longest wait for an engine in the place of one that has damaged its memory.
const REPAIR_DEADLINE: Duration = Duration::from_secs(2);

/// What the client of one I/O thread starts with.
pub struct ClientStart {
    pub(crate) kind: EngineKind,
    /// The I/O thread's number.
    pub(crate) index: usize,
    pub(crate) slots: usize,
    pub(crate) memory: Arc<EngineMemory>,
    pub pools: Arc<Pools>,
    pub(crate) queue_signal: Arc<QueueSignal>,
    /// A non-blocking eventfd. Engines of another kind have another one, which these cannot spoil.
    pub(crate) doorbell: Arc<OwnedFd>,
    pub(crate) commands: mpsc::UnboundedReceiver<ClientCommand>,
    /// What holds for every request to the engine.
    pub bounds: AdmissionBounds,
    /// Held as long as there is the client.
    pub(crate) user: mpsc::Sender<Infallible>,
}

/// What a client is told by the supervisor of its engine.
pub(crate) enum ClientCommand {
    /// New requests go to this engine; the sender is told when it is so.
    Switch(Arc<EngineMemory>, oneshot::Sender<()>),
    /// This engine is dead; another one is current. What of its requests may be run again is.
    ForgetDead(Arc<EngineMemory>, Repeats),
    /// The engine has ended, and no other takes its place: what it has not answered is lost.
    Lose,
    /// A pool has been given up: who waits looks whether it waits for that.
    Look,
    /// The thread of this request does not come back: nobody waits for its place any longer.
    WriteOff(Arc<EngineMemory>, Token),
    /// This thread of the engine was a process, which has died; the sender is told when its requests are lost.
    Bury(Arc<EngineMemory>, u16, Repeats, oneshot::Sender<()>),
    /// What are these requests of the engine? Those of other I/O threads are passed over.
    Describe(Arc<EngineMemory>, Arc<[Token]>, oneshot::Sender<Vec<(Token, Running)>>),
}

/// A request that a thread runs.
#[derive(Debug, Clone)]
pub struct Running {
    pub line: RequestLine,
    pub route: Option<Arc<Route>>,
    /// Whether an engine has died before that ran it.
    pub is_repeated: bool,
}

/// Everything of one I/O thread that touches the processes of one engine. Used on that thread alone. It lives as long as there
/// are requests to the engine, or a way for new ones.
pub struct EngineClient {
    kind: EngineKind,
    port: RefCell<SlotTable<Held>>,
    /// By slot: who waits for news of it.
    wakers: RefCell<Vec<Option<Waker>>>,
    /// Engines that may still answer; the last is the one that new requests go to.
    backends: RefCell<Vec<Arc<EngineMemory>>>,
    head: RefCell<HeadBuilder>,
    waiting: RefCell<Waiting>,
    overdue: OverdueRequests,
    /// Whether engines have been told that this thread sleeps.
    parked: Cell<bool>,
    queue_signal: Arc<QueueSignal>,
    /// Told when the first request is submitted.
    submitted: Rc<Notify>,
    /// Told when new requests go to another engine.
    switched: Notify,
    /// How often they have gone to another engine, which has loaded its code later.
    switches: Cell<u64>,
    /// Ends the thread's sleeps; what it rings about is drained after each of them. Nobody awaits or reads it: it is
    /// registered edge-triggered, and every write to an eventfd is an edge, read or not.
    doorbell: Receiver,
    /// Called after each request that was queued.
    drain_all: fn(),
    /// Whether the engine has ended for good.
    is_ended: Cell<bool>,
    _user: mpsc::Sender<Infallible>,
}

/// Why a request could not be given to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("all request slots are in use")]
    NoSlot,
    #[error("the engine has been replaced, and had to end before this request")]
    Ended,
}

impl EngineClient {
    /// Must be called within the thread's local runtime, whose hooks have to call [`park`](Self::park) and
    /// [`unpark`](Self::unpark). `drain_all` has to [drain](Self::drain) all clients of the thread; it is called after each
    /// request that was queued.
    pub fn open(start: ClientStart, drain_all: fn()) -> io::Result<Rc<Self>> {
        let client = Rc::new(Self {
            kind: start.kind,
            port: RefCell::new(SlotTable::new(start.index, start.slots)),
            wakers: RefCell::new(vec![None; start.slots]),
            backends: RefCell::new(vec![start.memory]),
            head: RefCell::new(HeadBuilder::new()),
            waiting: RefCell::default(),
            overdue: OverdueRequests::default(),
            parked: Cell::new(false),
            queue_signal: start.queue_signal,
            submitted: Rc::default(),
            switched: Notify::new(),
            switches: Cell::new(0),
            // An eventfd is ready as a pipe is: not at all until it was written to.
            doorbell: Receiver::from_owned_fd_unchecked(start.doorbell.try_clone()?)?,
            drain_all,
            is_ended: Cell::new(false),
            _user: start.user,
        });
        spawn_local(Self::follow(Rc::downgrade(&client), start.commands));
        Ok(client)
    }

    /// How often new requests have gone to another engine.
    pub fn switches(&self) -> u64 {
        self.switches.get()
    }

    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// To look at it without keeping it.
    pub fn watch(self: &Rc<Self>) -> ClientWatch {
        ClientWatch::new(Rc::downgrade(self), Rc::clone(&self.submitted))
    }

    /// Does not keep the client: that is for requests to do.
    async fn follow(client: Weak<Self>, mut commands: mpsc::UnboundedReceiver<ClientCommand>) {
        while let Some(command) = commands.recv().await {
            let Some(client) = client.upgrade() else { return };
            let is_look = matches!(command, ClientCommand::Look);
            client.apply(command);
            drop(client);
            if is_look {
                // The tasks that were woken run first: the next command may move what they wait for to an engine that starts
                // it at once.
                yield_now().await;
            }
        }
    }

    /// Carries out what the supervisor wants. Who asked may have gone, and then the answer is for nobody.
    fn apply(&self, command: ClientCommand) {
        match command {
            ClientCommand::Switch(next, done) => {
                self.switch(next);
                let _ = done.send(());
            }
            ClientCommand::ForgetDead(dead, repeats) => self.forget_dead(&dead, repeats),
            ClientCommand::Lose => self.lose(),
            ClientCommand::Look => {
                self.wakers.borrow_mut().iter_mut().filter_map(Option::take).for_each(Waker::wake)
            }
            ClientCommand::WriteOff(backend, token) => self.write_off(&backend, token),
            ClientCommand::Bury(backend, thread, repeats, done) => {
                self.bury(&backend, thread, repeats);
                let _ = done.send(());
            }
            ClientCommand::Describe(backend, tokens, answer) => {
                drop(answer.send(self.describe(&backend, &tokens)))
            }
        }
    }

    /// Whether the current engine has damaged its memory, and is being killed.
    pub fn is_damaged(&self) -> bool {
        self.backends.borrow().last().is_some_and(|backend| backend.damage().is_some())
    }

    /// Waits while it [is damaged](Self::is_damaged): a request that went into that memory now would be lost with it. The
    /// next engine's is there as soon as the damaged one is dead; one that cannot be killed is waited for so long only.
    pub async fn repaired(&self) {
        let repaired = async {
            while self.is_damaged() && !self.is_ended.get() {
                self.switched.notified().await;
            }
        };
        let _ = tokio::time::timeout(REPAIR_DEADLINE, repaired).await;
    }

    /// Takes a slot of the current engine for a request, whose head `build` writes.
    pub fn acquire(
        self: &Rc<Self>,
        body_length: Option<u64>,
        build: impl FnOnce(&mut HeadBuilder),
    ) -> Result<Submitted, Refused> {
        if self.is_ended.get() {
            return Err(Refused::Ended);
        }
        let backend = self.current();
        let mut head = self.head.borrow_mut();
        head.reset();
        build(&mut head);
        let token =
            self.port.borrow_mut().acquire(&backend, head.build(body_length))?.ok_or(Refused::NoSlot)?;
        Ok(Submitted { client: Rc::clone(self), token: Some(token), is_watched: Cell::new(false) })
    }

    /// Requests that engines have or have to let go of yet.
    pub fn in_use(&self) -> usize {
        self.port.borrow().in_use()
    }

    /// Requests that wait in a pool.
    pub fn waiting(&self, pool: usize) -> u64 {
        self.current().waiting(pool)
    }

    /// Requests that the threads of a pool have taken so far, and threads that are idle.
    pub fn progress(&self, pool: usize) -> (u64, usize) {
        let backend = self.current();
        let region = backend.region();
        (region.taken(pool), region.idle(pool))
    }

    /// Wakes the tasks of requests that have waited for a thread for `most`.
    pub fn wake_late(&self, now: Duration, most: Duration) {
        let (current, port) = (self.current(), self.port.borrow());
        let mut wakers = self.wakers.borrow_mut();
        // An engine that has started nothing yet boots.
        let boots = |pool| current.region().taken(pool) == 0;
        let wake = |token: Token| {
            if let Some(waker) = wakers[token.slot as usize].take() {
                waker.wake();
            }
        };
        self.waiting.borrow_mut().look(now, most, boots, |token| port.still_waits(token), wake);
    }

    /// Calls `visit` for each request that a thread is running, and since when it does.
    pub fn running(&self, mut visit: impl FnMut(&Place, Duration)) {
        for backend in self.backends.borrow().iter() {
            self.port.borrow().running(backend, |held, since| visit(&held.place, since));
        }
    }

    /// What these requests ask for, as far as they are this thread's.
    fn describe(&self, backend: &Arc<EngineMemory>, tokens: &[Token]) -> Vec<(Token, Running)> {
        let is_known = self.backends.borrow().iter().any(|known| Arc::ptr_eq(known, backend));
        let port = self.port.borrow();
        let running = |token: &Token| {
            let route = port.guard_of(*token).map(|held| Arc::clone(held.place.route()));
            let (line, is_repeated) = (port.request_line(*token)?, port.runs_again(*token));
            Some((*token, Running { line, route, is_repeated }))
        };
        tokens.iter().filter(|_| is_known).filter_map(running).collect()
    }

    fn write_off(&self, backend: &Arc<EngineMemory>, token: Token) {
        if self.backends.borrow().iter().any(|known| Arc::ptr_eq(known, backend)) {
            self.port.borrow_mut().write_off(token);
        }
    }

    /// Bytes of a request body that a slot holds.
    pub fn request_capacity(&self) -> usize {
        self.current().region().geometry().request_capacity as usize
    }

    /// Looks for damage at the requests that engines have, and for news that was not announced.
    pub fn inspect(&self) {
        let mut wakers = self.wakers.borrow_mut();
        self.port.borrow_mut().inspect(&self.backends.borrow(), |token| {
            if let Some(waker) = wakers[token.slot as usize].take() {
                waker.wake();
            }
        });
    }

    /// Wakes the tasks whose slots have news. `true` if there were any.
    pub fn drain(&self) -> bool {
        if self.in_use() == 0 {
            return false;
        }
        let mut any = false;
        let mut wakers = self.wakers.borrow_mut();
        for backend in self.backends.borrow().iter() {
            self.port.borrow_mut().drain(backend, |token| {
                any = true;
                if let Some(waker) = wakers[token.slot as usize].take() {
                    waker.wake();
                }
            });
        }
        any
    }

    /// From now on new requests go to `next`; those of the engines before it are still answered by them.
    fn switch(&self, next: Arc<EngineMemory>) {
        // Honest rings need centuries to fill the counter. An engine that filled it must not silence the next one.
        let _ = self.doorbell.try_read(&mut [0; 8]);
        self.backends.borrow_mut().push(next);
        self.switches.set(self.switches.get() + 1);
        self.switched.notify_waiters();
    }

    /// A request has to wait for its lane: more threads may help it.
    pub fn note_held_back(&self) {
        self.queue_signal.note(|| true);
    }

    /// Whether a request waits in the pool and no thread is about to take it.
    fn is_waiting(&self, pool: usize) -> bool {
        let current = self.current();
        current.waiting(pool) > 0 && current.region().idle(pool) == 0
    }

    fn current(&self) -> Arc<EngineMemory> {
        let backends = self.backends.borrow();
        Arc::clone(backends.last().expect("invariant: there is always a current engine"))
    }

    /// Before the thread sleeps: engines ring from now on. Tasks that have news meanwhile keep it awake.
    pub fn park(&self) {
        if self.in_use() == 0 {
            return;
        }
        self.parked.set(true);
        for backend in self.backends.borrow().iter() {
            self.port.borrow().park(backend);
        }
        if self.drain() {
            self.unpark();
        }
    }

    /// After the thread has slept.
    pub fn unpark(&self) {
        if self.parked.take() {
            for backend in self.backends.borrow().iter() {
                self.port.borrow().unpark(backend);
            }
        }
        self.drain();
    }
}

impl EngineClient {
    fn forget(&self, token: Token) {
        self.waiting.borrow_mut().forget(token);
        self.overdue.forget(token);
        self.wakers.borrow_mut()[token.slot as usize] = None;
    }
}

impl Drop for EngineClient {
    /// Who watches it looks again, and finds it gone.
    fn drop(&mut self) {
        self.submitted.notify_one();
    }
}
