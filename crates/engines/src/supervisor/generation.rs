//! One generation: the processes of an engine with their memory and their threads.

use super::process_handle::{EngineEvent, EventKind, ProcessHandle, ProcessLaunch};
use crate::kind::EngineKind;
use crate::setup::Setup;
use crate::thread_table::{ThreadEntry, ThreadTable};
use regent_wire::confine::Confined;
use regent_wire::control::{Order, ProfileOrder, ThreadStart};
use regent_wire::{EngineMemory, Region, clock};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// How long a replaced engine may take for what it has begun.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// The same where threads do not come back, and the others are to end what they do: longer than most requests take.
const PATIENT_DRAIN_DEADLINE: Duration = Duration::from_secs(600);

/// A running engine, or one that is about to start. Dropped, it is killed.
pub(super) struct Generation {
    pub id: u64,
    pub backend: Arc<EngineMemory>,
    pub threads: ThreadTable,
    pub since: Instant,
    started_at: SystemTime,
    /// Why it was started.
    reason: String,
    /// By number: what takes the place of one that has died has its number. At least one.
    pub processes: Vec<ProcessHandle>,
    /// What its processes have given up, as the first of them has said.
    pub confined: Option<Confined>,
    /// All of it is unfit, and is being killed.
    is_condemned: bool,
    /// By thread: processes of it alone, in a row, that have died before their first request.
    pub early_deaths: HashMap<u16, u32>,
    events: mpsc::Sender<EngineEvent>,
}

/// What one generation has that others have not.
pub(super) struct Launch {
    pub id: u64,
    pub backend: Arc<EngineMemory>,
    /// Threads of each pool.
    pub sizes: Vec<u16>,
    pub reason: String,
    /// Until its processes are started.
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
    /// What it has given up; `None`: it has not said so.
    pub confined: Option<Confined>,
}

impl Generation {
    pub fn launch(setup: &Setup, launch: Launch, events: mpsc::Sender<EngineEvent>) -> Self {
        let Launch { id, backend, sizes, reason, wait } = launch;
        let plan = &setup.plan;
        let mut threads =
            ThreadTable::new(plan.most_threads, plan.geometry.threads as usize, plan.processes.into());
        let mut starts = vec![Vec::new(); plan.processes.into()];
        for (pool, size) in sizes.into_iter().enumerate() {
            for thread in threads.order(pool as u16, size, clock::now()) {
                starts[threads.process(thread.index)].push(thread);
            }
        }
        setup.pools.registry.generation_started();
        let processes = starts.into_iter().enumerate().map(|(number, threads)| {
            let (number, backend) = (number as u16, Arc::clone(&backend));
            let launch = ProcessLaunch { id, number, backend, threads, buried: None, wait, failures: 0 };
            ProcessHandle::launch(setup, launch, events.clone())
        });
        Self {
            id,
            processes: processes.collect(),
            backend,
            threads,
            since: Instant::now() + wait,
            started_at: SystemTime::now(),
            reason,
            confined: None,
            is_condemned: false,
            early_deaths: HashMap::new(),
            events,
        }
    }

    pub fn view(&self) -> GenerationView {
        GenerationView {
            number: self.id + 1,
            started_at: self.started_at,
            reason: self.reason.clone(),
            confined: self.confined.clone(),
        }
    }

    pub fn region(&self) -> &Region {
        self.backend.region()
    }

    /// The process of a thread.
    pub fn process_of(&self, index: u16) -> &ProcessHandle {
        &self.processes[self.threads.process(index)]
    }

    /// The threads of a process, with their pools.
    pub fn threads_of(&self, process: u16) -> impl Iterator<Item = (u16, ThreadEntry)> {
        let pools = 0..self.region().geometry().pools as u16;
        let entries = pools.flat_map(move |pool| self.threads.entries(pool).map(move |entry| (pool, entry)));
        entries.filter(move |(_, entry)| self.threads.process(entry.index) == usize::from(process))
    }

    /// Has these threads started.
    pub fn start_threads(&self, threads: Vec<ThreadStart>) {
        for (number, process) in self.processes.iter().enumerate() {
            let own = threads.iter().filter(|thread| self.threads.process(thread.index) == number);
            let own: Vec<ThreadStart> = own.copied().collect();
            if !own.is_empty() {
                process.order(Order::Start { threads: own });
            }
        }
    }

    /// Asks what a thread is at; an event says so.
    pub fn trace(&self, index: u16) {
        self.process_of(index).order(Order::Trace { index });
    }

    /// Orders a profile of all that have not ended; events bring it. Returns of which processes.
    pub fn profile(&self, order: &ProfileOrder) -> Vec<u16> {
        let running = self.processes.iter().enumerate().filter(|(_, process)| !process.has_ended());
        running
            .map(|(number, process)| {
                process.order(Order::Profile(order.clone()));
                number as u16
            })
            .collect()
    }

    /// Kills all of it because it cannot be trusted with requests any longer.
    pub fn condemn(&mut self, engine: EngineKind, reason: &str) {
        self.is_condemned = true;
        self.processes.iter_mut().for_each(|process| process.condemn(engine, reason));
    }

    /// Whether all of it was found to be unfit.
    pub fn is_condemned(&self) -> bool {
        self.is_condemned
    }

    /// Whether all threads that it began with have asked for a request.
    pub fn is_ready(&self) -> bool {
        self.processes.iter().all(|process| process.is_ready)
    }

    /// Whether PHP runs in all of its processes, or the modules are loaded.
    pub fn has_started(&self) -> bool {
        self.processes.iter().all(|process| process.has_started)
    }

    /// Whether it has a process that has not ended.
    pub fn is_alive(&self) -> bool {
        self.processes.iter().any(|process| !process.has_ended())
    }

    /// Another process takes the place of one that has ended.
    pub fn relaunch(&mut self, setup: &Setup, launch: ProcessLaunch) {
        let number = usize::from(launch.number);
        self.region().reuse_process(number);
        self.processes[number] = ProcessHandle::launch(setup, launch, self.events.clone());
    }

    /// Takes no more requests than it has, and ends; it is killed if that takes too long.
    pub fn drain(&self) {
        self.region().drain();
        let deadline = if self.threads.replaced() > 0 { PATIENT_DRAIN_DEADLINE } else { DRAIN_DEADLINE };
        self.note_after(deadline, EventKind::Undrained);
    }

    /// It has not drained by its deadline: what it still runs is lost.
    pub fn cut_off(&mut self) {
        self.processes.iter_mut().for_each(ProcessHandle::cut_off);
    }

    /// Whether it drains, and has no threads left but some that do not come back.
    pub fn is_spent(&self) -> bool {
        self.region().is_draining() && self.threads.are_all_written_off()
    }

    /// Kills the processes if nothing is left that could end.
    pub fn end_if_spent(&mut self) {
        if self.is_spent() && !std::mem::replace(&mut self.is_condemned, true) {
            for process in &mut self.processes {
                process.note_condemned();
                process.kill("all that is left of it are threads that do not come back");
            }
        }
    }

    /// Notes [`EventKind::Late`] after so long.
    pub fn remind_after(&self, deadline: Duration) {
        self.note_after(deadline, EventKind::Late);
    }

    fn note_after(&self, deadline: Duration, kind: EventKind) {
        let (id, events) = (self.id, self.events.clone());
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            // The supervisor has stopped otherwise.
            let _ = events.send(EngineEvent { id, process: 0, kind }).await;
        });
    }
}
