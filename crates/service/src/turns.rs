//! Work that is done outside of the I/O threads, a bounded number at a time: passwords are hashed, which takes a core for up to
//! seconds, and directories are listed.

use std::cell::Cell;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// At the same time, of an I/O thread and a listening address: strangers can ask for any number.
const AT_ONCE: usize = 2;
/// Requests that may wait for their turn; more are answered with 503.
const MOST_WAITING: usize = 64;

pub struct Turns {
    turns: Arc<Semaphore>,
    waiting: Cell<usize>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)), waiting: Cell::new(0) }
    }
}

impl Turns {
    /// `None`: too many wait.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.waiting.get() == MOST_WAITING {
            return None;
        }
        let waiting = Waiting::new(&self.waiting);
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        drop(waiting);
        // The turn ends when the work is done, also if the client has left by then.
        let done = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(done).await.ok()
    }
}

/// A client may leave while it waits.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::mpsc;

    #[tokio::test]
    async fn who_leaves_makes_no_room_before_the_work_is_done() {
        let checks = Turns::default();
        let gates: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (open, gate) = mpsc::channel::<()>();
                let check = checks.run(move || gate.recv());
                assert!(check.now_or_never().is_none(), "it has begun, and its client leaves");
                open
            })
            .collect();
        assert!(checks.run(|| ()).now_or_never().is_none(), "it waits for its turn");
        assert_eq!((checks.turns.available_permits(), checks.waiting.get()), (0, 0));
        drop(gates);
        assert_eq!(checks.run(|| 1).await, Some(1));
    }

    #[tokio::test]
    async fn no_more_than_so_many_wait() {
        let checks = Turns::default();
        let turns = checks.turns.acquire_many(AT_ONCE as u32).await.unwrap();
        let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| Box::pin(checks.run(|| ()))).collect();
        assert!(waiting.iter_mut().all(|check| check.now_or_never().is_none()));
        assert_eq!(checks.run(|| ()).now_or_never(), Some(None));
        drop((waiting, turns));
        assert_eq!(checks.run(|| ()).await, Some(()));
    }
}
