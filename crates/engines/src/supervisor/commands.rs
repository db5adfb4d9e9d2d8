//! What the supervisor is asked while it runs: by the admin API.

use super::autoscaler::ScaleEvent;
use super::generation::{Generation, GenerationView};
use super::php::Php;
use super::profiles::{ProfileAnswer, ProfileWish};
use super::stacks::TraceAnswer;
use super::{State, stuck};
use crate::thread_table::{ThreadEntry, ThreadStage};
use regent_profile::Profile;
use regent_wire::{EngineMemory, ThreadState, ThreadView, clock};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// An engine tells at once what a thread is at, or not at all.
const TRACE_DEADLINE: Duration = Duration::from_secs(3);
/// What a profile may take beside its own time: to be sent, and on a machine that is busy.
const PROFILE_DEADLINE: Duration = Duration::from_secs(15);

/// Why a pool gets no threads now.
const KILLS_AT_BOOT: &str =
    "its script kills the engine while it boots: it gets threads when its circuit is closed";

/// A question or an order; the answer comes through the sender.
pub(super) enum Command {
    View(oneshot::Sender<View>),
    Add {
        pool: usize,
        count: u16,
        answer: oneshot::Sender<Result<u16, CommandRefused>>,
    },
    Remove {
        pool: usize,
        count: u16,
        answer: oneshot::Sender<Result<u16, CommandRefused>>,
    },
    /// Replaces the engine, in order to load code anew.
    Restart(oneshot::Sender<Result<u32, CommandRefused>>),
    /// What is this thread of the current generation at?
    Trace {
        index: u16,
        answer: TraceAnswer,
    },
    /// Look at the threads of the current generation for a while.
    Profile {
        wish: ProfileWish,
        answer: ProfileAnswer,
    },
}

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandRefused {
    /// The pool has so many threads, and could have so many.
    TooMany {
        threads: u16,
        most: u16,
    },
    /// The pool has so many threads, of which one must stay.
    TooFew {
        threads: u16,
    },
    NoThread(u16),
    /// Somebody else takes a profile.
    ProfileUnderWay,
    Unavailable(String),
}

/// Asks the supervisor. It can be cloned and sent anywhere.
#[derive(Clone)]
pub struct SupervisorHandle {
    commands: mpsc::UnboundedSender<Command>,
}

/// How things stand.
pub struct View {
    pub pools: Vec<PoolView>,
    pub events: Vec<ScaleEvent>,
    /// Engines that run, newest first.
    pub generations: Vec<GenerationView>,
    /// The memory of the current one.
    pub backend: Arc<EngineMemory>,
    /// The PHP of the engine that started last. `None`: none has, or it is no PHP.
    pub php: Option<Php>,
}

/// A pool, in the order of the plan.
pub struct PoolView {
    /// Without those that are leaving.
    pub size: u16,
    pub waiting: u64,
    pub oldest_wait: Duration,
    pub threads: Vec<ThreadListing>,
}

/// A thread of the current generation.
pub struct ThreadListing {
    pub index: u16,
    pub stage: ThreadStage,
    pub view: ThreadView,
    /// Time in its state.
    pub since: Duration,
    /// Busy for far longer than usual.
    pub is_stuck: bool,
}

impl SupervisorHandle {
    pub(super) fn new(commands: mpsc::UnboundedSender<Command>) -> Self {
        Self { commands }
    }

    pub async fn view(&self) -> Result<View, CommandRefused> {
        self.ask(Command::View).await
    }

    /// Adds threads to a pool, all of them or none; returns its size then.
    pub async fn add(&self, pool: usize, count: u16) -> Result<u16, CommandRefused> {
        self.ask(|answer| Command::Add { pool, count, answer }).await?
    }

    /// Takes threads from a pool, all of them or none; returns its size then.
    pub async fn remove(&self, pool: usize, count: u16) -> Result<u16, CommandRefused> {
        self.ask(|answer| Command::Remove { pool, count, answer }).await?
    }

    /// Replaces the engine, in order to load code and settings anew; returns the number of threads that had kept code,
    /// when the new ones serve. Of PHP those are the workers' threads; where there are none, all threads count.
    pub async fn restart(&self) -> Result<u32, CommandRefused> {
        self.ask(Command::Restart).await?
    }

