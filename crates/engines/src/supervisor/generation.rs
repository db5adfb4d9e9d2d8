//! One generation: an engine process with its memory and its threads.

use super::hung::HangWatch;
use crate::kind::EngineKind;
use crate::process::{EngineProcess, ProcessEvent};
use crate::setup::{Answer, Setup, Sinks};
use crate::thread_table::ThreadTable;
use regent_config::EngineUser;
use regent_wire::control::{Event, Order, ProfileOrder, Start, ThreadStart};
use regent_wire::{EngineMemory, Region, clock};
use rustix::fd::OwnedFd;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Events that wait for the supervisor at most. Engines that say more wait themselves.
pub(super) const EVENTS: usize = 64;

/// How long a replaced engine may take for what it has begun.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// The same where threads do not come back, and the others are to end what they do: longer than most requests take.
const PATIENT_DRAIN_DEADLINE: Duration = Duration::from_secs(600);

/// What the supervisor hears of an engine.
pub(super) struct EngineEvent {
    pub id: u64,
    pub kind: EventKind,
}

pub(super) enum EventKind {
    NotStarted(io::Error),
    /// The process exists, with this id.
    Spawned(u32),
    /// What the engine has said.
    Message(Event),
    /// It is being killed for what it has done.
    Offended,
    Ended(ExitStatus),
    /// It has not drained, or not started, in the time that it had.
    Late,
}

/// A running engine, or one that is about to start. Dropped, it is killed.
pub(super) struct Generation {
    pub id: u64,
    pub backend: Arc<EngineMemory>,
    pub threads: ThreadTable,
    pub since: Instant,
    started_at: SystemTime,
    /// Why it was started.
    reason: String,
    pub pid: Option<u32>,
    /// Bytes that the process had before its threads.
    pub bare_memory: Option<u64>,
    pub hang_watch: HangWatch,
    /// It was found to be unfit, and is being killed.
    is_condemned: bool,
    /// Owns the process: aborted, it kills it.
    pub watcher: JoinHandle<()>,
    pub orders: mpsc::UnboundedSender<Order>,
    /// By thread: processes in a row that have died before their first request.
    pub early_deaths: HashMap<u16, u32>,
    /// Kills the process for a reason; its end is then noted as any other.
    kill: mpsc::UnboundedSender<Cow<'static, str>>,
    events: mpsc::Sender<EngineEvent>,
}

/// What one generation has that others have not.
pub(super) struct Launch {
    pub id: u64,
    pub backend: Arc<EngineMemory>,
    /// Threads of each pool.
    pub sizes: Vec<u16>,
    pub reason: String,
    /// Until its process is started.
    pub wait: Duration,
}

/// A generation, for lists.
#[derive(Debug, Clone)]
pub struct GenerationView {
    /// Counts from 1.
    pub number: u64,
    pub started_at: SystemTime,
    /// Why it was started.
    pub reason: String,
}

impl Generation {
    pub fn launch(setup: &Setup, launch: Launch, events: mpsc::Sender<EngineEvent>) -> Self {
        let Launch { id, backend, sizes, reason, wait } = launch;
        let mut threads = ThreadTable::new(setup.plan.most_threads, setup.plan.geometry.threads as usize);
        let mut start = setup.plan.start.clone();
        for (pool, size) in sizes.into_iter().enumerate() {
            start.threads.extend(threads.order(pool as u16, size, clock::now()));
        }
        setup.pools.registry.generation_started();
        let (orders, received) = mpsc::unbounded_channel();
        let (kill, killed) = mpsc::unbounded_channel();
        let watch = Watch {
            id,
            program: setup.program.clone(),
            user: setup.plan.user.clone(),
            sinks: setup.sinks.clone(),
            backend: Arc::clone(&backend),
            doorbells: setup.doorbells.clone(),
            start,
            orders: received,
            events: events.clone(),
        };
        Self {
            id,
            backend,
            threads,
            since: Instant::now() + wait,
            started_at: SystemTime::now(),
            reason,
            pid: None,
            bare_memory: None,
            hang_watch: HangWatch::default(),
            is_condemned: false,
            watcher: tokio::spawn(watch.run(wait, killed)),
            orders,
            early_deaths: HashMap::new(),
            kill,
            events,
        }
    }

    pub fn view(&self) -> GenerationView {
        GenerationView { number: self.id + 1, started_at: self.started_at, reason: self.reason.clone() }
    }

    pub fn region(&self) -> &Region {
        self.backend.region()
    }

    /// Has these threads started.
    pub fn start_threads(&self, threads: Vec<ThreadStart>) {
        // The engine is gone otherwise, and its end is about to be noted.
        let _ = self.orders.send(Order::Start { threads });
    }

    /// Asks what a thread is at; an event says so.
    pub fn trace(&self, index: u16) {
        // As above.
        let _ = self.orders.send(Order::Trace { index });
    }

