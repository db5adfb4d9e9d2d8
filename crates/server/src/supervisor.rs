//! Keeps an engine running: starts it, notices its death at once, replaces it, and hands its queue to the next one.

use crate::acceptor::Command;
use crate::process::{EngineProcess, Occurrence};
use regent_wire::control::{Event, Opcache, Start};
use regent_wire::{Backend, Geometry, Region, RegionError};
use rustix::fd::OwnedFd;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// An engine that lived shorter than this failed; the next waits before it starts.
const STABLE: Duration = Duration::from_secs(5);
/// The first replacement starts at once, the second after this, then twice as long each time.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How long a replaced engine may take for what it has begun.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// What an engine is started with, each time.
pub(crate) struct Recipe {
    pub program: PathBuf,
    pub geometry: Geometry,
    pub start: Start,
    pub doorbells: Vec<Arc<OwnedFd>>,
    pub io_threads: Vec<mpsc::UnboundedSender<Command>>,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{program}: {cause}; it belongs beside the `regent` program, or name it in REGENT_ENGINE", program = .program.display())]
    Program { program: PathBuf, cause: io::Error },
    #[error(transparent)]
    Memory(#[from] RegionError),
    #[error("PHP could not be started: {0}")]
    Php(String),
}

/// The supervisor's own handle: to stop it.
pub(crate) struct Supervisor {
    stop: mpsc::Sender<StopRequest>,
    task: JoinHandle<()>,
}

/// Ends the engines: drained until then, killed after.
struct StopRequest {
    deadline: Instant,
}

/// Makes the memory of an engine, which requests can be queued in before it runs.
pub(crate) fn new_backend(geometry: Geometry) -> Result<Arc<Backend>, RegionError> {
    let region = Region::create(geometry)?;
    for pool in 0..geometry.pools as usize {
        region.tune(pool, regent_wire::Scheduling::Spread, 1, 0);
    }
    Ok(Arc::new(Backend::new(region)))
}

impl Supervisor {
    /// Starts the first engine on `backend`, and returns when PHP runs.
    pub async fn start(recipe: Recipe, backend: Arc<Backend>) -> Result<Self, EngineError> {
        let (notes, mut inbox) = mpsc::unbounded_channel();
        let mut state = State { recipe, notes, next_id: 0, current: None, replacement: None, failures: 0 };
        let first = state.launch(backend, Duration::ZERO);
        let id = first.id;
        state.current = Some(first);
        loop {
            let note = inbox.recv().await.expect("invariant: the state holds a sender");
            match note.what {
                What::Event(Event::Started { version, opcache }) if note.id == id => {
                    report_start(&version, opcache);
                    break;
                }
                What::Event(event) => log_event(&event),
                What::NotStarted(cause) => {
                    return Err(EngineError::Program { program: state.recipe.program, cause });
                }
                What::Ended(status) => return Err(EngineError::Php(describe(status))),
            }
        }
        let (stop, stops) = mpsc::channel(1);
        let task = tokio::spawn(state.run(inbox, stops));
        Ok(Self { stop, task })
    }

    /// Ends the engines; those that have not drained by the deadline are killed.
    pub async fn stop(self, deadline: Instant) {
        // It has ended otherwise.
        let _ = self.stop.send(StopRequest { deadline }).await;
        let _ = self.task.await;
    }
}

/// What the supervisor hears of an engine.
struct Note {
    id: u64,
    what: What,
}

enum What {
    NotStarted(io::Error),
    Event(Event),
    Ended(ExitStatus),
}

/// One generation.
struct Generation {
    id: u64,
    backend: Arc<Backend>,
    since: Instant,
    /// Owns the process: aborted, it kills it.
    watcher: JoinHandle<()>,
    /// Kills the process, whose end is then noted as any other.
    kill: Arc<Notify>,
}

struct State {
    recipe: Recipe,
    notes: mpsc::UnboundedSender<Note>,
    next_id: u64,
    current: Option<Generation>,
    /// Started to take over from `current`, which still serves.
    replacement: Option<Generation>,
    /// Engines in a row that did not live long.
    failures: u32,
}

impl State {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Note>, mut stops: mpsc::Receiver<StopRequest>) {
        let mut draining: Vec<Generation> = Vec::new();
        loop {
            tokio::select! {
                note = inbox.recv() => {
                    let note = note.expect("invariant: the state holds a sender");
                    self.hear(note, &mut draining).await;
                }
                stop = stops.recv() => {
                    let deadline = stop.map_or_else(Instant::now, |stop| stop.deadline);
                    draining.extend(self.current.take());
                    draining.extend(self.replacement.take());
                    return drain_all(draining, deadline).await;
                }
            }
        }
    }

