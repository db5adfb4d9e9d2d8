//! A request that was given to an engine.

use super::{EngineClient, Refused};
use crate::admission::Held;
use regent_wire::{Frame, ReadError, Token};
use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A request that was given to an engine. Dropped before its end, it is cancelled.
pub struct Submitted {
    pub(super) client: Rc<EngineClient>,
    pub(super) token: Option<Token>,
    /// Whether looks at the queue bound its wait.
    pub(super) is_watched: Cell<bool>,
}

impl Submitted {
    /// Keeps what the request holds until the engine has let go of it.
    pub fn keep(&self, held: Held) {
        self.client.port.borrow_mut().guard(self.token(), held);
    }

    /// Puts it on the pool's queue. It has been waiting since `arrival`, by [`regent_wire::clock`].
    pub fn submit(&self, pool: usize, arrival: Duration) -> Result<(), Refused> {
        let in_use = {
            let mut port = self.client.port.borrow_mut();
            port.submit(self.token(), pool, arrival)?;
            port.kept(self.token()).inspect(|held| held.place.queued());
            port.in_use()
        };
        if in_use == 1 {
            self.client.submitted.notify_one();
        }
        self.client.queue_signal.note(|| self.client.is_waiting(pool));
        // Answers that came meanwhile, of all engines: under load the runtime may not park for long.
        (self.client.drain_all)();
        Ok(())
    }

    /// Appends to the request body; returns how much was taken. When it was not all, news comes with the room.
    pub fn write_body(&self, bytes: &[u8]) -> Result<usize, ReadError> {
        self.client.port.borrow().write_body(self.token(), bytes)
    }

    /// Says how the request body ended.
    pub fn end_body(&self, state: regent_wire::BodyState) -> Result<(), ReadError> {
        self.client.port.borrow().end_body(self.token(), state)
    }

    /// Bounds its wait by [`EngineClient::wake_late`], if that can tell. It waits in the pool since `since`.
    pub fn watch(&self, pool: usize, since: Duration) {
        self.is_watched.set(self.client.waiting.borrow_mut().add(pool, self.token(), since));
    }

    pub fn is_watched(&self) -> bool {
        self.is_watched.get()
    }

    /// Whether it has waited for too long, and still does.
    pub fn is_late(&self) -> bool {
        self.client.waiting.borrow().is_late(self.token()) && self.is_queued()
    }

    /// Limits how long it may run. To be called before it is submitted.
    pub fn limit(&self, time: Duration) {
        self.client.overdue.expect();
        self.client.port.borrow_mut().limit(self.token(), time);
    }

    /// If its engine dies while it runs, it is to be run once more, until then at most ([`SlotTable::may_repeat`]). To be
    /// called before it is submitted.
    ///
    /// [`SlotTable::may_repeat`]: regent_wire::SlotTable::may_repeat
    pub fn may_repeat(&self, until: Duration) {
        self.client.port.borrow_mut().may_repeat(self.token(), until);
    }

    /// Whether that has happened: it has waited again since then.
    pub fn is_repeated(&self) -> bool {
        self.client.port.borrow().is_repeated(self.token())
    }

    /// Bounds its second wait in the pool as the [first](Self::watch).
    pub fn watch_again(&self, pool: usize) {
        let since = self.client.port.borrow().waits_since(self.token());
        self.client.waiting.borrow_mut().add_again(pool, self.token(), since);
    }

    /// Whether it has run for longer than it may, and still does.
    pub fn is_overdue(&self) -> bool {
        self.client.overdue.has(self.token())
    }

    /// Whether no thread has taken it yet.
    pub fn is_queued(&self) -> bool {
        self.client.port.borrow().is_queued(self.token())
    }

    /// The next part of the response, without waiting.
    pub fn try_frame(&self) -> Result<Option<Frame>, ReadError> {
        self.client.port.borrow().read(self.token())
    }

    /// The next part of the response.
    pub fn poll_frame(&self, context: &mut Context<'_>) -> Poll<Result<Frame, ReadError>> {
        match self.try_frame() {
            Ok(Some(frame)) => Poll::Ready(Ok(frame)),
            Err(error) => Poll::Ready(Err(error)),
            Ok(None) => {
                self.wake_on_news(context);
                Poll::Pending
            }
        }
    }

    /// Wakes the task when the slot has news. No news can slip through: bits are drained on this thread only.
    pub fn wake_on_news(&self, context: &Context<'_>) {
        let mut wakers = self.client.wakers.borrow_mut();
        let waker = &mut wakers[self.token().slot as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }

    /// The response was read to its end: the slot is free once the script has ended too.
    pub fn finish(mut self) {
        if let Some(token) = self.token.take() {
            self.client.port.borrow_mut().release(token);
            self.client.forget(token);
            // While many answers are sent one after the other, no request is submitted.
            self.client.drain();
        }
    }

    fn token(&self) -> Token {
        self.token.expect("invariant: taken only by finish and drop")
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.client.port.borrow_mut().cancel(token);
            self.client.forget(token);
        }
    }
}
