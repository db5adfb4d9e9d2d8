//! Keeps an engine running: starts it, notices its death at once, replaces it, hands its queue to the next one, and gives
//! its pools as many threads as they need ([`autoscaler`]).

mod autoscaler;
mod blame;
mod commands;
mod confinement;
mod deaths;
mod generation;
mod generations;
mod hung;
mod last_requests;
mod overdue;
mod php;
mod process_ends;
mod process_handle;
mod profiles;
mod replacement;
mod reports;
mod resets;
mod shutdown;
mod slow_log;
mod stacks;
mod stuck;
mod trials;

use crate::engine_client::EngineClients;
use crate::error::EngineError;
use crate::setup::{Setup, StartUntil, Users};
use autoscaler::Autoscaler;
use commands::Command;
use generation::{Generation, Launch};
use generations::{Generations, Role};
use hung::HangWatch;
use process_handle::{EVENTS, EngineEvent, EventKind};
use profiles::Profiles;
use regent_wire::EngineMemory;
use regent_wire::control::{Event, ScriptEnd, Started};
use replacement::{BOOT_DEADLINE, NO_BOOT, Restarts};
use reports::{describe, log_event, report_start};
use resets::Resets;
use stacks::Traces;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use autoscaler::ScaleEvent;
pub use commands::{CommandRefused, PoolView, SupervisorHandle, ThreadListing, View};
pub use generation::GenerationView;
pub use php::Php;
pub use profiles::ProfileWish;

/// Why an engine does not start.
const NO_FIRST_BOOT: &str = "a worker script does not boot: see the log";

/// Between two looks at pools whose size nothing changes.
const UNSCALED: Duration = Duration::from_secs(5);

/// The supervisor's own handle: to stop it.
pub struct Supervisor {
    stop: mpsc::Sender<StopRequest>,
    commands: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
    clients: EngineClients,
    users: Users,
}

/// Ends the engines: drained until then, killed after.
struct StopRequest {
    deadline: Instant,
}

