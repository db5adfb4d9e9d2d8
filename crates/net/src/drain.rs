//! Ending connections in good order.

use crate::coarse_instant::CoarseInstant;
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Tells all connections of a thread to end with the request that they are at.
#[derive(Default)]
pub struct Drain {
    begun: Cell<bool>,
    news: Notify,
}

/// A connection's watch on a [`Drain`]. As long as nothing has begun, asking it again costs next to nothing: it is asked
/// at every turn of every connection.
pub struct DrainWatch<'a> {
    drain: &'a Drain,
    news: Pin<Box<Notified<'a>>>,
    registered: Option<Waker>,
}

impl Drain {
    pub fn begin(&self) {
        self.begun.set(true);
        self.news.notify_waiters();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Ends when it has begun.
    pub async fn begun(&self) {
        let news = self.news.notified();
        if !self.begun.get() {
            news.await;
        }
    }

    /// Ends when it has begun, and a client that came then has had this time for its first request. It may have sent it already,
    /// and would see a reset: balancers open a connection and ask at once.
    pub async fn begun_for_client_of(&self, came: CoarseInstant, last_request: Duration) {
        self.begun().await;
        tokio::time::sleep(CoarseInstant::now().left(came, last_request)).await;
    }

    pub fn watch(&self) -> DrainWatch<'_> {
        DrainWatch { drain: self, news: Box::pin(self.news.notified()), registered: None }
    }
}

impl DrainWatch<'_> {
    /// Whether it has begun; wakes the task otherwise when it does.
    pub fn poll_begun(&mut self, context: &mut Context<'_>) -> bool {
        let waker = context.waker();
        if !self.drain.begun.get() && !self.registered.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.registered = Some(waker.clone());
            let _: Poll<()> = self.news.as_mut().poll(context);
        }
        self.drain.begun.get()
    }
}
