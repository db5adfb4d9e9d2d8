//! What ran in an engine that has died: one of these requests is why, or they all died of something else.

use super::generation::Generation;
use crate::engine_client::{EngineClients, Running};
use crate::plan::PoolPlan;
use regent_dispatch::circuits::Suspect;
use regent_wire::{ThreadState, ThreadView, Token, clock};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Requests that the log names; of the others it says how many there were.
const NAMED: usize = 10;
/// Bytes of each of its texts.
const LONGEST_TEXT: usize = 500;
/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;

/// All requests that threads were at, and what the I/O threads know of them.
pub(super) struct LastRequests {
    requests: Vec<LastRequest>,
    known: HashMap<Token, Running>,
}

/// A request that a thread was at.
struct LastRequest {
    pool: String,
    token: Token,
    /// Of the thread, by the kernel's number.
    tid: u32,
    running: Duration,
}

impl LastRequests {
    /// Of one process of it, or of all. Has to be called before the I/O threads are told of the end; their answers are awaited.
    pub fn of(
        dead: &Generation,
        process: Option<u16>,
        plans: &[PoolPlan],
        clients: &EngineClients,
    ) -> impl Future<Output = Self> + use<> {
        let pools = plans.iter().enumerate();
        let requests =
            pools.flat_map(|(pool, plan)| of_pool(dead, process, pool as u16, &plan.name)).collect();
        describe(dead, requests, clients)
    }

    /// Names them in the log.
    pub fn log(&self) {
        for request @ LastRequest { pool, running, .. } in self.requests.iter().take(NAMED) {
            // The engine can have written any token.
            let Some(Running { line, .. }) = self.known.get(&request.token) else { continue };
            let (method, uri, script) = (text(&line.method), text(&line.uri), text(&line.script));
            tracing::error!(pool, %method, %uri, %script, ?running, "this request was running when the engine died");
        }
        if let Some(more) = self.requests.len().checked_sub(NAMED).filter(|more| *more > 0) {
            tracing::error!(more, "more requests were running when the engine died");
        }
    }

    /// Whether no thread was at any.
    pub fn are_none(&self) -> bool {
        self.requests.is_empty()
    }

    /// All of them.
    pub fn suspects(&self) -> Vec<Suspect> {
        self.requests.iter().filter_map(|request| self.as_suspect(request)).collect()
    }

    /// Those of them that another engine has died of, or beside, before.
    pub fn repeated(&self) -> Vec<Suspect> {
        let is_repeated = |request: &&LastRequest| {
            self.known.get(&request.token).is_some_and(|running| running.is_repeated)
        };
        self.requests.iter().filter(is_repeated).filter_map(|request| self.as_suspect(request)).collect()
    }

    /// The one that this thread ran.
    pub fn suspect(&self, tid: u32) -> Option<Suspect> {
        self.requests.iter().find(|request| request.tid == tid).and_then(|request| self.as_suspect(request))
    }

    fn as_suspect(&self, request: &LastRequest) -> Option<Suspect> {
        let Running { line, route, .. } = self.known.get(&request.token)?;
        // The engine can have written any: no file has a longer name.
        if line.script.len() > LONGEST_PATH {
            return None;
        }
        Some(Suspect { route: Arc::clone(route.as_ref()?), code: line.script.as_slice().into() })
    }
}

/// Names in the log what the thread of a process ran that has died, of an engine that has several. Has to be called before
/// what it has left in the memory is buried, and does not wait for what the I/O threads know.
pub(super) fn report_one(generation: &Generation, index: u16, pool: &str, clients: &EngineClients) {
    let view = generation.region().thread_view(usize::from(index));
    if view.state == ThreadState::Busy {
        let described = describe(generation, vec![LastRequest::of(&view, pool)], clients);
        tokio::spawn(async move { described.await.log() });
    }
}

/// The I/O threads are asked by the call; their answers are awaited.
fn describe(
    of: &Generation,
    requests: Vec<LastRequest>,
    clients: &EngineClients,
) -> impl Future<Output = LastRequests> + use<> {
    let tokens = requests.iter().map(|request| request.token).collect();
    let known = clients.describe(&of.backend, tokens);
    async move { LastRequests { requests, known: known.await } }
}

fn of_pool(
    dead: &Generation,
    process: Option<u16>,
    pool: u16,
    name: &str,
) -> impl Iterator<Item = LastRequest> {
    let is_of = move |index| process.is_none_or(|of| dead.threads.process(index) == usize::from(of));
    let entries = dead.threads.entries(pool).filter(move |entry| is_of(entry.index));
    let views = entries.map(|entry| dead.region().thread_view(usize::from(entry.index)));
    views.filter(|view| view.state == ThreadState::Busy).map(move |view| LastRequest::of(&view, name))
}

impl LastRequest {
    fn of(view: &ThreadView, pool: &str) -> Self {
        let running = clock::now().saturating_sub(view.since);
        Self { pool: pool.to_owned(), token: view.token, tid: view.tid, running }
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_TEXT)])
}