impl Supervisor {
    /// Starts the first process on `backend`, and returns when it has come so far.
    pub(crate) async fn start(
        setup: Setup,
        backend: Arc<EngineMemory>,
        users: Users,
        until: StartUntil,
    ) -> Result<Self, EngineError> {
        slow_log::check(setup.plan.slow_log.as_deref())?;
        let (kind, clients) = (setup.plan.kind, setup.clients.clone());
        let (events, mut inbox) = mpsc::channel(EVENTS);
        let mut state = State::new(setup, events, backend);
        let id = state.generations.current.id;
        let mut looks = hung::looks();
        loop {
            let event = tokio::select! {
                event = inbox.recv() => event.expect("invariant: the state holds a sender"),
                _ = looks.tick() => {
                    state.look_for_trouble();
                    continue;
                }
            };
            match event.kind {
                EventKind::Message(Event::Started(started)) if event.id == id => {
                    state.note_start(id, event.process, &started);
                    if until == StartUntil::Running {
                        break;
                    }
                    state.generations.current.remind_after(BOOT_DEADLINE);
                }
                EventKind::Message(Event::Ready) if !state.note_ready(id, event.process) => {}
                EventKind::Message(Event::Ready) | EventKind::Late => break,
                EventKind::Message(Event::Failed { message: reason }) => {
                    return Err(EngineError::Start { kind, reason });
                }
                EventKind::Message(message) => {
                    let is_failed = matches!(
                        message,
                        Event::WorkerFailed { .. } | Event::WorkerEnded { end: ScriptEnd::Crash, .. }
                    );
                    state.on_message(event.id, event.process, message);
                    if is_failed && until == StartUntil::Ready {
                        return Err(EngineError::Start { kind, reason: NO_FIRST_BOOT.to_owned() });
                    }
                }
                EventKind::Spawned(pid) => state.note_pid(id, event.process, pid),
                EventKind::Offended | EventKind::Unneeded | EventKind::Undrained => {}
                EventKind::NotStarted(cause) => {
                    return Err(EngineError::Program { kind, program: state.setup.program.file, cause });
                }
                EventKind::Ended(status) => {
                    return Err(EngineError::Start { kind, reason: describe(status) });
                }
            }
        }
        let (stop, stops) = mpsc::channel(1);
        let (commands, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(state.run(inbox, received, stops));
        Ok(Self { stop, commands, task, clients, users })
    }

    /// For what others ask of it while it runs.
    pub fn handle(&self) -> SupervisorHandle {
        SupervisorHandle::new(self.commands.clone())
    }

    /// Ends the engines; those that have not drained by the deadline are killed.
    pub async fn stop(self, deadline: Instant) {
        // It has ended otherwise.
        let _ = self.stop.send(StopRequest { deadline }).await;
        let _ = self.task.await;
    }

    /// Ends an engine in whose place another has come: when all of its requests have ended, or at the deadline, at which what
    /// still runs is lost.
    pub async fn retire(mut self, deadline: Instant) {
        // Nothing is ever sent: it ends with the last user.
        let _ = tokio::time::timeout_at(deadline.into(), self.users.recv()).await;
        let clients = self.clients.clone();
        self.stop(deadline).await;
        clients.lose();
    }
}

struct State {
    setup: Setup,
    events: mpsc::Sender<EngineEvent>,
    autoscaler: Autoscaler,
    next_id: u64,
    generations: Generations,
    /// The generation in which a worker is tried that has killed others.
    trial: Option<u64>,
    restarts: Restarts,
    resets: Resets,
    traces: Traces,
    profiles: Profiles,
    /// Engines in a row that did not live long.
    failures: u32,
    /// That of the engine that started last. `None`: none has, or it is no PHP.
    php: Option<Php>,
}

impl State {
    /// Begins to start the first generation.
    fn new(setup: Setup, events: mpsc::Sender<EngineEvent>, backend: Arc<EngineMemory>) -> Self {
        let autoscaler = Autoscaler::new(&setup.plan.pools, Arc::clone(&setup.pools), setup.plan.max_idle);
        let sizes = autoscaler.sizes(None);
        let launch =
            Launch { id: 0, backend, sizes, reason: "the server's start".to_owned(), wait: Duration::ZERO };
        Self {
            generations: Generations::new(Generation::launch(&setup, launch, events.clone())),
            setup,
            events,
            autoscaler,
            next_id: 1,
            trial: None,
            restarts: Restarts::default(),
            resets: Resets::default(),
            traces: Traces::default(),
            profiles: Profiles::default(),
            failures: 0,
            php: None,
        }
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<EngineEvent>,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut stops: mpsc::Receiver<StopRequest>,
    ) {
        let queue_signal = Arc::clone(&self.setup.queue_signal);
        let mut next_tick = self.tick();
        let mut looks = hung::looks();
        loop {
            tokio::select! {
                biased;
                stop = stops.recv() => {
                    let deadline = stop.map_or_else(Instant::now, |stop| stop.deadline);
                    let kind = self.setup.plan.kind;
                    return shutdown::drain_all(kind, self.generations.into_all(), deadline, inbox).await;
                }
                // Before what engines say, of which there may be much.
                _ = looks.tick() => self.look_for_trouble(),
                event = inbox.recv() => {
                    let event = event.expect("invariant: the state holds a sender");
                    self.on_event(event).await;
                }
                Some(command) = commands.recv() => {
                    self.apply(command);
                    next_tick = self.tick();
                }
                () = queue_signal.called(), if self.autoscaler.is_possible() => next_tick = self.tick(),
                () = tokio::time::sleep_until(next_tick.into()), if self.autoscaler.is_possible() => {
                    next_tick = self.tick();
                }
            }
        }
    }