    async fn hear(&mut self, note: Note, draining: &mut Vec<Generation>) {
        match note.what {
            What::Event(Event::Started { .. }) if self.is_replacement(note.id) => {
                self.take_over(draining).await
            }
            What::Event(Event::RestartWanted { reason }) => self.replace(note.id, &reason),
            What::Event(event) => log_event(&event),
            What::NotStarted(error) => {
                tracing::error!(%error, program = %self.recipe.program.display(), "the engine could not be started");
                self.lost(note.id, draining).await;
            }
            What::Ended(status) => {
                let drained = draining.iter().any(|generation| generation.id == note.id);
                if !(drained && status.success()) {
                    tracing::error!(reason = describe(status), "the engine has died");
                }
                self.lost(note.id, draining).await;
            }
        }
    }

    fn is_replacement(&self, id: u64) -> bool {
        self.replacement.as_ref().is_some_and(|generation| generation.id == id)
    }

    /// A new generation is wanted: it starts beside the current one, and takes over when PHP runs.
    fn replace(&mut self, id: u64, reason: &str) {
        let current = self.current.as_ref().is_some_and(|generation| generation.id == id);
        if !current || self.replacement.is_some() {
            return;
        }
        tracing::info!(reason, "starting a new generation of the engine");
        match new_backend(self.recipe.geometry) {
            Ok(backend) => self.replacement = Some(self.launch(backend, Duration::ZERO)),
            Err(error) => tracing::error!(%error, "no memory for a new generation; the current one goes on"),
        }
    }

    async fn take_over(&mut self, draining: &mut Vec<Generation>) {
        let Some(next) = self.replacement.take() else { return };
        self.switch_to(&next.backend).await;
        self.failures = 0;
        if let Some(old) = self.current.replace(next) {
            old.backend.region().drain();
            old.kill_after(DRAIN_DEADLINE);
            draining.push(old);
        }
        tracing::info!("the new generation has taken over");
    }

    /// An engine is gone, whichever it was.
    async fn lost(&mut self, id: u64, draining: &mut Vec<Generation>) {
        if self.is_replacement(id) {
            tracing::error!("the new generation did not start; the current one goes on");
            self.replacement = None;
        } else if let Some(index) = draining.iter().position(|generation| generation.id == id) {
            let dead = draining.swap_remove(index);
            self.tell(|| Command::Bury(Arc::clone(&dead.backend)));
        } else if self.current.as_ref().is_some_and(|generation| generation.id == id) {
            self.restart().await;
        }
    }

    /// The current engine is dead. Its queue moves to new memory at once; the next engine starts on that.
    async fn restart(&mut self) {
        let Some(dead) = self.current.take() else { return };
        if let Some(next) = self.replacement.take() {
            // It is on its way already.
            self.switch_to(&next.backend).await;
            self.tell(|| Command::Bury(Arc::clone(&dead.backend)));
            self.current = Some(next);
            return;
        }
        self.failures = if dead.since.elapsed() < STABLE { self.failures + 1 } else { 0 };
        let wait = backoff(self.failures);
        if !wait.is_zero() {
            tracing::warn!(
                ?wait,
                failures = self.failures,
                "the engine keeps dying; waiting before the next start"
            );
        }
        let backend = match new_backend(self.recipe.geometry) {
            Ok(backend) => backend,
            Err(error) => {
                tracing::error!(%error, "no memory for a new engine; the old memory is used again");
                self.current = Some(self.launch(Arc::clone(&dead.backend), LAST_BACKOFF));
                return;
            }
        };
        self.current = Some(self.launch(Arc::clone(&backend), wait));
        self.switch_to(&backend).await;
        self.tell(|| Command::Bury(Arc::clone(&dead.backend)));
    }

