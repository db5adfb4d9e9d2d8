//! What threads are at, as their engine tells when it is asked.

use super::State;
use super::commands::CommandRefused;
use super::overdue::{LONGEST_STACK, text_of};
use tokio::sync::oneshot;

pub(super) type TraceAnswer = oneshot::Sender<Result<String, CommandRefused>>;

/// Who waits to be told.
#[derive(Default)]
pub(super) struct Traces {
    /// With the generation and the thread.
    waiting: Vec<(u64, u16, TraceAnswer)>,
}

impl State {
    /// Asks the current engine.
    pub fn trace(&mut self, index: u16, answer: TraceAnswer) {
        let current = &self.generations.current;
        if current.threads.pool(index).is_none() {
            // Who asked may have gone.
            let _ = answer.send(Err(CommandRefused::NoThread(index)));
            return;
        }
        current.trace(index);
        let id = current.id;
        self.traces.waiting.retain(|(_, _, answer)| !answer.is_closed());
        self.traces.waiting.push((id, index, answer));
    }

    pub fn traced(&mut self, id: u64, index: u16, stack: &str) {
        let is_meant = |waiting: &mut (u64, u16, TraceAnswer)| waiting.0 == id && waiting.1 == index;
        for (_, _, answer) in self.traces.waiting.extract_if(.., is_meant) {
            let _ = answer.send(Ok(text_of(stack, LONGEST_STACK)));
        }
    }
}
