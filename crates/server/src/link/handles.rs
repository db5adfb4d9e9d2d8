//! The links of all I/O threads to the engines of one kind, as others reach them.

use super::LinkCommand;
use crate::acceptor::Command;
use crate::kind::EngineKind;
use regent_wire::{Backend, RequestLine, Token};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Sends commands to the links. One whose I/O thread has ended does nothing, and knows nothing.
#[derive(Clone)]
pub(crate) struct LinkHandles {
    pub kind: EngineKind,
    pub io_threads: Vec<mpsc::UnboundedSender<Command>>,
}

impl LinkHandles {
    /// All I/O threads use this memory for new requests when it returns.
    pub async fn switch_to(&self, backend: &Arc<Backend>) {
        for done in self.ask(|done| LinkCommand::Switch(Arc::clone(backend), done)) {
            let _ = done.await;
        }
    }

    /// The engine of this memory is dead, and another one is current.
    pub fn bury(&self, dead: &Arc<Backend>) {
        for thread in &self.io_threads {
            let _ = thread.send(Command::Link(self.kind, LinkCommand::Bury(Arc::clone(dead))));
        }
    }

    /// Every request that waits looks at its pool again.
    pub fn look_at_pools(&self) {
        for thread in &self.io_threads {
            let _ = thread.send(Command::Link(self.kind, LinkCommand::Look));
        }
    }

    /// What these requests of the engine are. They are asked about by the call, before anything that is said after it;
    /// the answers are awaited.
    pub fn describe(
        &self,
        backend: &Arc<Backend>,
        tokens: Arc<[Token]>,
    ) -> impl Future<Output = HashMap<Token, RequestLine>> + use<> {
        let question = |answer| LinkCommand::Describe(Arc::clone(backend), Arc::clone(&tokens), answer);
        let answers = self.ask(question);
        async move {
            let mut lines = HashMap::new();
            for answer in answers {
                lines.extend(answer.await.unwrap_or_default());
            }
            lines
        }
    }

    fn ask<T>(&self, command: impl Fn(oneshot::Sender<T>) -> LinkCommand) -> Vec<oneshot::Receiver<T>> {
        let ask = |thread: &mpsc::UnboundedSender<Command>| {
            let (sender, receiver) = oneshot::channel();
            thread.send(Command::Link(self.kind, command(sender))).is_ok().then_some(receiver)
        };
        self.io_threads.iter().filter_map(ask).collect()
    }
}
