//! How many connections by HTTP/1.1 there may be to an upstream (`max_conns_per_host`), of all I/O threads together. (By HTTP/2
//! each has one, whatever is said.)

use regent_config::UpstreamAddress;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The limits of a directive.
#[derive(Default)]
pub(crate) struct Limits(Mutex<HashMap<UpstreamAddress, Weak<Limit>>>);

/// That of one upstream.
pub(crate) struct Limit {
    places: Arc<Semaphore>,
    /// Requests that wait for a place.
    waiting: AtomicUsize,
    /// One has begun to.
    wanted: Notify,
}

/// For a connection, as long as that is there.
pub(crate) struct Place {
    _place: OwnedSemaphorePermit,
    /// It is the same as long as one of its places is taken.
    _limit: Arc<Limit>,
}

impl Limits {
    pub fn of(&self, upstream: &UpstreamAddress, most: u16) -> Arc<Limit> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limit) = all.get(upstream).and_then(Weak::upgrade) {
            return limit;
        }
        all.retain(|_, limit| limit.strong_count() > 0);
        let limit = Arc::new(Limit::new(most));
        all.insert(upstream.clone(), Arc::downgrade(&limit));
        limit
    }
}

/// Counted as long as it waits.
struct Waiting<'a>(&'a Limit);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Limit {
    fn new(most: u16) -> Self {
        let places = Arc::new(Semaphore::new(usize::from(most)));
        Self { places, waiting: AtomicUsize::new(0), wanted: Notify::new() }
    }

    /// Waits for a place, in turn. Whoever has a connection that is not in use is told to give it up.
    pub async fn place(self: &Arc<Self>) -> Place {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => self.wait().await,
        };
        Place { _place: place, _limit: Arc::clone(self) }
    }

    async fn wait(&self) -> OwnedSemaphorePermit {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        self.wanted.notify_waiters();
        Arc::clone(&self.places).acquire_owned().await.expect("invariant: it is never closed")
    }

    /// Requests that wait for a place now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Ends when somebody waits for a place.
    pub async fn wanted(&self) {
        let mut news = pin!(self.wanted.notified());
        // What begins from here on is noticed, and what has begun before is counted.
        news.as_mut().enable();
        if self.waiting() == 0 {
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    fn address(port: u16) -> UpstreamAddress {
        UpstreamAddress::Tcp { host: "a".into(), port }
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_says_so_and_waits() {
        let limits = Limits::default();
        let (limit, same) = (limits.of(&address(1), 1), limits.of(&address(1), 1));
        let place = limit.place().await;
        let waits = same.place();
        tokio::pin!(waits);
        assert!(timeout(Duration::from_secs(1), &mut waits).await.is_err());
        assert_eq!(limit.waiting(), 1);
        limit.wanted().await;
        drop(place);
        let _place = waits.await;
        assert_eq!(limit.waiting(), 0);
        assert!(timeout(Duration::from_secs(1), limit.wanted()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_waits_no_longer() {
        let limit = Limits::default().of(&address(1), 1);
        let _place = limit.place().await;
        assert!(timeout(Duration::from_millis(1), limit.place()).await.is_err());
        assert_eq!(limit.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_lives_as_long_as_its_places() {
        let limits = Limits::default();
        let place = limits.of(&address(1), 1).place().await;
        let other = limits.of(&address(2), 1);
        assert!(timeout(Duration::from_millis(1), limits.of(&address(1), 1).place()).await.is_err());
        drop((place, other));
        let _place = limits.of(&address(1), 1).place().await;
        assert_eq!(limits.0.lock().unwrap().len(), 1);
    }
}
