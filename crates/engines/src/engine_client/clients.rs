//! The clients of all I/O threads, as the supervisor and the admin API reach them.

use super::{ClientCommand, Running};
use crate::kind::EngineKind;
use regent_wire::{EngineMemory, Repeats, Token};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// For what I/O threads know. A module may hold one up, and a dead engine is not replaced before they have said it.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Sends commands to the clients of one engine. One whose I/O thread has ended does nothing, and knows nothing.
#[derive(Clone)]
pub struct EngineClients {
    pub kind: EngineKind,
    /// By I/O thread.
    clients: Vec<mpsc::UnboundedSender<ClientCommand>>,
}

impl EngineClients {
    /// Also returns where the client of each I/O thread gets its commands.
    pub(crate) fn new(
        kind: EngineKind,
        io_threads: u32,
    ) -> (Self, Vec<mpsc::UnboundedReceiver<ClientCommand>>) {
        let (clients, commands) = (0..io_threads).map(|_| mpsc::unbounded_channel()).unzip();
        (Self { kind, clients }, commands)
    }

    /// All I/O threads use this memory for new requests when it returns.
    pub(crate) async fn switch_to(&self, backend: &Arc<EngineMemory>) {
        for done in self.ask(|done| ClientCommand::Switch(Arc::clone(backend), done)) {
            let _ = done.await;
        }
    }

    /// The engine of this memory is dead, and another one is current. `repeats`: what of its requests may be run again.
    pub(crate) fn forget_dead(&self, dead: &Arc<EngineMemory>, repeats: Repeats) {
        for client in &self.clients {
            let _ = client.send(ClientCommand::ForgetDead(Arc::clone(dead), repeats));
        }
    }

    /// The engine has ended for good: those who wait for its responses are told.
    pub(crate) fn lose(&self) {
        for client in &self.clients {
            let _ = client.send(ClientCommand::Lose);
        }
    }

    /// Every request that waits looks at its pool again.
    pub(crate) fn look_at_pools(&self) {
        for client in &self.clients {
            let _ = client.send(ClientCommand::Look);
        }
    }

    /// The thread that runs this request does not come back.
    pub(crate) fn write_off(&self, backend: &Arc<EngineMemory>, token: Token) {
        for client in &self.clients {
            let _ = client.send(ClientCommand::WriteOff(Arc::clone(backend), token));
        }
    }

    /// A process of the engine that was this thread has died: its request is lost or, as `repeats` allows, run again, and the
    /// number may be used again when the future has ended. Who waits for it is told by the call, before anything that is said
    /// after it.
    pub(crate) fn bury(
        &self,
        backend: &Arc<EngineMemory>,
        thread: u16,
        repeats: Repeats,
    ) -> impl Future<Output = ()> + use<> {
        let told = self.ask(|done| ClientCommand::Bury(Arc::clone(backend), thread, repeats, done));
        async move {
            for done in told {
                let _ = done.await;
            }
        }
    }

    /// What these requests of the engine are. They are asked about by the call, before anything that is said after it;
    /// the answers are awaited, as far as they come in time.
    pub fn describe(
        &self,
        backend: &Arc<EngineMemory>,
        tokens: Arc<[Token]>,
    ) -> impl Future<Output = HashMap<Token, Running>> + use<> {
        let question = |answer| ClientCommand::Describe(Arc::clone(backend), Arc::clone(&tokens), answer);
        gather(self.ask(question))
    }

    fn ask<T>(&self, command: impl Fn(oneshot::Sender<T>) -> ClientCommand) -> Vec<oneshot::Receiver<T>> {
        let ask = |client: &mpsc::UnboundedSender<ClientCommand>| {
            let (sender, receiver) = oneshot::channel();
            client.send(command(sender)).is_ok().then_some(receiver)
        };
        self.clients.iter().filter_map(ask).collect()
    }
}

async fn gather(answers: Vec<oneshot::Receiver<Vec<(Token, Running)>>>) -> HashMap<Token, Running> {
    let (mut known, end) = (HashMap::new(), Instant::now() + ANSWER_WAIT);
    for answer in answers {
        // One that has ended, or is late, knows nothing.
        let answer = timeout_at(end, answer).await;
        known.extend(answer.ok().and_then(Result::ok).unwrap_or_default());
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::RequestLine;

    #[tokio::test(start_paused = true)]
    async fn an_io_thread_that_hangs_keeps_nobody_from_what_the_others_know() {
        let (_hangs, late) = oneshot::channel();
        let (knows, in_time) = oneshot::channel();
        let line = RequestLine { method: Vec::new(), uri: Vec::new(), script: Vec::new() };
        let running = Running { line, route: None, is_repeated: false };
        knows.send(vec![(Token { slot: 0, generation: 1 }, running)]).expect("it is awaited");
        assert_eq!(gather(vec![late, in_time]).await.len(), 1);
    }
}
