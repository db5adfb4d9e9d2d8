//! What waits for one subscriber: the dispatcher puts updates in, the connection takes them out.

use crate::update::Update;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Updates that may wait for one subscriber: a burst for one that reads, the end of one that does not.
const MOST_WAITING: usize = 4096;
/// Their bytes, which those that wait for several subscribers have in common.
const MOST_BYTES: usize = 8 << 20;

/// Why a subscriber gets nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It has not taken what waited for it. When it comes again, it gets that from the history.
    Slow,
    /// The hub has closed.
    Closed,
}

/// Shared by the dispatcher and one connection. Nobody holds its lock for longer than it takes to move a pointer.
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    updates: VecDeque<Arc<Update>>,
    bytes: usize,
    /// Since when the connection has taken nothing of what waits. `None`: nothing waits.
    untouched: Option<Instant>,
    end: Option<End>,
    waker: Option<Waker>,
}

impl Mailbox {
    /// `patience`: how long something may wait while nothing is taken; 0: for ever. Answers whether the subscriber goes on.
    pub fn put(&self, update: &Arc<Update>, now: Instant, patience: Duration) -> bool {
        let mut waiting = self.lock();
        if waiting.end.is_some() {
            return false;
        }
        let is_stuck =
            |since: Instant| !patience.is_zero() && now.saturating_duration_since(since) > patience;
        let is_full = waiting.updates.len() >= MOST_WAITING || waiting.bytes >= MOST_BYTES;
        if is_full || waiting.untouched.is_some_and(is_stuck) {
            waiting.updates = VecDeque::new();
            waiting.end(End::Slow);
            return false;
        }
        waiting.bytes += update.size();
        waiting.untouched.get_or_insert(now);
        waiting.updates.push_back(Arc::clone(update));
        waiting.wake();
        true
    }

    pub fn end(&self, end: End) {
        self.lock().end(end);
    }

    /// The next event; an end comes after what waits.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, End>> {
        let mut waiting = self.lock();
        if let Some(update) = waiting.updates.pop_front() {
            waiting.bytes -= update.size();
            waiting.untouched = (!waiting.updates.is_empty()).then(Instant::now);
            return Poll::Ready(Ok(update.event()));
        }
        if let Some(end) = waiting.end {
            return Poll::Ready(Err(end));
        }
        if !waiting.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            waiting.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The connection is busy with the past: what waits is not stuck.
    pub fn touch(&self) {
        let mut waiting = self.lock();
        if waiting.untouched.is_some() {
            waiting.untouched = Some(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Publication;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn update(data: &str) -> Arc<Update> {
        let publication =
            Publication { topics: vec!["t".into()], data: data.into(), ..Publication::default() };
        Arc::new(Update::new(publication).unwrap())
    }

    fn poll(mailbox: &Mailbox) -> Poll<Result<Bytes, End>> {
        mailbox.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn updates_come_out_as_they_went_in_and_then_the_end() {
        let mailbox = Mailbox::default();
        let (first, second) = (update("1"), update("2"));
        assert!(poll(&mailbox).is_pending());
        assert!(
            mailbox.put(&first, Instant::now(), PATIENCE) && mailbox.put(&second, Instant::now(), PATIENCE)
        );
        mailbox.end(End::Closed);
        assert!(!mailbox.put(&first, Instant::now(), PATIENCE));
        assert_eq!(poll(&mailbox), Poll::Ready(Ok(first.event())));
        assert_eq!(poll(&mailbox), Poll::Ready(Ok(second.event())));
        assert_eq!(poll(&mailbox), Poll::Ready(Err(End::Closed)));
    }

    #[test]
    fn who_does_not_read_is_cut_off() {
        let (mailbox, update) = (Mailbox::default(), update("x"));
        let taken = (0..MOST_WAITING + 1).filter(|_| mailbox.put(&update, Instant::now(), PATIENCE)).count();
        assert_eq!(taken, MOST_WAITING);
        assert_eq!(poll(&mailbox), Poll::Ready(Err(End::Slow)));
    }

    #[test]
    fn few_large_updates_are_too_many_too() {
        let (mailbox, update) = (Mailbox::default(), update(&"x".repeat(1 << 20)));
        let taken = (0..100).filter(|_| mailbox.put(&update, Instant::now(), PATIENCE)).count();
        assert!(taken <= 8, "{taken}");
    }

    #[test]
    fn who_takes_nothing_for_too_long_is_cut_off_and_who_takes_something_is_not() {
        let (mailbox, update) = (Mailbox::default(), update("x"));
        let start = Instant::now();
        let put = |after| mailbox.put(&update, start + after, PATIENCE);
        assert!(put(Duration::ZERO) && put(PATIENCE));
        assert!(poll(&mailbox).is_ready() && poll(&mailbox).is_ready());
        assert!(put(3 * PATIENCE) && put(4 * PATIENCE));
        assert!(!put(4 * PATIENCE + Duration::from_millis(1)));
        assert_eq!(poll(&mailbox), Poll::Ready(Err(End::Slow)));
    }

    #[test]
    fn without_a_limit_nobody_waits_too_long() {
        let (mailbox, update) = (Mailbox::default(), update("x"));
        let now = Instant::now();
        assert!(mailbox.put(&update, now, Duration::ZERO));
        assert!(mailbox.put(&update, now + Duration::from_secs(3600), Duration::ZERO));
    }
}
