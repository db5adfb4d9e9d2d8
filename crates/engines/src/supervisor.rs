//! Keeps an engine running: starts it, notices its death at once, replaces it, hands its queue to the next one, and gives
//! its pools as many threads as they need ([`autoscaler`]).

mod autoscaler;
mod commands;
mod generation;
mod hung;
mod last_requests;
mod reports;
mod stuck;

use crate::engine::Setup;
use crate::error::EngineError;
use crate::kind::EngineKind;
use crate::plan::PoolPlan;
use crate::thread_table::ThreadTable;
use autoscaler::Autoscaler;
use commands::Command;
use generation::{EVENTS, EngineEvent, EventKind, Generation, Launch};
use hung::HangWatch;
use regent_wire::control::{Event, ScriptEnd};
use regent_wire::{Backend, clock};
use reports::{describe, log_event, report_start};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use autoscaler::ScaleEvent;
pub use commands::{CommandRefused, PoolView, SupervisorHandle, ThreadListing, View};
pub use generation::GenerationView;

/// An engine that lived shorter than this failed; the next waits before it starts.
const STABLE: Duration = Duration::from_secs(5);
/// The first replacement starts at once, the second after this, then twice as long each time.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How long a replaced engine may take for what it has begun.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);
/// How long a new generation may boot its workers before it takes over all the same.
const BOOT_DEADLINE: Duration = Duration::from_secs(30);

/// Why the workers' threads are not replaced.
const NO_BOOT: &str = "the worker scripts of the new generation do not boot; the old ones go on: see the log";
/// Why a generation was started after the death of another.
const DIED: &str = "the last engine died";
/// Why one is started beside another that serves.
const RESTART: &str = "a restart was asked for";

/// The supervisor's own handle: to stop it.
pub struct Supervisor {
    stop: mpsc::Sender<StopRequest>,
    commands: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
}

/// Ends the engines: drained until then, killed after.
struct StopRequest {
    deadline: Instant,
}

