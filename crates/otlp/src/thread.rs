//! The thread that sends: nothing else waits for the collector.

use std::io;
use tokio::runtime;
use tokio::sync::watch;

/// A thread that ends when it is told to, or this is dropped.
pub(crate) struct Thread {
    stop: watch::Sender<bool>,
    /// Closed when the thread has ended.
    ended: watch::Receiver<()>,
}

/// Whether the thread is to end.
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Thread {
    pub fn start<F>(name: &str, run: impl FnOnce(Stopping) -> F) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopping) = watch::channel(false);
        let (ends, ended) = watch::channel(());
        let running = run(Stopping(stopping));
        // One thread more looks up names.
        let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()?;
        let body = move || {
            runtime.block_on(running);
            // A look-up that hangs is left behind.
            runtime.shutdown_background();
            drop(ends);
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self { stop, ended })
    }

    /// Tells it to end, and waits until it has.
    pub async fn finish(&self) {
        self.stop.send_replace(true);
        // Nothing is ever sent by it.
        while self.ended.clone().changed().await.is_ok() {}
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Stopping {
    pub fn is_so(&self) -> bool {
        *self.0.borrow()
    }

    /// Until the thread is to end.
    pub async fn wait(&mut self) {
        // Whoever could say so is gone otherwise.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
