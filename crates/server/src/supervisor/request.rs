//! What the supervisor is asked while it runs: by the admin API.

use super::generation::Generation;
use super::growth::ScaleEvent;
use super::{RESTART, State, stuck};
use crate::roster::{Member, MemberStage};
use regent_wire::{Backend, ThreadState, ThreadView, clock};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A question or an order; the answer comes through the sender.
pub(crate) enum Request {
    View(oneshot::Sender<View>),
    Add {
        pool: usize,
        count: u16,
        answer: oneshot::Sender<Result<u16, Refused>>,
    },
    Remove {
        pool: usize,
        count: u16,
        answer: oneshot::Sender<Result<u16, Refused>>,
    },
    /// Replaces the engine, in order to load code anew.
    Restart(oneshot::Sender<Result<u32, Refused>>),
}

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The pool has so many threads, and could have so many.
    TooMany {
        threads: u16,
        most: u16,
    },
    /// The pool has so many threads, of which one must stay.
    TooFew {
        threads: u16,
    },
    Unavailable(String),
}

/// Asks the supervisor. It can be cloned and sent anywhere.
#[derive(Clone)]
pub(crate) struct Handle {
    requests: mpsc::UnboundedSender<Request>,
}

/// How things stand.
pub(crate) struct View {
    pub pools: Vec<PoolView>,
    pub events: Vec<ScaleEvent>,
    /// Engines that run, newest first.
    pub generations: Vec<regent_admin::Generation>,
    /// `None` between two engines.
    pub backend: Option<Arc<Backend>>,
}

/// A pool, in the order of the plan.
pub(crate) struct PoolView {
    /// Without those that are leaving.
    pub size: u16,
    pub waiting: u64,
    pub oldest_wait: Duration,
    pub threads: Vec<ThreadListing>,
}

/// A thread of the current generation.
pub(crate) struct ThreadListing {
    pub index: u16,
    pub stage: MemberStage,
    pub view: ThreadView,
    /// Time in its state.
    pub since: Duration,
    /// Busy for far longer than usual.
    pub is_stuck: bool,
}

impl Handle {
    pub fn new(requests: mpsc::UnboundedSender<Request>) -> Self {
        Self { requests }
    }

    pub async fn view(&self) -> Result<View, Refused> {
        self.ask(Request::View).await
    }

    /// Adds threads to a pool, all of them or none; returns its size then.
    pub async fn add(&self, pool: usize, count: u16) -> Result<u16, Refused> {
        self.ask(|answer| Request::Add { pool, count, answer }).await?
    }

    /// Takes threads from a pool, all of them or none; returns its size then.
    pub async fn remove(&self, pool: usize, count: u16) -> Result<u16, Refused> {
        self.ask(|answer| Request::Remove { pool, count, answer }).await?
    }

    /// Replaces the engine, in order to load code and settings anew; returns the number of threads that had kept code,
    /// when the new ones serve. Of PHP those are the workers' threads; where there are none, all threads count.
    pub async fn restart(&self) -> Result<u32, Refused> {
        self.ask(Request::Restart).await?
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Refused> {
        let stopping = |_| Refused::Unavailable("the server is stopping".to_owned());
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).map_err(|_| stopping(()))?;
        answered.await.map_err(|_| stopping(()))
    }
}

impl State {
    /// Who asked may have gone, and then the answer is for nobody.
    pub(super) fn answer(&mut self, request: Request, draining: &[Generation]) {
        match request {
            Request::View(answer) => drop(answer.send(self.view(draining))),
            Request::Add { pool, count, answer } => {
                drop(answer.send(self.add(pool, count)));
                self.note_given_up();
            }
            Request::Remove { pool, count, answer } => {
                drop(answer.send(self.remove(pool, count)));
                self.note_sizes();
            }
            Request::Restart(answer) => self.restart_on_demand(answer),
        }
    }

    fn add(&mut self, pool: usize, count: u16) -> Result<u16, Refused> {
        let current = self.current.as_mut().ok_or_else(no_engine)?;
        self.growth.add(current, pool, count).map_err(|(threads, most)| Refused::TooMany { threads, most })
    }

    fn remove(&mut self, pool: usize, count: u16) -> Result<u16, Refused> {
        let current = self.current.as_mut().ok_or_else(no_engine)?;
        self.growth.remove(current, pool, count).map_err(|threads| Refused::TooFew { threads })
    }

    fn restart_on_demand(&mut self, answer: oneshot::Sender<Result<u32, Refused>>) {
        if self.replacement.is_some() {
            return self.later_restarts.push(answer);
        }
        self.restarts.push(answer);
        self.replace(RESTART);
    }

    fn view(&self, draining: &[Generation]) -> View {
        let pools = 0..self.recipe.plans.len();
        let generations = self.replacement.iter().chain(&self.current).chain(draining.iter().rev());
        let engine = self.recipe.kind.engine();
        View {
            pools: pools.map(|pool| self.pool_view(pool)).collect(),
            events: self.growth.events().cloned().collect(),
            generations: generations.map(|generation| generation.describe(engine)).collect(),
            backend: self.current.as_ref().map(|current| Arc::clone(&current.backend)),
        }
    }

    fn pool_view(&self, pool: usize) -> PoolView {
        let now = clock::now();
        let region = self.current.as_ref().map(Generation::region);
        let oldest = region.and_then(|region| region.oldest(pool));
        PoolView {
            size: self.current.as_ref().map_or(0, |current| current.roster.size(pool as u16)),
            waiting: self.current.as_ref().map_or(0, |current| current.backend.waiting(pool)),
            oldest_wait: oldest.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            threads: self.current.as_ref().map_or_else(Vec::new, |current| threads(current, pool, now)),
        }
    }
}

fn threads(generation: &Generation, pool: usize, now: Duration) -> Vec<ThreadListing> {
    let view = |member: Member| (member, generation.region().thread_view(usize::from(member.index)));
    let views: Vec<_> = generation.roster.members(pool as u16).map(view).collect();
    let usual = stuck::usual(views.iter().map(|(_, view)| view));
    let listing = |(member, view): (Member, ThreadView)| ThreadListing {
        index: member.index,
        stage: member.stage,
        view,
        since: now.saturating_sub(view.since),
        is_stuck: view.state == ThreadState::Busy && stuck::is_stuck(&view, usual, now),
    };
    views.into_iter().map(listing).collect()
}

fn no_engine() -> Refused {
    Refused::Unavailable("no engine is running at this moment: it is being started again".to_owned())
}
