//! Requests that are run once more, because their engine died while it ran them.

use super::{Phase, Record, SlotTable};
use crate::clock::{self, nanoseconds};
use crate::layout::BodyState;
use crate::slot::{StateWord, Token};
use std::time::Duration;

/// Whose requests may be run again, of those that a dead engine, or one process of it, has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    Nobodys,
    /// All but that of the thread with this number of the kernel, which has ended the engine.
    AllBut(u32),
    Everybodys,
}

/// What a request brings along from its first run.
#[derive(Clone, Copy)]
pub(super) struct SecondRun {
    /// As if it had waited without a break, in ns of the monotonic clock.
    submitted: u64,
    /// What is left of it, in ns; 0: it has none.
    time_limit: u64,
}

impl<G> SlotTable<G> {
    /// If the engine dies while it runs the request, that is to be queued again, once and until then
    /// ([`crate::clock::now`]): as long as its body is complete and as a whole in the ring, and nothing of the response has
    /// been read but lines for the log. Before it is [submitted](Self::submit).
    pub fn may_repeat(&mut self, token: Token, until: Duration) {
        self.record_mut(token).repeat_until.set(nanoseconds(until));
    }

    /// Whether its engine has died while it ran the request, which was queued again.
    pub fn is_repeated(&self, token: Token) -> bool {
        self.record(token).is_repeated
    }

    /// The same of a request of this table of which an engine says that it runs it.
    pub fn runs_again(&self, token: Token) -> bool {
        self.record_of(token).is_some_and(|record| record.is_repeated)
    }

    /// Since when it waits for a thread, by [`crate::clock::now`]; the time that a thread has run it does not count.
    pub fn waits_since(&self, token: Token) -> Duration {
        Duration::from_nanos(self.record(token).submitted)
    }

    /// Of a request whose thread has died. `None`: it is lost.
    pub(super) fn second_run(&self, token: Token, repeats: Repeats) -> Option<SecondRun> {
        let (record, index) = (self.record(token), self.index(token.slot));
        let region = record.backend().region();
        let thread = StateWord(&region.slot(index).state).runner(token.generation)?;
        if record.phase != Phase::Held || thread >= region.geometry().threads as usize {
            return None;
        }
        let is_allowed = match repeats {
            Repeats::Nobodys => false,
            Repeats::AllBut(tid) => region.thread_view(thread).tid != tid,
            Repeats::Everybodys => true,
        };
        let now = nanoseconds(clock::now());
        if !is_allowed || now >= record.repeat_until.get() || !self.is_repeatable(index, record) {
            return None;
        }
        let view = region.thread_view(thread);
        let is_it = view.token == (Token { slot: index as u32, generation: token.generation });
        // The engine can have written any time.
        let began = if is_it { nanoseconds(view.since) } else { record.submitted };
        let began = began.min(now).max(record.submitted);
        let ran = now.saturating_sub(began);
        let time_limit = record.time_limit.saturating_sub(ran);
        let is_over = record.time_limit != 0 && time_limit == 0;
        (!is_over).then_some(SecondRun { submitted: record.submitted.saturating_add(ran), time_limit })
    }

    pub(super) fn begin_again(&mut self, token: Token, second: SecondRun) {
        let record = self.record_mut(token);
        record.submitted = second.submitted;
        record.time_limit = second.time_limit;
        record.repeat_until.set(0);
        record.is_repeated = true;
    }

    /// Whether the request is there as it was, and nobody has seen of its response what cannot be unsaid.
    fn is_repeatable(&self, index: usize, record: &Record<G>) -> bool {
        let unparsed = record.unparsed.take();
        let is_read = unparsed.is_empty();
        record.unparsed.set(unparsed);
        is_read
            && self.response_reader(index, record).available() == Ok(0)
            && record.body.get() == BodyState::Complete
            && record.written.get() <= u64::from(record.backend().region().geometry().request_capacity)
    }
}