    /// An engine that hangs or has damaged its memory is killed, and replaced as any that dies.
    fn look_for_trouble(&mut self) {
        let engine = self.setup.plan.kind;
        for generation in self.generations.iter_mut() {
            generation.end_if_spent();
            generation.backend.inspect();
            // A crash may leave damage, and the core dump tells why.
            if let Some(damage) = generation.backend.damage().filter(|_| !hung::dumps_core(generation)) {
                generation.condemn(engine, &format!("it has damaged the shared memory: {damage}"));
                continue;
            }
            for process in 0..generation.processes.len() as u16 {
                if let Some(symptom) = HangWatch::look(generation, process) {
                    let reason = format!("it hangs: {symptom}");
                    generation.processes[usize::from(process)].condemn(engine, &reason);
                }
            }
        }
        if self.autoscaler.fill_up(&mut self.generations.current) > 0 {
            self.note_given_up();
        }
        self.excuse_standstill();
        self.look_at_resets();
        self.look_at_trials();
    }

    /// That an engine takes no requests while it stands still is no reason to turn away those that come.
    fn excuse_standstill(&self) {
        let mut processes = self.generations.current.processes.iter();
        if processes.all(|process| process.hang_watch.is_suspicious()) {
            self.setup.pools.iter().for_each(|pool| pool.admission.forget());
        }
    }

    /// Scales the pools; returns when to look again, if nobody calls before.
    fn tick(&mut self) -> Instant {
        Instant::now() + self.scale()
    }

    fn scale(&mut self) -> Duration {
        let (queue_signal, autoscaler) = (&self.setup.queue_signal, &mut self.autoscaler);
        let current = &mut self.generations.current;
        if !autoscaler.is_possible() {
            return UNSCALED;
        }
        if let Some(soon) = autoscaler.tick(current) {
            queue_signal.watch();
            return soon;
        }
        queue_signal.idle();
        // What came before the mark has called nobody.
        match autoscaler.tick(current) {
            Some(soon) => soon,
            None => autoscaler.idle(),
        }
    }

    async fn on_event(&mut self, event: EngineEvent) {
        let EngineEvent { id, process, kind } = event;
        let role = self.generations.role(id);
        match kind {
            EventKind::Spawned(pid) => self.note_pid(id, process, pid),
            EventKind::Message(Event::Started(started)) => self.note_start(id, process, &started),
            EventKind::Message(Event::Ready) => {
                if self.note_ready(id, process) && role == Role::Replacement {
                    self.take_over().await;
                }
            }
            EventKind::Late if role == Role::Replacement => self.take_over().await,
            EventKind::Late => {}
            EventKind::Undrained => {
                self.generations.get_mut(id).into_iter().for_each(Generation::cut_off);
            }
            EventKind::Offended => {
                let generation = self.generations.get_mut(id);
                generation.into_iter().for_each(|of| of.processes[usize::from(process)].note_condemned());
            }
            EventKind::Message(message) => self.on_message(id, process, message),
            EventKind::NotStarted(error) => {
                tracing::error!(%error, program = %self.setup.program.file.display(), "an engine could not be started");
                self.on_process_end(id, process, None).await;
            }
            EventKind::Ended(status) => self.on_process_end(id, process, Some(status)).await,
            EventKind::Unneeded => self.on_process_end(id, process, None).await,
        }
    }

    fn on_message(&mut self, id: u64, process: u16, message: Event) {
        let role = self.generations.role(id);
        match message {
            Event::RestartWanted { reason, script } => self.reset_wanted(role, &reason, script.as_deref()),
            Event::ThreadEnded { index, error } => self.thread_ended(id, index, error),
            Event::Died { index, how, signal } => self.process_died(id, index, &how, signal),
            Event::Confined(confined) => self.confined(id, confined),
            Event::WorkerEnded { worker, end } => self.worker_ended(&worker, end),
            Event::Overdue(request) => self.overdue(id, &request),
            Event::Straggles { index, started_ns } => {
                self.stand_in(id, index, Duration::from_nanos(started_ns));
            }
            Event::Slow(request) => self.slow(id, &request),
            Event::Traced { index, stack } => self.traced(id, index, &stack),
            Event::Profiled(part) => self.profiled(id, process, part),
            Event::ProfileRefused { number, reason } => self.profile_refused(id, number, &reason),
            message => {
                log_event(self.setup.plan.kind, &message);
                if role == Role::Replacement {
                    match message {
                        Event::WorkerFailed { .. } => self.give_up_replacement(NO_BOOT),
                        Event::Failed { message } => self.give_up_replacement(&message),
                        _ => {}
                    }
                }
            }
        }
    }

