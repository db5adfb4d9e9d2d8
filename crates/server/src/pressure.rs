//! How an I/O thread tells the supervisor that requests wait, when that has stopped looking.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use tokio::sync::Notify;

/// Shared by all I/O threads and the supervisor.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    unwatched: AtomicBool,
    called: Notify,
}

impl Pressure {
    /// I/O thread: after a request was queued. Cheap while the supervisor looks by itself.
    ///
    /// Pairs with `rest`: either this sees the mark, or the supervisor's last look sees the request. The fence that this
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
    pub fn rest(&self) {
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
    fn the_supervisor_is_called_once_and_only_while_it_rests() {
        let pressure = Pressure::default();
        pressure.note(|| true);
        assert!(pressure.called().now_or_never().is_none());
        pressure.rest();
        pressure.note(|| false);
        assert!(pressure.called().now_or_never().is_none());
        pressure.note(|| true);
        pressure.note(|| panic!("it has been called already"));
        assert!(pressure.called().now_or_never().is_some());
        assert!(pressure.called().now_or_never().is_none());
    }
}