    /// All I/O threads use this memory for new requests when it returns.
    async fn switch_to(&self, backend: &Arc<Backend>) {
        let mut done = Vec::new();
        for thread in &self.recipe.io_threads {
            let (sender, receiver) = oneshot::channel();
            if thread.send(Command::Switch(Arc::clone(backend), sender)).is_ok() {
                done.push(receiver);
            }
        }
        for receiver in done {
            // The thread has ended otherwise.
            let _ = receiver.await;
        }
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for thread in &self.recipe.io_threads {
            let _ = thread.send(command());
        }
    }

    fn launch(&mut self, backend: Arc<Backend>, wait: Duration) -> Generation {
        let id = self.next_id;
        self.next_id += 1;
        let kill = Arc::new(Notify::new());
        let watch = Watch {
            id,
            program: self.recipe.program.clone(),
            backend: Arc::clone(&backend),
            doorbells: self.recipe.doorbells.clone(),
            start: self.recipe.start.clone(),
            notes: self.notes.clone(),
        };
        let watcher = tokio::spawn(watch.run(wait, Arc::clone(&kill)));
        Generation { id, backend, since: Instant::now() + wait, watcher, kill }
    }
}

impl Generation {
    /// A generation that has been told to drain may take so long.
    fn kill_after(&self, deadline: Duration) {
        let kill = Arc::clone(&self.kill);
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            kill.notify_one();
        });
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Starts an engine and passes on what it says until it ends.
struct Watch {
    id: u64,
    program: PathBuf,
    backend: Arc<Backend>,
    doorbells: Vec<Arc<OwnedFd>>,
    start: Start,
    notes: mpsc::UnboundedSender<Note>,
}

impl Watch {
    async fn run(self, wait: Duration, kill: Arc<Notify>) {
        tokio::time::sleep(wait).await;
        let spawned = EngineProcess::spawn(&self.program, &self.backend, &self.doorbells, &self.start).await;
        let mut process = match spawned {
            Ok(process) => process,
            Err(error) => return self.note(What::NotStarted(error)),
        };
        tracing::debug!(pid = process.pid(), "an engine was started");
        loop {
            let occurrence = tokio::select! {
                occurrence = process.next() => occurrence,
                () = kill.notified() => {
                    tracing::warn!("an engine was killed: it had not drained by the deadline");
                    process.kill();
                    process.next().await
                }
            };
            match occurrence {
                Ok(Occurrence::Event(event)) => self.note(What::Event(event)),
                Ok(Occurrence::Ended(status)) => return self.note(What::Ended(status)),
                Err(error) => {
                    process.kill();
                    return self.note(What::NotStarted(error));
                }
            }
        }
    }

    /// The supervisor has stopped otherwise; the drop of the process ends it.
    fn note(&self, what: What) {
        let _ = self.notes.send(Note { id: self.id, what });
    }
}

async fn drain_all(generations: Vec<Generation>, deadline: Instant) {
    for generation in &generations {
        generation.backend.region().drain();
    }
    for mut generation in generations {
        if tokio::time::timeout_at(deadline.into(), &mut generation.watcher).await.is_err() {
            tracing::warn!("an engine was killed: it had not ended by the deadline");
        }
    }
}

fn backoff(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACKOFF.saturating_mul(1 << (more - 2).min(6)).min(LAST_BACKOFF),
    }
}

fn report_start(version: &str, opcache: Opcache) {
    tracing::info!(version, "PHP is running");
    if opcache == Opcache::Disabled {
        tracing::warn!("opcache is off: every request compiles its scripts; set opcache.enable=1 in php.ini");
    }
}

fn log_event(event: &Event) {
    match event {
        Event::Started { version, opcache } => report_start(version, *opcache),
        Event::Ready => tracing::debug!("all PHP threads are ready"),
        Event::Log { level: 0..=3, message } => tracing::error!(target: "php", "{message}"),
        Event::Log { level: 4, message } => tracing::warn!(target: "php", "{message}"),
        Event::Log { level: 5 | 6, message } => tracing::info!(target: "php", "{message}"),
        Event::Log { message, .. } => tracing::debug!(target: "php", "{message}"),
        Event::RestartWanted { reason } => tracing::info!(reason, "the engine asks for a new generation"),
        Event::WorkerFailed { worker, failures } => {
            tracing::error!(
                worker,
                failures,
                "the worker script failed too often; its thread is not started again"
            );
        }
        Event::Failed { message } => tracing::error!(message, "PHP could not be started"),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
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