    /// Orders a profile; events bring it.
    pub fn profile(&self, order: ProfileOrder) {
        // As above.
        let _ = self.orders.send(Order::Profile(order));
    }

    /// Asks for a sign of life, which comes in the shared memory.
    pub fn beat(&self, number: u64) {
        // As above.
        let _ = self.orders.send(Order::Beat { number });
    }

    /// Kills the process.
    pub fn kill(&self, reason: impl Into<Cow<'static, str>>) {
        // It has ended otherwise.
        let _ = self.kill.send(reason.into());
    }

    /// Kills the process because it cannot be trusted with requests any longer.
    pub fn condemn(&mut self, engine: EngineKind, reason: &str) {
        if !std::mem::replace(&mut self.is_condemned, true) {
            tracing::error!(%engine, reason, "the engine is unfit and is replaced");
            self.kill(reason.to_owned());
        }
    }

    /// It was found to be unfit, and is being killed already.
    pub fn note_condemned(&mut self) {
        self.is_condemned = true;
    }

    /// Whether it was found to be unfit.
    pub fn is_condemned(&self) -> bool {
        self.is_condemned
    }

    /// Takes no more requests than it has, and ends; it is killed if that takes too long.
    pub fn drain(&self) {
        self.region().drain();
        let deadline = if self.threads.written_off() > 0 { PATIENT_DRAIN_DEADLINE } else { DRAIN_DEADLINE };
        let kill = self.kill.clone();
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            // It has ended otherwise.
            let _ = kill.send("it had not drained by the deadline".into());
        });
    }

    /// Whether it drains, and has no threads left but some that do not come back.
    pub fn is_spent(&self) -> bool {
        self.region().is_draining() && self.threads.are_all_written_off()
    }

    /// Kills the process if nothing is left that could end.
    pub fn end_if_spent(&mut self) {
        if self.is_spent() && !std::mem::replace(&mut self.is_condemned, true) {
            self.kill("all that is left of it are threads that do not come back");
        }
    }

    /// Notes [`EventKind::Late`] after so long.
    pub fn remind_after(&self, deadline: Duration) {
        let (id, events) = (self.id, self.events.clone());
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            // The supervisor has stopped otherwise.
            let _ = events.send(EngineEvent { id, kind: EventKind::Late }).await;
        });
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Starts an engine, passes on orders to it and what it says until it ends.
struct Watch {
    id: u64,
    program: PathBuf,
    user: Option<EngineUser>,
    sinks: Sinks,
    backend: Arc<EngineMemory>,
    doorbells: Vec<Arc<OwnedFd>>,
    start: Start,
    orders: mpsc::UnboundedReceiver<Order>,
    events: mpsc::Sender<EngineEvent>,
}

impl Watch {
    async fn run(mut self, wait: Duration, mut killed: mpsc::UnboundedReceiver<Cow<'static, str>>) {
        tokio::time::sleep(wait).await;
        let spawned = EngineProcess::spawn(
            &self.program,
            self.user.as_ref(),
            &self.backend,
            &self.doorbells,
            &self.start,
        );
        let mut process = match spawned {
            Ok(process) => process,
            Err(error) => return self.tell(EventKind::NotStarted(error)).await,
        };
        let pid = process.pid();
        tracing::debug!(pid, "an engine was started");
        self.tell(EventKind::Spawned(pid)).await;
        let mut is_killed = false;
        let mut kill = |process: &mut EngineProcess, reason: &str| {
            if !std::mem::replace(&mut is_killed, true) {
                tracing::warn!(pid, reason, "an engine is killed");
            }
            process.kill();
        };
        loop {
            let event = tokio::select! {
                biased;
                Some(reason) = killed.recv() => {
                    kill(&mut process, &reason);
                    continue;
                }
                Some(order) = self.orders.recv() => {
                    process.order(&order);
                    continue;
                }
                event = process.next() => event,
            };
            match event {
                // The supervisor has better to do.
                Ok(ProcessEvent::Message(Event::Update(update))) => (self.sinks.updates.0)(*update),
                Ok(ProcessEvent::Message(Event::Purge(purge))) => {
                    let answer = Answer::new(&self.backend, purge.index, purge.number);
                    (self.sinks.purges.0)(*purge, answer);
                }
                Ok(ProcessEvent::Message(message)) => self.tell(EventKind::Message(message)).await,
                Ok(ProcessEvent::Offence(reason)) => {
                    kill(&mut process, &reason);
                    self.tell(EventKind::Offended).await;
                }
                Ok(ProcessEvent::Ended(status)) => return self.tell(EventKind::Ended(status)).await,
                Err(error) => {
                    process.kill();
                    return self.tell(EventKind::NotStarted(error)).await;
                }
            }
        }
    }

    /// The supervisor has stopped otherwise; the drop of the process ends it.
    async fn tell(&self, kind: EventKind) {
        let _ = self.events.send(EngineEvent { id: self.id, kind }).await;
    }
}
