//! A request's place in the pool, and the wait for one.

use super::Shared;
use crate::routes::{Route, Start};
use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// The right of one request to be on the pool's queue and to run. Dropping it gives the place back, whatever became of
/// the request.
pub struct Place {
    route: Arc<Route>,
    /// What a new route counts as besides.
    newcomer_of: Option<Arc<Route>>,
    shared: Arc<Shared>,
    start: Cell<Option<Start>>,
    /// Its line waits until the request is on the queue.
    holds_line: Cell<bool>,
}

/// The wait for a place. Dropped before its end, it leaves the line; a place that was just given goes to the next.
#[derive(Debug)]
#[must_use = "a request that does not await its turn has left the line"]
pub struct Turn {
    place: oneshot::Receiver<Place>,
    held_back: Option<HeldBack>,
}

/// Counted while it waits.
#[derive(Debug)]
struct HeldBack {
    route: Arc<Route>,
    shared: Arc<Shared>,
}

impl Place {
    /// Lets a request in.
    pub(super) fn new(route: Arc<Route>, newcomer_of: Option<Arc<Route>>, shared: Arc<Shared>) -> Self {
        route.let_in();
        newcomer_of.iter().for_each(|common| common.let_newcomer_in());
        Self { route, newcomer_of, shared, start: Cell::new(None), holds_line: Cell::new(false) }
    }

    /// Lets the first of its line in.
    pub(super) fn from_line(route: Arc<Route>, newcomer_of: Option<Arc<Route>>, shared: Arc<Shared>) -> Self {
        let place = Self::new(route, newcomer_of, shared);
        place.holds_line.set(true);
        place
    }

    /// Nobody waits for it.
    pub(super) fn leave_line(&self) {
        self.holds_line.set(false);
    }

    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// What the request counts as besides its route, since that is new.
    pub fn newcomer_of(&self) -> Option<&Arc<Route>> {
        self.newcomer_of.as_ref()
    }

    /// The request is on the pool's queue. Tell it at once: the next of its line goes there only after it, so that
    /// they start in the order of arrival.
    pub fn queued(&self) {
        if self.holds_line.replace(false) {
            self.shared.moved(&self.route);
        }
    }

    /// A thread has taken the request from the queue. Tell it as soon as it is known: from then on the request counts
    /// as running, and only so a route that hangs is noticed before its requests end.
    pub fn started(&self, now: Duration) {
        self.queued();
        if self.start.get().is_none() {
            let start = self.route.begin(now);
            self.newcomer_of.iter().for_each(|common| common.begin_at(start));
            self.start.set(Some(start));
        }
    }

    /// The request has ended after so long in PHP. Its place is free, and the route's service time known better.
    pub fn finished(self, execution: Duration) {
        self.route.record(execution);
        self.newcomer_of.iter().for_each(|common| common.record(execution));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(start) = self.start.take() {
            self.route.end(start);
            self.newcomer_of.iter().for_each(|common| common.end(start));
        }
        self.route.let_out();
        self.newcomer_of.iter().for_each(|common| common.let_newcomer_out());
        if self.holds_line.get() {
            self.shared.moved(&self.route);
        } else if self.route.is_limited() {
            self.shared.advance();
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("route", &self.route.name()).field("start", &self.start).finish()
    }
}

impl Turn {
    pub(super) fn new(place: oneshot::Receiver<Place>, route: Arc<Route>, shared: Arc<Shared>) -> Self {
        route.hold_back();
        shared.waiting.fetch_add(1, Relaxed);
        Self { place, held_back: Some(HeldBack { route, shared }) }
    }
}

impl Future for Turn {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Place> {
        let place = std::task::ready!(Pin::new(&mut self.place).poll(context));
        self.held_back = None;
        Poll::Ready(place.expect("invariant: a line drops senders only of turns that were dropped"))
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.route.release();
        self.shared.waiting.fetch_sub(1, Relaxed);
    }
}
