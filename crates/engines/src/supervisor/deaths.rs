//! The death of one process of an engine whose threads are processes: it costs the request that ran in it, and another
//! process takes its place.

use super::State;
use super::blame::is_fault;
use super::generation::Generation;
use super::generations::Role;
use super::last_requests;
use super::process_handle::{EngineEvent, EventKind};
use super::replacement::backoff;
use crate::thread_table::ThreadStage;
use regent_wire::Repeats;
use regent_wire::control::{Event, Order, ThreadStart};
use std::time::Duration;

/// What becomes of the place of a process that has died.
enum Successor {
    /// Another process, after so long.
    After(ThreadStart, Duration),
    /// Nobody: it was about to end.
    None,
}

impl State {
    /// Names the request in the log, has those who wait for it told or has it run again, and has another process started.
    pub fn process_died(&mut self, id: u64, index: u16, how: &str, signal: Option<i32>) {
        let role = self.generations.role(id);
        let Some(generation) = self.generations.get_mut(id) else { return };
        let Some(pool) = generation.threads.pool(index) else { return };
        let (plan, shared) =
            (&self.setup.plan.pools[usize::from(pool)], self.setup.pools.get(usize::from(pool)));
        tracing::error!(pool = plan.name, thread = index, reason = how, "a process of PHP has died");
        last_requests::report_one(generation, index, &plan.name, &self.setup.clients);
        if plan.worker.is_some() {
            self.setup.pools.registry.worker_crashed(shared.id);
        }
        let next = successor(generation, role, ThreadStart { index, pool });
        generation.region().bury(usize::from(index));
        // Nothing else ran in it: what has not come from outside was its own request's doing.
        let is_killed = signal.is_some_and(|number| !is_fault(number));
        let repeats = if is_killed { Repeats::Everybodys } else { Repeats::Nobodys };
        let buried = self.setup.clients.bury(&generation.backend, index, repeats);
        let (orders, events) = (generation.process_of(index).orders(), self.events.clone());
        // Until all I/O threads have let go of the dead process's requests the number is nobody's: they would take those of
        // the next process for its.
        tokio::spawn(async move {
            buried.await;
            match next {
                Successor::After(thread, wait) => {
                    tokio::time::sleep(wait).await;
                    // The engine has ended otherwise.
                    let _ = orders.send(Order::Start { threads: vec![thread] });
                }
                Successor::None => {
                    let kind = EventKind::Message(Event::ThreadEnded { index, error: None });
                    // The supervisor has ended otherwise.
                    let _ = events.send(EngineEvent { id, process: 0, kind }).await;
                }
            }
        });
    }
}

/// One that dies before its first request, as its script may crash while it boots, is followed ever later.
fn successor(generation: &mut Generation, role: Role, thread: ThreadStart) -> Successor {
    let is_there_to_stay = generation
        .threads
        .entries(thread.pool)
        .any(|entry| entry.index == thread.index && entry.stage == ThreadStage::Ordered);
    if !is_there_to_stay || role == Role::Draining {
        return Successor::None;
    }
    let has_served = generation.region().thread_view(usize::from(thread.index)).requests > 0;
    let failures = generation.early_deaths.entry(thread.index).or_default();
    *failures = if has_served { 0 } else { *failures + 1 };
    Successor::After(thread, backoff(*failures))
}
