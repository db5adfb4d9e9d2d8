//! One generation: an engine process with its memory and its threads.

use super::hung::HangWatch;
use crate::kind::EngineKind;
use crate::process::{EngineProcess, Occurrence};
use crate::roster::Roster;
use regent_wire::control::{Event, Order, Start, ThreadStart};
use regent_wire::{Backend, Region};
use rustix::fd::OwnedFd;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Notes that wait for the supervisor at most. Engines that say more wait themselves.
pub(super) const NOTES: usize = 64;

/// What the supervisor hears of an engine.
pub(super) struct Note {
    pub id: u64,
    pub what: What,
}

pub(super) enum What {
    NotStarted(io::Error),
    /// The process exists, with this id.
    Spawned(u32),
    Event(Event),
    Ended(ExitStatus),
    /// It has not drained, or not started, in the time that it had.
    Late,
}

/// A running engine, or one that is about to start. Dropped, it is killed.
pub(super) struct Generation {
    pub id: u64,
    pub backend: Arc<Backend>,
    pub roster: Roster,
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
    orders: mpsc::UnboundedSender<Order>,
    /// Kills the process for a reason; its end is then noted as any other.
    kill: mpsc::UnboundedSender<Cow<'static, str>>,
    notes: mpsc::Sender<Note>,
}

/// What a generation is made of.
pub(super) struct Blueprint {
    pub id: u64,
    pub program: PathBuf,
    pub backend: Arc<Backend>,
    pub doorbells: Vec<Arc<OwnedFd>>,
    pub start: Start,
    /// With the threads of `start`.
    pub roster: Roster,
    pub reason: String,
    pub notes: mpsc::Sender<Note>,
}

impl Generation {
    /// Starts the engine after `wait`.
    pub fn launch(blueprint: Blueprint, wait: Duration) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let (kill, killed) = mpsc::unbounded_channel();
        let watch = Watch {
            id: blueprint.id,
            program: blueprint.program,
            backend: Arc::clone(&blueprint.backend),
            doorbells: blueprint.doorbells,
            start: blueprint.start,
            orders: received,
            notes: blueprint.notes.clone(),
        };
        Self {
            id: blueprint.id,
            backend: blueprint.backend,
            roster: blueprint.roster,
            since: Instant::now() + wait,
            started_at: SystemTime::now(),
            reason: blueprint.reason,
            pid: None,
            bare_memory: None,
            hang_watch: HangWatch::default(),
            is_condemned: false,
            watcher: tokio::spawn(watch.run(wait, killed)),
            orders,
            kill,
            notes: blueprint.notes,
        }
    }

    /// For lists; counted from 1.
    pub fn describe(&self, engine: regent_admin::Engine) -> regent_admin::Generation {
        regent_admin::Generation {
            engine,
            number: self.id + 1,
            started_at: self.started_at,
            reason: self.reason.clone(),
        }
    }

    pub fn region(&self) -> &Region {
        self.backend.region()
    }

    /// Has these threads started.
    pub fn start_threads(&self, threads: Vec<ThreadStart>) {
        // The engine is gone otherwise, and its end is about to be noted.
        let _ = self.orders.send(Order::Start { threads });
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

    /// Kills the process after so long, unless it has ended by itself.
    pub fn kill_after(&self, deadline: Duration) {
        let kill = self.kill.clone();
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            let _ = kill.send("it had not drained by the deadline".into());
        });
    }

    /// Notes [`What::Late`] after so long.
    pub fn remind_after(&self, deadline: Duration) {
        let (id, notes) = (self.id, self.notes.clone());
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            // The supervisor has stopped otherwise.
            let _ = notes.send(Note { id, what: What::Late }).await;
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
    backend: Arc<Backend>,
    doorbells: Vec<Arc<OwnedFd>>,
    start: Start,
    orders: mpsc::UnboundedReceiver<Order>,
    notes: mpsc::Sender<Note>,
}

impl Watch {
    async fn run(mut self, wait: Duration, mut killed: mpsc::UnboundedReceiver<Cow<'static, str>>) {
        tokio::time::sleep(wait).await;
        let spawned = EngineProcess::spawn(&self.program, &self.backend, &self.doorbells, &self.start);
        let mut process = match spawned {
            Ok(process) => process,
            Err(error) => return self.note(What::NotStarted(error)).await,
        };
        let pid = process.pid();
        tracing::debug!(pid, "an engine was started");
        self.note(What::Spawned(pid)).await;
        let mut is_killed = false;
        let mut kill = |process: &mut EngineProcess, reason: &str| {
            if !std::mem::replace(&mut is_killed, true) {
                tracing::warn!(pid, reason, "an engine is killed");
            }
            process.kill();
        };
        loop {
            let occurrence = tokio::select! {
                biased;
                Some(reason) = killed.recv() => {
                    kill(&mut process, &reason);
                    continue;
                }
                Some(order) = self.orders.recv() => {
                    process.order(&order);
                    continue;
                }
                occurrence = process.next() => occurrence,
            };
            match occurrence {
                Ok(Occurrence::Event(event)) => self.note(What::Event(event)).await,
                Ok(Occurrence::Offence(reason)) => kill(&mut process, &reason),
                Ok(Occurrence::Ended(status)) => return self.note(What::Ended(status)).await,
                Err(error) => {
                    process.kill();
                    return self.note(What::NotStarted(error)).await;
                }
            }
        }
    }

    /// The supervisor has stopped otherwise; the drop of the process ends it.
    async fn note(&self, what: What) {
        let _ = self.notes.send(Note { id: self.id, what }).await;
    }
}
