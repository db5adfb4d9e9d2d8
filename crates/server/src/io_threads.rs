//! The I/O threads, as the rest of the server talks to them.

use crate::StartError;
use crate::app::AppStart;
use crate::io_thread::{self, Command, IoStart};
use regent_config::HealthCheck;
use regent_connections::{ListenerChange, Opened};
use regent_gateway::Inlined;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Sends commands to all I/O threads. One that has ended does nothing.
pub(crate) struct IoThreads {
    pub commands: Vec<mpsc::UnboundedSender<Command>>,
    /// To the one that accepts.
    pub listeners: mpsc::UnboundedSender<ListenerChange>,
}

impl IoThreads {
    /// Each makes an App beside its current one. To be followed by [`Self::change`] or [`Self::discard`].
    pub async fn prepare(&self, starts: Vec<AppStart>) -> io::Result<()> {
        let mut answers = Vec::with_capacity(starts.len());
        for (thread, start) in self.commands.iter().zip(starts) {
            let (done, answer) = oneshot::channel();
            // Who has ended answers with an error.
            let _ = thread.send(Command::Prepare(Box::new(start), done));
            answers.push(answer);
        }
        for answer in answers {
            answer.await.map_err(|_| io::Error::other("an I/O thread has ended"))??;
        }
        Ok(())
    }

    /// The Apps that were prepared are current when this returns, at the same moment for all requests of a thread.
    pub async fn change(&self) {
        let answers: Vec<_> = self.commands.iter().map(|thread| ask(thread, Command::Change)).collect();
        for answer in answers {
            let _ = answer.await;
        }
    }

    /// All have done something else than one and the same thing when this returns.
    pub async fn answer(&self) {
        let answers: Vec<_> = self.commands.iter().map(|thread| ask(thread, Command::Answer)).collect();
        for answer in answers {
            // One that has ended does not hang.
            let _ = answer.await;
        }
    }

    /// Asks PHP, as this says; an error says why it is not ready.
    pub async fn probe(&self, check: HealthCheck) -> Result<(), String> {
        let Some(thread) = self.commands.first() else { return Ok(()) };
        let answer = ask(thread, |done| Command::Probe(check, done)).await;
        answer.unwrap_or_else(|_| Err("the I/O thread that asks has ended".to_owned()))
    }

    pub fn discard(&self) {
        for thread in &self.commands {
            let _ = thread.send(Command::Discard);
        }
        let _ = self.listeners.send(ListenerChange::Discard);
    }

    /// Makes sure that connections can come from these. To be followed by [`Self::open`] or [`Self::discard`].
    pub async fn prepare_to_open(&self, addresses: Vec<Opened>) -> io::Result<()> {
        let answer = ask(&self.listeners, |done| ListenerChange::Prepare(addresses, done));
        answer.await.map_err(|_| io::Error::other("the I/O thread that accepts has ended"))?
    }

    /// Connections come from what was prepared.
    pub fn open(&self) {
        // The thread has ended otherwise.
        let _ = self.listeners.send(ListenerChange::Begin);
    }

    /// Other descriptors of all sockets, each with the number of its address.
    pub async fn lend(&self) -> io::Result<Vec<(usize, OwnedFd)>> {
        let answer = ask(&self.listeners, ListenerChange::Lend);
        answer.await.map_err(|_| io::Error::other("the I/O thread that accepts has ended"))?
    }

    /// No connection comes from these addresses any more when this returns.
    pub async fn close(&self, numbers: &[usize]) {
        for number in numbers {
            let _ = ask(&self.listeners, |done| ListenerChange::Close(*number, done)).await;
        }
    }

    /// All call these modules when this returns. Gives back those before.
    pub async fn switch_inlined(&self, next: &Arc<Inlined>) -> Vec<Arc<Inlined>> {
        let mut before = Vec::new();
        for thread in &self.commands {
            let answer = ask(thread, |done| Command::Inline(Arc::clone(next), done));
            before.extend(answer.await.ok().flatten());
        }
        before
    }
}

fn ask<C, T>(
    thread: &mpsc::UnboundedSender<C>,
    command: impl FnOnce(oneshot::Sender<T>) -> C,
) -> oneshot::Receiver<T> {
    let (done, answer) = oneshot::channel();
    // The receiver ends with an error otherwise.
    let _ = thread.send(command(done));
    answer
}

/// The receiver is told when the thread has ended.
pub(crate) fn spawn(start: IoStart) -> Result<oneshot::Receiver<()>, StartError> {
    let (ended, receiver) = oneshot::channel();
    let name = format!("io-{}", start.index);
    let body = move || {
        if let Err(error) = io_thread::run(start) {
            tracing::error!(%error, "an I/O thread could not run");
        }
        // Nobody waits for it otherwise.
        let _ = ended.send(());
    };
    std::thread::Builder::new().name(name).spawn(body).map_err(StartError::Thread)?;
    Ok(receiver)
}
