//! Putting newly loaded modules in the place of those that run in the server.

use crate::acceptor::Command;
use regent_config::NativeGlobal;
use regent_gateway::Inlined;
use regent_module_loader::LoadError;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot};

/// The modules that run in the server, as who restarts them sees it.
pub(crate) struct InlineReload {
    native: NativeGlobal,
    io_threads: Vec<mpsc::UnboundedSender<Command>>,
    /// Held by a restart: of two at once, the one that has loaded first must not take over last.
    turn: Mutex<()>,
}

impl InlineReload {
    pub fn new(native: NativeGlobal, io_threads: Vec<mpsc::UnboundedSender<Command>>) -> Self {
        Self { native, io_threads, turn: Mutex::default() }
    }

    /// Waits until no other restart is under way; none begins while what is returned is held.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Loads them once more, beside those that run.
    pub async fn load(&self) -> Result<Arc<Inlined>, LoadError> {
        load(self.native.clone()).await
    }

    /// All I/O threads call these when it returns.
    pub async fn switch_to(&self, next: Arc<Inlined>) {
        for thread in &self.io_threads {
            let (done, old) = oneshot::channel();
            // A thread that has ended calls nothing.
            if thread.send(Command::Inline(Arc::clone(&next), done)).is_ok()
                && let Ok(old) = old.await
            {
                drop_elsewhere(old);
            }
        }
    }
}

/// Modules may do anything while they are initialised: not on a thread that others wait for.
pub(crate) async fn load(native: NativeGlobal) -> Result<Arc<Inlined>, LoadError> {
    let loading = tokio::task::spawn_blocking(move || Inlined::load(&native).map(Arc::new));
    loading.await.expect("invariant: loading does not panic")
}

/// The same goes for their cleanup.
pub(crate) fn drop_elsewhere(inlined: Arc<Inlined>) {
    tokio::task::spawn_blocking(move || drop(inlined));
}