    fn worker_ended(&self, worker: &str, end: ScriptEnd) {
        let Some(pool) = self.setup.plan.pools.iter().position(|plan| plan.name == worker) else { return };
        let (id, registry) = (self.setup.pools.get(pool).id, &self.setup.pools.registry);
        match end {
            ScriptEnd::Orderly => registry.worker_restarted(id),
            ScriptEnd::Crash => registry.worker_crashed(id),
        }
    }

    fn thread_ended(&mut self, id: u64, index: u16, error: Option<String>) {
        if let Some(error) = &error {
            tracing::error!(engine = %self.setup.plan.kind, error, "a thread could not be started");
        }
        let role = self.generations.role(id);
        let Some(generation) = self.generations.get_mut(id) else { return };
        if role == Role::Draining {
            generation.threads.ended(index, generation.backend.region());
            return;
        }
        let (autoscaler, plans, kind) = (&mut self.autoscaler, &self.setup.plan.pools, self.setup.plan.kind);
        if error.is_some() {
            if let Some(pool) = generation.threads.not_started(index) {
                generation.region().reuse(usize::from(index));
                autoscaler.pause(usize::from(pool));
            }
            self.note_sizes();
            return;
        }
        let deserted = generation.threads.ended(index, generation.backend.region());
        if role == Role::Current {
            autoscaler.forget_ended(generation);
        }
        // Only workers' threads give up, and say so: see `Event::WorkerFailed`.
        if deserted.is_some_and(|pool| plans[usize::from(pool)].worker.is_none()) {
            let process = generation.threads.process(index);
            generation.processes[process].condemn(kind, "one of its threads has ended that was not told to");
        }
        self.note_given_up();
    }

    /// Pools whose size the policy does not change change it by hand, and when threads fail.
    fn note_sizes(&self) {
        self.autoscaler.note_fixed_sizes(&self.generations.current);
    }

    /// A worker whose threads have all failed too often answers nothing until the next generation, or until threads are
    /// added by hand. Those that wait for it are told.
    fn note_given_up(&self) {
        self.note_sizes();
        let mut is_news = false;
        let plans = self.setup.plan.pools.iter();
        for (index, (pool, plan)) in self.setup.pools.iter().zip(plans).enumerate() {
            let threads = &self.generations.current.threads;
            let (size, failed) = (threads.size(index as u16), threads.failed(index as u16));
            let given_up = plan.worker.is_some() && size == 0 && failed > 0;
            is_news |= pool.set_given_up(given_up) && given_up;
        }
        if is_news {
            self.setup.clients.look_at_pools();
        }
    }

    fn note_pid(&mut self, id: u64, process: u16, pid: u32) {
        if let Some(generation) = self.generations.get_mut(id) {
            generation.processes[usize::from(process)].pid = Some(pid);
        }
    }

    /// Whether all processes of the generation are ready by that.
    fn note_ready(&mut self, id: u64, process: u16) -> bool {
        self.generations.get_mut(id).is_some_and(|generation| {
            generation.processes[usize::from(process)].is_ready = true;
            generation.is_ready()
        })
    }

    /// PHP runs, or modules are loaded, and threads are only about to be made.
    fn note_start(&mut self, id: u64, process: u16, started: &Started) {
        report_start(self.setup.plan.kind, started);
        self.judge_php(started);
        if let Some(generation) = self.generations.get_mut(id) {
            let process = &mut generation.processes[usize::from(process)];
            process.has_started = true;
            process.bare_memory = process.pid.and_then(crate::machine::resident);
        }
    }
}
