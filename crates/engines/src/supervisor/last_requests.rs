//! What ran in an engine that has died: one of these requests is why, or they all died of something else.

use super::generation::Generation;
use crate::engine_client::EngineClients;
use crate::plan::PoolPlan;
use regent_wire::{RequestLine, ThreadState, ThreadView, Token, clock};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

/// Requests that the log names; of the others it says how many there were.
const NAMED: usize = 10;
/// Bytes of each of its texts.
const LONGEST_TEXT: usize = 500;

/// A request that a thread was at.
struct LastRequest {
    pool: String,
    token: Token,
    running: Duration,
}

/// Names them in the log. Has to be called before the I/O threads are told of the engine's end, and does not wait for what
/// they know.
pub(super) fn report(dead: &Generation, plans: &[PoolPlan], clients: &EngineClients) {
    let requests: Vec<LastRequest> =
        plans.iter().enumerate().flat_map(|(pool, plan)| of_pool(dead, pool as u16, &plan.name)).collect();
    tell(dead, requests, clients);
}

/// The same for one process of an engine that has several, before what it has left in the memory is buried.
pub(super) fn report_one(generation: &Generation, index: u16, pool: &str, clients: &EngineClients) {
    let view = generation.region().thread_view(usize::from(index));
    let request = (view.state == ThreadState::Busy).then(|| LastRequest::of(&view, pool));
    tell(generation, request.into_iter().collect(), clients);
}

fn tell(dead: &Generation, requests: Vec<LastRequest>, clients: &EngineClients) {
    if requests.is_empty() {
        return;
    }
    let tokens = requests.iter().take(NAMED).map(|request| request.token).collect();
    let lines = clients.describe(&dead.backend, tokens);
    tokio::spawn(async move { log(&requests, &lines.await) });
}

fn of_pool(dead: &Generation, pool: u16, name: &str) -> impl Iterator<Item = LastRequest> {
    let views = dead.threads.entries(pool).map(|entry| dead.region().thread_view(usize::from(entry.index)));
    views.filter(|view| view.state == ThreadState::Busy).map(move |view| LastRequest::of(&view, name))
}

impl LastRequest {
    fn of(view: &ThreadView, pool: &str) -> Self {
        let running = clock::now().saturating_sub(view.since);
        Self { pool: pool.to_owned(), token: view.token, running }
    }
}

fn log(requests: &[LastRequest], lines: &HashMap<Token, RequestLine>) {
    for LastRequest { pool, token, running } in requests.iter().take(NAMED) {
        // The engine can have written any token.
        let Some(line) = lines.get(token) else { continue };
        let (method, uri, script) = (text(&line.method), text(&line.uri), text(&line.script));
        tracing::error!(pool, %method, %uri, %script, ?running, "this request was running when the engine died");
    }
    if let Some(more) = requests.len().checked_sub(NAMED).filter(|more| *more > 0) {
        tracing::error!(more, "more requests were running when the engine died");
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_TEXT)])
}
