//! One process of a generation: started, told what to do, watched, and ended.

use super::hung::HangWatch;
use crate::kind::EngineKind;
use crate::process::{EngineProcess, ProcessEvent};
use crate::program::Program;
use crate::setup::{Answer, Setup, Sinks};
use regent_config::EngineUser;
use regent_wire::EngineMemory;
use regent_wire::control::{Event, Order, Start, ThreadStart};
use rustix::fd::OwnedFd;
use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Events that wait for the supervisor at most. Engines that say more wait themselves.
pub(super) const EVENTS: usize = 64;

/// What the supervisor hears of a process of an engine.
pub(super) struct EngineEvent {
    /// The generation.
    pub id: u64,
    /// The process within it.
    pub process: u16,
    pub kind: EventKind,
}

pub(super) enum EventKind {
    NotStarted(io::Error),
    /// The process exists, with this id.
    Spawned(u32),
    /// What it has said.
    Message(Event),
    /// It is being killed for what it has done.
    Offended,
    Ended(ExitStatus),
    /// It was not started, since its generation drains by now.
    Unneeded,
    /// The generation has not started in the time that it had.
    Late,
    /// It has not drained in the time that it had.
    Undrained,
}

/// A process of an engine that runs, or is about to start. Dropped, it is killed.
pub(super) struct ProcessHandle {
    pub pid: Option<u32>,
    /// PHP runs, or the modules are loaded.
    pub has_started: bool,
    /// Bytes that the process had before its threads.
    pub bare_memory: Option<u64>,
    pub hang_watch: HangWatch,
    /// When it was to be started.
    pub since: Instant,
    /// Those in its place before it that did not live long, in a row.
    pub failures: u32,
    /// All threads that it began with have asked for a request.
    pub is_ready: bool,
    /// Why it is being killed.
    sentence: Option<Sentence>,
    has_ended: bool,
    number: u16,
    /// Owns the process: aborted, it kills it.
    pub watcher: JoinHandle<()>,
    orders: mpsc::UnboundedSender<Order>,
    /// Kills the process for a reason; its end is then noted as any other.
    kill: mpsc::UnboundedSender<Cow<'static, str>>,
}

/// Why the server kills a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sentence {
    /// It cannot be trusted with requests any longer.
    Unfit,
    /// It had not ended what it had begun when its deadline was over.
    Undrained,
}

/// Ends when nobody uses the numbers of a dead process's threads any more.
pub(super) type Burial = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What one process has that others have not.
pub(super) struct ProcessLaunch {
    /// The generation.
    pub id: u64,
    pub number: u16,
    pub backend: Arc<EngineMemory>,
    /// Its threads at the beginning.
    pub threads: Vec<ThreadStart>,
    /// What has to be over before it starts: nobody uses the numbers of these threads any more.
    pub buried: Option<Burial>,
    /// Until it is started, after that.
    pub wait: Duration,
    pub failures: u32,
}

impl ProcessHandle {
    pub fn launch(setup: &Setup, launch: ProcessLaunch, events: mpsc::Sender<EngineEvent>) -> Self {
        let ProcessLaunch { id, number, backend, threads, buried, wait, failures } = launch;
        let (orders, received) = mpsc::unbounded_channel();
        let (kill, killed) = mpsc::unbounded_channel();
        let watch = Watch {
            id,
            number,
            program: setup.program.clone(),
            user: setup.plan.user.clone(),
            sinks: setup.sinks.clone(),
            backend,
            doorbells: setup.doorbells.clone(),
            start: Start { process: number, threads, ..setup.plan.start.clone() },
            orders: received,
            events,
        };
        Self {
            pid: None,
            has_started: false,
            bare_memory: None,
            hang_watch: HangWatch::default(),
            since: Instant::now() + wait,
            failures,
            is_ready: false,
            sentence: None,
            has_ended: false,
            number,
            watcher: tokio::spawn(watch.run(buried, wait, killed)),
            orders,
            kill,
        }
    }

    /// Tells it what to do.
    pub fn order(&self, order: Order) {
        // It is gone otherwise, and its end is about to be noted.
        let _ = self.orders.send(order);
    }

    /// Orders it later.
    pub fn orders(&self) -> mpsc::UnboundedSender<Order> {
        self.orders.clone()
    }

    pub fn kill(&self, reason: impl Into<Cow<'static, str>>) {
        // It has ended otherwise.
        let _ = self.kill.send(reason.into());
    }

    /// Kills it because it cannot be trusted with requests any longer.
    pub fn condemn(&mut self, engine: EngineKind, reason: &str) {
        if self.sentence.replace(Sentence::Unfit) != Some(Sentence::Unfit) {
            tracing::error!(%engine, process = self.number, reason, "the engine is unfit and is replaced");
            self.kill(reason.to_owned());
        }
    }

    /// Kills it because it has not drained by its deadline.
    pub fn cut_off(&mut self) {
        self.sentence.get_or_insert(Sentence::Undrained);
        self.kill("it had not drained by the deadline");
    }

    /// It was found to be unfit, and is being killed already.
    pub fn note_condemned(&mut self) {
        self.sentence = Some(Sentence::Unfit);
    }

    /// Why the server is killing it, if it is.
    pub fn sentence(&self) -> Option<Sentence> {
        self.sentence
    }

    /// It has ended, or was never started.
    pub fn note_ended(&mut self) {
        self.has_ended = true;
        self.pid = None;
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Starts a process of an engine, passes on orders to it and what it says until it ends.
struct Watch {
    id: u64,
    number: u16,
    program: Program,
    user: Option<EngineUser>,
    sinks: Sinks,
    backend: Arc<EngineMemory>,
    doorbells: Vec<Arc<OwnedFd>>,
    start: Start,
    orders: mpsc::UnboundedReceiver<Order>,
    events: mpsc::Sender<EngineEvent>,
}

impl Watch {
    async fn run(
        mut self,
        buried: Option<Burial>,
        wait: Duration,
        mut killed: mpsc::UnboundedReceiver<Cow<'static, str>>,
    ) {
        if let Some(buried) = buried {
            buried.await;
        }
        tokio::time::sleep(wait).await;
        if self.backend.region().is_draining() {
            return self.tell(EventKind::Unneeded).await;
        }
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
        let _ = self.events.send(EngineEvent { id: self.id, process: self.number, kind }).await;
    }
}
