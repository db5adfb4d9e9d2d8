//! Requests that ran for longer than they may, as their engine tells of them: it has ended them by then.

use super::State;
use super::generations::Role;
use regent_wire::control::{Overdue, OverdueEnd};
use regent_wire::{ThreadState, clock};
use std::time::Duration;

/// Why a generation is replaced.
const HUNG: &str = "a thread does not come back from its request";
/// Why a request was ended.
const OVERDUE: &str = "a request exceeded its request_timeout and was ended";
const DEPARTED: &str =
    "a request whose client has left stood in a wait for the departed_timeout and was ended";
/// Characters of each text in the log, and of a stack.
pub(super) const LONGEST_TEXT: usize = 500;
pub(super) const LONGEST_STACK: usize = 8000;

impl State {
    /// Names the request in the log, and what it took to end it.
    pub fn overdue(&mut self, id: u64, request: &Overdue) {
        let pool = self.generations.get(id).and_then(|generation| generation.threads.pool(request.index));
        let Some(pool_index) = pool.map(usize::from) else { return };
        let Some(plan) = self.setup.plan.pools.get(pool_index) else { return };
        let Overdue { index: thread, script, uri, limit_ms, ran_ms, departed, end, stack } = request;
        let (limit, ran) = (Duration::from_millis(*limit_ms), Duration::from_millis(*ran_ms));
        let (pool, script, uri, how) =
            (&plan.name, text_of(script, LONGEST_TEXT), text_of(uri, LONGEST_TEXT), describe(*end));
        let stack = text_of(stack, LONGEST_STACK);
        if *departed {
            self.setup.pools.registry.departed_request_ended(self.setup.pools.get(pool_index).id);
            tracing::warn!(pool, thread, script, uri, ?limit, ?ran, how, stack, "{DEPARTED}");
        } else {
            tracing::warn!(pool, thread, script, uri, ?limit, ?ran, how, stack, "{OVERDUE}");
        }
        match end {
            OverdueEnd::WrittenOff => self.write_off(id, *thread),
            OverdueEnd::Killed => self.note_written_off(pool_index),
            OverdueEnd::Opcode | OverdueEnd::Signal | OverdueEnd::Socket => {}
        }
    }

    /// Another thread takes the place of one that does not come back for now from the request that it has taken then: at once,
    /// since the one that hangs may have to be written off, which is decided later.
    pub fn stand_in(&mut self, id: u64, thread: u16, started: Duration) {
        let role = self.generations.role(id);
        let Some(generation) = self.generations.get_mut(id) else { return };
        let view = generation.region().thread_view(usize::from(thread));
        // It has come back meanwhile otherwise, and may have another.
        if view.state != ThreadState::Busy || view.since > started {
            return;
        }
        self.setup.clients.write_off(&generation.backend, view.token);
        let Some(pool) = generation.threads.stand_in(thread) else { return };
        // If it comes back after all it is to end.
        generation.region().retire(usize::from(thread));
        match role {
            Role::Current => self.autoscaler.make_up(generation, usize::from(pool)),
            // What waits in the queue of an engine that drains is served there.
            Role::Draining if generation.region().waiting(usize::from(pool)) > 0 => {
                let threads = generation.threads.order(pool, 1, clock::now());
                generation.start_threads(threads);
            }
            Role::Draining | Role::Replacement | Role::Gone => {}
        }
    }

    /// The thread does not come back: another generation takes the place of this one, which ends with its other requests.
    fn write_off(&mut self, id: u64, thread: u16) {
        let started = self.generations.get(id).map(|of| of.region().thread_view(usize::from(thread)).since);
        self.stand_in(id, thread, started.unwrap_or_default());
        let role = self.generations.role(id);
        let Some(generation) = self.generations.get_mut(id) else { return };
        generation.region().retire(usize::from(thread));
        let Some(pool) = generation.threads.write_off(thread) else { return };
        self.note_written_off(usize::from(pool));
        if role == Role::Current {
            self.replace(HUNG);
        }
    }
}

impl State {
    fn note_written_off(&self, pool: usize) {
        self.setup.pools.registry.thread_written_off(self.setup.pools.get(pool).id);
    }
}

fn describe(end: OverdueEnd) -> &'static str {
    match end {
        OverdueEnd::Opcode => "PHP ended the script",
        OverdueEnd::Signal => "a signal broke off what it waited for, and PHP ended the script",
        OverdueEnd::Socket => "the socket that it waited for was shut down, and PHP ended the script",
        OverdueEnd::WrittenOff => "nothing helped; its thread is written off",
        OverdueEnd::Killed => "nothing helped; its process was killed",
    }
}

pub(super) fn text_of(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}