    /// What a thread of PHP is at, a line for each function, the innermost first; nothing if it runs no script.
    pub async fn trace(&self, index: u16) -> Result<String, CommandRefused> {
        let asked = self.ask(|answer| Command::Trace { index, answer });
        let silent = || CommandRefused::Unavailable("the engine does not answer".to_owned());
        tokio::time::timeout(TRACE_DEADLINE, asked).await.map_err(|_| silent())??
    }

    /// Which functions of PHP the threads are in, seen for a while.
    pub async fn profile(&self, wish: ProfileWish) -> Result<Profile, CommandRefused> {
        let deadline = wish.duration + PROFILE_DEADLINE;
        let (answer, answered) = oneshot::channel();
        let gone = || CommandRefused::Unavailable("the engine has ended meanwhile".to_owned());
        self.commands.send(Command::Profile { wish, answer }).map_err(|_| gone())?;
        let silent = || CommandRefused::Unavailable("the engine does not answer".to_owned());
        tokio::time::timeout(deadline, answered).await.map_err(|_| silent())?.map_err(|_| gone())?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, CommandRefused> {
        let stopping = |_| CommandRefused::Unavailable("the server is stopping".to_owned());
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer)).map_err(|_| stopping(()))?;
        answered.await.map_err(|_| stopping(()))
    }
}

impl State {
    /// Who asked may have gone, and then the answer is for nobody.
    pub(super) fn apply(&mut self, command: Command) {
        match command {
            Command::View(answer) => drop(answer.send(self.view())),
            Command::Add { pool, count, answer } => {
                drop(answer.send(self.add(pool, count)));
                self.note_given_up();
            }
            Command::Remove { pool, count, answer } => {
                drop(answer.send(self.remove(pool, count)));
                self.note_sizes();
            }
            Command::Restart(answer) => self.restart_on_demand(answer),
            Command::Trace { index, answer } => self.trace(index, answer),
            Command::Profile { wish, answer } => self.profile(wish, answer),
        }
    }

    fn add(&mut self, pool: usize, count: u16) -> Result<u16, CommandRefused> {
        if self.setup.pools.circuits.boot_phase(pool).is_some() {
            return Err(CommandRefused::Unavailable(KILLS_AT_BOOT.to_owned()));
        }
        self.autoscaler
            .add(&mut self.generations.current, pool, count)
            .map_err(|(threads, most)| CommandRefused::TooMany { threads, most })
    }

    fn remove(&mut self, pool: usize, count: u16) -> Result<u16, CommandRefused> {
        let current = &mut self.generations.current;
        self.autoscaler.remove(current, pool, count).map_err(|threads| CommandRefused::TooFew { threads })
    }

    fn view(&self) -> View {
        let pools = 0..self.setup.plan.pools.len();
        View {
            pools: pools.map(|pool| self.pool_view(pool)).collect(),
            events: self.autoscaler.events().cloned().collect(),
            generations: self.generations.views(),
            backend: Arc::clone(&self.generations.current.backend),
            php: self.php.clone(),
        }
    }

    fn pool_view(&self, pool: usize) -> PoolView {
        let (now, current) = (clock::now(), &self.generations.current);
        let oldest = current.region().oldest(pool);
        PoolView {
            size: current.threads.size(pool as u16),
            waiting: current.backend.waiting(pool),
            oldest_wait: oldest.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            threads: threads(current, pool, now),
        }
    }
}

fn threads(generation: &Generation, pool: usize, now: Duration) -> Vec<ThreadListing> {
    let view = |entry: ThreadEntry| (entry, generation.region().thread_view(usize::from(entry.index)));
    let views: Vec<_> = generation.threads.entries(pool as u16).map(view).collect();
    let usual = stuck::usual(views.iter().map(|(_, view)| view));
    let listing = |(entry, view): (ThreadEntry, ThreadView)| ThreadListing {
        index: entry.index,
        stage: entry.stage,
        view,
        since: now.saturating_sub(view.since),
        is_stuck: view.state == ThreadState::Busy && stuck::is_stuck(&view, usual, now),
    };
    views.into_iter().map(listing).collect()
}