impl Supervisor {
    /// Starts the first process on `backend`, and returns when PHP runs or the modules are loaded.
    pub(crate) async fn start(setup: Setup, backend: Arc<Backend>) -> Result<Self, EngineError> {
        let kind = setup.plan.kind;
        let (events, mut inbox) = mpsc::channel(EVENTS);
        let mut state = State::new(setup, events);
        let first = state.launch(backend, Duration::ZERO, "the server's start");
        let id = first.id;
        state.current = Some(first);
        let mut looks = hung::looks();
        loop {
            let event = tokio::select! {
                event = inbox.recv() => event.expect("invariant: the state holds a sender"),
                _ = looks.tick() => {
                    state.look_for_trouble(&mut []);
                    continue;
                }
            };
            match event.kind {
                EventKind::Message(Event::Started { version, opcache }) if event.id == id => {
                    report_start(kind, &version, opcache);
                    state.note_bare_memory(id);
                    break;
                }
                EventKind::Message(Event::Failed { message: reason }) => {
                    return Err(EngineError::Start { kind, reason });
                }
                EventKind::Message(message) => state.on_message(event.id, message),
                EventKind::Spawned(pid) => state.note_pid(id, pid),
                EventKind::Late => {}
                EventKind::NotStarted(cause) => {
                    return Err(EngineError::Program { kind, program: state.setup.program, cause });
                }
                EventKind::Ended(status) => {
                    return Err(EngineError::Start { kind, reason: describe(status) });
                }
            }
        }
        let (stop, stops) = mpsc::channel(1);
        let (commands, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(state.run(inbox, received, stops));
        Ok(Self { stop, commands, task })
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
}

struct State {
    setup: Setup,
    events: mpsc::Sender<EngineEvent>,
    autoscaler: Autoscaler,
    next_id: u64,
    current: Option<Generation>,
    /// Started to take over from `current`, which still serves.
    replacement: Option<Generation>,
    /// Who waits for the replacement to serve, or to fail.
    restarts: Vec<oneshot::Sender<Result<u32, CommandRefused>>>,
    /// Who asked when the replacement was on its way, which may have loaded code that is old by now.
    later_restarts: Vec<oneshot::Sender<Result<u32, CommandRefused>>>,
    /// Engines in a row that did not live long.
    failures: u32,
}

impl State {
    fn new(setup: Setup, events: mpsc::Sender<EngineEvent>) -> Self {
        Self {
            autoscaler: Autoscaler::new(&setup.plan.pools, Arc::clone(&setup.pools), setup.plan.max_idle),
            setup,
            events,
            next_id: 0,
            current: None,
            replacement: None,
            restarts: Vec::new(),
            later_restarts: Vec::new(),
            failures: 0,
        }
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<EngineEvent>,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut stops: mpsc::Receiver<StopRequest>,
    ) {
        let mut draining: Vec<Generation> = Vec::new();
        let queue_signal = Arc::clone(&self.setup.queue_signal);
        let mut next_tick = self.tick();
        let mut looks = hung::looks();
        loop {
            tokio::select! {
                biased;
                stop = stops.recv() => {
                    let deadline = stop.map_or_else(Instant::now, |stop| stop.deadline);
                    draining.extend(self.current.take());
                    draining.extend(self.replacement.take());
                    return drain_all(self.setup.plan.kind, draining, deadline, inbox).await;
                }
                // Before what engines say, of which there may be much.
                _ = looks.tick() => self.look_for_trouble(&mut draining),
                event = inbox.recv() => {
                    let event = event.expect("invariant: the state holds a sender");
                    self.on_event(event, &mut draining).await;
                }
                Some(command) = commands.recv() => {
                    self.apply(command, &draining);
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
    fn look_for_trouble(&mut self, draining: &mut [Generation]) {
        let engine = self.setup.plan.kind;
        for generation in self.current.iter_mut().chain(&mut self.replacement).chain(draining) {
            generation.backend.inspect();
            // A crash may leave damage, and the core dump tells why.
            if let Some(damage) = generation.backend.damage().filter(|_| !hung::dumps_core(generation)) {
                generation.condemn(engine, &format!("it has damaged the shared memory: {damage}"));
            } else if let Some(symptom) = HangWatch::look(generation) {
                generation.condemn(engine, &format!("it hangs: {symptom}"));
            }
        }
    }

    /// Scales the pools; returns when to look again, if nobody calls before.
    fn tick(&mut self) -> Instant {
        Instant::now() + self.scale()
    }

    fn scale(&mut self) -> Duration {
        let queue_signal = &self.setup.queue_signal;
        let (autoscaler, Some(current)) = (&mut self.autoscaler, &mut self.current) else {
            return LAST_BACKOFF;
        };
        if !autoscaler.is_possible() {
            return LAST_BACKOFF;
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

    async fn on_event(&mut self, event: EngineEvent, draining: &mut Vec<Generation>) {
        match event.kind {
            EventKind::Spawned(pid) => self.note_pid(event.id, pid),
            EventKind::Message(Event::Started { version, opcache }) => {
                report_start(self.setup.plan.kind, &version, opcache);
                self.note_bare_memory(event.id);
            }
            EventKind::Message(Event::Ready) | EventKind::Late if self.is_replacement(event.id) => {
                self.take_over(draining).await
            }
            EventKind::Late => {}
            EventKind::Message(Event::ThreadEnded { index, error }) => {
                self.thread_ended(event.id, index, error, draining)
            }
            EventKind::Message(message) => self.on_message(event.id, message),
            EventKind::NotStarted(error) => {
                tracing::error!(%error, program = %self.setup.program.display(), "an engine could not be started");
                self.lost(event.id, draining).await;
            }
            EventKind::Ended(status) => {
                let drained = draining.iter().any(|generation| generation.id == event.id);
                if !(drained && status.success()) {
                    self.report_death(event.id, status, draining);
                }
                self.lost(event.id, draining).await;
            }
        }
    }

    fn report_death(&self, id: u64, status: ExitStatus, draining: &[Generation]) {
        self.setup.pools.registry.engine_died();
        tracing::error!(engine = %self.setup.plan.kind, reason = describe(status), "the engine has died");
        let mut known = self.current.iter().chain(draining);
        if let Some(dead) = known.find(|generation| generation.id == id) {
            last_requests::report(dead, &self.setup.plan.pools, &self.setup.clients);
        }
    }

    fn on_message(&mut self, id: u64, message: Event) {
        match message {
            Event::RestartWanted { reason } if self.is_current(id) => self.replace(&reason),
            Event::RestartWanted { .. } => {}
            Event::ThreadEnded { index, error } => self.thread_ended(id, index, error, &mut []),
            Event::WorkerEnded { worker, end } => self.worker_ended(&worker, end),
            message => {
                log_event(self.setup.plan.kind, &message);
                if self.is_replacement(id) {
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

    fn thread_ended(&mut self, id: u64, index: u16, error: Option<String>, draining: &mut [Generation]) {
        if let Some(error) = &error {
            tracing::error!(engine = %self.setup.plan.kind, error, "a thread could not be started");
        }
        if let Some(draining) = draining.iter_mut().find(|generation| generation.id == id) {
            draining.threads.ended(index, draining.backend.region());
            return;
        }
        let (autoscaler, plans, kind) = (&mut self.autoscaler, &self.setup.plan.pools, self.setup.plan.kind);
        let is_current = self.current.as_ref().is_some_and(|current| current.id == id);
        let alive = self.current.iter_mut().chain(&mut self.replacement);
        let Some(generation) = alive.into_iter().find(|generation| generation.id == id) else { return };
        if error.is_some() {
            if let Some(pool) = generation.threads.not_started(index) {
                generation.region().reuse(usize::from(index));
                autoscaler.pause(usize::from(pool));
            }
            self.note_sizes();
            return;
        }
        let deserted = generation.threads.ended(index, generation.backend.region());
        if is_current {
            autoscaler.forget_ended(generation);
        }
        // Only workers' threads give up, and say so: see `Event::WorkerFailed`.
        if deserted.is_some_and(|pool| plans[usize::from(pool)].worker.is_none()) {
            generation.condemn(kind, "one of its threads has ended that was not told to");
        }
        self.note_given_up();
    }

    /// Pools whose size the policy does not change change it by hand, and when threads fail.
    fn note_sizes(&self) {
        if let Some(current) = &self.current {
            self.autoscaler.note_fixed_sizes(current);
        }
    }

    /// A worker whose threads have all failed too often answers nothing until the next generation, or until threads are
    /// added by hand. Those that wait for it are told.
    fn note_given_up(&self) {
        self.note_sizes();
        let Some(current) = &self.current else { return };
        let mut is_news = false;
        let plans = self.setup.plan.pools.iter();
        for (index, (pool, plan)) in self.setup.pools.iter().zip(plans).enumerate() {
            let (size, failed) = (current.threads.size(index as u16), current.threads.failed(index as u16));
            let given_up = plan.worker.is_some() && size == 0 && failed > 0;
            is_news |= pool.set_given_up(given_up) && given_up;
        }
        if is_news {
            self.setup.clients.look_at_pools();
        }
    }

    fn note_pid(&mut self, id: u64, pid: u32) {
        if let Some(generation) = self.generation(id) {
            generation.pid = Some(pid);
        }
    }

    /// PHP runs, or modules are loaded, and threads are only about to be made.
    fn note_bare_memory(&mut self, id: u64) {
        if let Some(generation) = self.generation(id) {
            generation.bare_memory = generation.pid.and_then(crate::machine::resident);
        }
    }

    fn generation(&mut self, id: u64) -> Option<&mut Generation> {
        self.current.iter_mut().chain(&mut self.replacement).find(|generation| generation.id == id)
    }

    fn is_current(&self, id: u64) -> bool {
        self.current.as_ref().is_some_and(|generation| generation.id == id)
    }

    fn is_replacement(&self, id: u64) -> bool {
        self.replacement.as_ref().is_some_and(|generation| generation.id == id)
    }

    /// A new generation is wanted: it starts beside the current one, and takes over when its workers have booted.
    fn replace(&mut self, reason: &str) {
        if self.replacement.is_some() {
            return;
        }
        tracing::info!(engine = %self.setup.plan.kind, reason, "starting a new generation of the engine");
        match self.setup.new_memory() {
            Ok(backend) => {
                let next = self.launch(backend, Duration::ZERO, reason);
                next.remind_after(BOOT_DEADLINE);
                self.replacement = Some(next);
            }
            Err(error) => {
                tracing::error!(%error, "no memory for a new generation; the current one goes on");
                self.answer_restarts(&Err(CommandRefused::Unavailable(error.to_string())));
            }
        }
    }

    async fn take_over(&mut self, draining: &mut Vec<Generation>) {
        let Some(mut next) = self.replacement.take() else { return };
        self.setup.clients.switch_to(&next.backend).await;
        self.failures = 0;
        if let Some(old) = self.current.take() {
            self.autoscaler.begin_generation(&old);
            self.autoscaler.carry_over(&old, &mut next);
            old.region().drain();
            old.kill_after(DRAIN_DEADLINE);
            draining.push(old);
        }
        self.current = Some(next);
        self.note_given_up();
        tracing::info!(engine = %self.setup.plan.kind, "the new generation has taken over");
        let threads = self.restarted_threads();
        self.answer_restarts(&Ok(threads));
    }

    /// `reason`: for who wanted it.
    fn give_up_replacement(&mut self, reason: &str) {
        tracing::error!(engine = %self.setup.plan.kind, reason, "the new generation cannot serve; the current one goes on");
        self.replacement = None;
        self.answer_restarts(&Err(CommandRefused::Unavailable(reason.to_owned())));
    }

    fn answer_restarts(&mut self, answer: &Result<u32, CommandRefused>) {
        for waiting in self.restarts.drain(..) {
            // Who asked has gone otherwise.
            let _ = waiting.send(answer.clone());
        }
        if !self.later_restarts.is_empty() {
            self.restarts = std::mem::take(&mut self.later_restarts);
            self.replace(RESTART);
        }
    }

    fn restarted_threads(&self) -> u32 {
        let Some(current) = &self.current else { return 0 };
        let plans = &self.setup.plan.pools;
        let has_any = plans.iter().any(PoolPlan::keeps_code);
        let restarted = plans.iter().enumerate().filter(|(_, pool)| pool.keeps_code() || !has_any);
        restarted.map(|(index, _)| u32::from(current.threads.size(index as u16))).sum()
    }

    /// An engine is gone, whichever it was.
    async fn lost(&mut self, id: u64, draining: &mut Vec<Generation>) {
        if self.is_replacement(id) {
            self.give_up_replacement("the new generation of the engine did not start: see the log");
        } else if let Some(index) = draining.iter().position(|generation| generation.id == id) {
            let dead = draining.swap_remove(index);
            self.setup.clients.forget_dead(&dead.backend);
        } else if self.is_current(id) {
            self.restart().await;
        }
    }

    /// The current engine is dead. Its queue moves to new memory at once; the next engine starts on that.
    async fn restart(&mut self) {
        let Some(dead) = self.current.take() else { return };
        self.autoscaler.begin_generation(&dead);
        if let Some(mut next) = self.replacement.take() {
            // It is on its way already.
            self.autoscaler.carry_over(&dead, &mut next);
            self.setup.clients.switch_to(&next.backend).await;
            self.setup.clients.forget_dead(&dead.backend);
            self.current = Some(next);
            self.note_given_up();
            let threads = self.restarted_threads();
            self.answer_restarts(&Ok(threads));
            return;
        }
        self.failures = if dead.since.elapsed() < STABLE { self.failures + 1 } else { 0 };
        let wait = backoff(self.failures);
        if !wait.is_zero() {
            tracing::warn!(
                engine = %self.setup.plan.kind,
                ?wait,
                failures = self.failures,
                "the engine keeps dying; waiting before the next start"
            );
        }
        // The next one begins with as many threads.
        self.current = Some(dead);
        let backend = match self.setup.new_memory() {
            Ok(backend) => backend,
            Err(error) => {
                tracing::error!(%error, "no memory for a new engine; the old memory is used again");
                let old = self.current.as_ref().expect("invariant: put back above").backend.clone();
                self.current = Some(self.launch(old, LAST_BACKOFF, DIED));
                return;
            }
        };
        let next = self.launch(Arc::clone(&backend), wait, DIED);
        let dead = self.current.replace(next).expect("invariant: put back above");
        self.note_given_up();
        self.setup.clients.switch_to(&backend).await;
        self.setup.clients.forget_dead(&dead.backend);
    }

    fn launch(&mut self, backend: Arc<Backend>, wait: Duration, reason: &str) -> Generation {
        let id = self.next_id;
        self.next_id += 1;
        let mut threads = ThreadTable::new(self.setup.plan.geometry.threads as usize);
        let mut start = self.setup.plan.start.clone();
        for (pool, size) in self.autoscaler.sizes(self.current.as_ref()).into_iter().enumerate() {
            start.threads.extend(threads.order(pool as u16, size, clock::now()));
        }
        self.setup.pools.registry.generation_started();
        let launch = Launch { id, backend, start, threads, reason: reason.to_owned(), wait };
        Generation::launch(&self.setup, launch, self.events.clone())
    }
}

/// Ends the engines, and logs what they have to say until then.
async fn drain_all(
    kind: EngineKind,
    generations: Vec<Generation>,
    deadline: Instant,
    mut inbox: mpsc::Receiver<EngineEvent>,
) {
    for generation in &generations {
        generation.region().drain();
    }
    let ended = async {
        for mut generation in generations {
            if tokio::time::timeout_at(deadline.into(), &mut generation.watcher).await.is_err() {
                tracing::warn!("an engine was killed: it had not ended by the deadline");
            }
        }
    };
    let listening = async {
        while let Some(event) = inbox.recv().await {
            log_last(kind, event);
        }
    };
    tokio::select! {
        () = ended => {}
        () = listening => {}
    }
    while let Ok(event) = inbox.try_recv() {
        log_last(kind, event);
    }
}

fn log_last(kind: EngineKind, event: EngineEvent) {
    if let EventKind::Message(message) = event.kind {
        log_event(kind, &message);
    }
}

fn backoff(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACKOFF.saturating_mul(1 << (more - 2).min(6)).min(LAST_BACKOFF),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_replacement_starts_at_once_and_later_ones_wait() {
        let waits: Vec<u128> = [0, 1, 2, 3, 4, 20].map(|n| backoff(n).as_millis()).into();
        assert_eq!(waits, [0, 0, 100, 200, 400, 5000]);
    }
}
