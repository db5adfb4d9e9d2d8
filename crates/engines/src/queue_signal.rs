//! How an I/O thread tells the supervisor that requests wait, when that has stopped looking.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use tokio::sync::Notify;

/// Shared by all I/O threads and the supervisor.
#[derive(Debug, Default)]
pub struct QueueSignal {
    unwatched: AtomicBool,
    called: Notify,
}

impl QueueSignal {
    /// I/O thread: after a request was queued. Cheap while the supervisor looks by itself.
    ///
    /// Pairs with `idle`: either this sees the mark, or the supervisor's last look sees the request. The fence that this
    /// takes has been there since the push (`regent_wire`'s `Pool::wake_one`).
    pub fn note(&self, is_waiting: impl FnOnce() -> bool) {
        if self.unwatched.load(Ordering::Relaxed)
            && is_waiting()
            && self.unwatched.swap(false, Ordering::Relaxed)
        {
            self.called.notify_one();
        }
    }

    /// Supervisor: from now on it wants to be called. It looks at the queues once more after this.
    pub fn idle(&self) {
        self.unwatched.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Supervisor: it looks by itself from now on.
    pub fn watch(&self) {
        self.unwatched.store(false, Ordering::Relaxed);
    }

    /// Supervisor: ends when it is called.
    pub async fn called(&self) {
        self.called.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_supervisor_is_called_once_and_only_while_it_is_idle() {
        let queue_signal = QueueSignal::default();
        queue_signal.note(|| true);
        assert!(queue_signal.called().now_or_never().is_none());
        queue_signal.idle();
        queue_signal.note(|| false);
        assert!(queue_signal.called().now_or_never().is_none());
        queue_signal.note(|| true);
        queue_signal.note(|| panic!("it has been called already"));
        assert!(queue_signal.called().now_or_never().is_some());
        assert!(queue_signal.called().now_or_never().is_none());
    }
}
