//! One request on its way, and what is measured of it.

use super::{Admission, AdmissionControl, Shed};
use crate::circuits::{Passage, Probe};
use crate::pools::{Permit, Pool};
use regent_config::RetryMethods;
use regent_dispatch::admission::{Arrival, Queue, Reason, Verdict};
use regent_dispatch::circuits::Refusal;
use regent_dispatch::lanes::{Entry, Place};
use regent_dispatch::routes::Route;
use regent_metrics::{Recorder, Request, RouteId};
use regent_wire::{MAX_SLOTS_PER_IO, Timing, clock};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Requests that wait in the lanes of a pool at most without `max_queue`: as many as one I/O thread can have on queues.
pub(super) const MOST_IN_LANES: usize = MAX_SLOTS_PER_IO;

/// `Retry-After` where no estimate says more.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A request, from its head to the last byte of its answer. The last owner's drop is its end.
pub struct InFlight {
    pub(super) control: Rc<AdmissionControl>,
    pub(super) pool: usize,
    pub(super) route: Arc<Route>,
    /// What it counts as besides, since its route was new.
    pub(super) newcomer_of: OnceCell<Arc<Route>>,
    pub(super) id: RouteId,
    /// The first byte of its head.
    pub(super) arrival: Duration,
    /// When all of its head and its body was there: from then on it waits.
    pub(super) ready: Cell<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) has_no_lane: bool,
    pub(super) permit: Permit,
    /// What its circuits said when it came.
    pub(super) passage: Passage,
    pub(super) timing: Cell<Option<Timing>>,
    /// Of one whose response began before its end: the thread that runs it, and since when.
    pub(super) running: Cell<Option<(u32, Duration)>>,
    pub(super) is_repeated: Cell<bool>,
    pub(super) outcome: Cell<Outcome>,
    /// Why it has no response, or not all of it.
    pub(super) failure: Cell<Option<&'static str>>,
    pub(super) observer: OnceCell<Observer>,
}

/// Reasons for which only a request is without a response that a thread has taken.
const OVERDUE: &str = "request_timeout";
const LOST: &str = "engine_lost";
const RESPONSE_HEADER: &str = "response_header";

/// Who wants to know how a request has gone.
pub type Observer = Box<dyn FnOnce(&Course)>;

/// How a request has gone, by [`clock`].
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// From then on it waited.
    pub ready: Duration,
    /// When a thread took it; `None`: none has, or nobody knows.
    pub started: Option<Duration>,
    /// Of its execution, or of the wait.
    pub ended: Duration,
    pub thread: Option<u32>,
    /// A word: why it has no response, or not all of it.
    pub failure: Option<&'static str>,
}

/// What a request holds until its thread is free, also when its client has left.
pub struct Held {
    pub place: Place,
    /// As long as it runs, no other is let through in its place.
    _probe: Option<Arc<Probe>>,
}

#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Waiting,
    /// The status, and when the answer began, if it did not end at once.
    Answered(u16, Option<Duration>),
    /// Counted already, or not to be counted.
    Settled,
}

impl InFlight {
    /// Its body is there too, as far as it has to be.
    pub fn complete(&self) {
        self.ready.set(clock::now());
    }

    /// Since when it waits for a thread, by [`clock`].
    pub fn ready(&self) -> Duration {
        self.ready.get()
    }

    pub fn pool(&self) -> usize {
        self.pool
    }

    /// Whether nothing can answer it: its worker's script does not boot, and is not tried again.
    pub fn is_given_up(&self) -> bool {
        self.of_pool().is_given_up()
    }

    /// Nothing has run it, and it has waited until now.
    pub fn waited_in_vain(&self) {
        let waited = clock::now().saturating_sub(self.ready.get());
        self.timing.set(Some(Timing { waited, execution: Duration::ZERO, cpu: None, thread: None }));
        self.failure.set(Some("given_up"));
    }

    /// Whether it is one of the requests that its pool may have at once, and its circuits let it through.
    pub fn is_permitted(&self) -> Result<(), Shed> {
        if let Passage::Refused(refusal) = &self.passage {
            return Err(refused(refusal));
        }
        match self.permit {
            Permit::Unbounded | Permit::Counted(_) => Ok(()),
            Permit::Refused => Err(Shed { reason: Reason::Connections, retry_after: RETRY_AFTER }),
        }
    }

    /// Whether its circuits are still closed, unless it is there to find that out. `code` as in its [`Aim`](super::Aim).
    pub fn is_passable(&self, code: &[u8]) -> Result<(), Shed> {
        let refusal = match &self.passage {
            Passage::Probe(probe) => probe.refusal(),
            Passage::Free | Passage::Refused(_) => self.control.pools.circuits.refuses(&self.route, code),
        };
        refusal.map_or(Ok(()), |refusal| Err(refused(&refusal)))
    }

    /// What is to be kept as long as a thread may run it.
    pub fn hold(&self, place: Place) -> Held {
        let probe = match &self.passage {
            Passage::Probe(probe) => Some(Arc::clone(probe)),
            Passage::Free | Passage::Refused(_) => None,
        };
        Held { place, _probe: probe }
    }

    /// Whether it may join the queue, in which so many wait. `look` tells how many requests were taken so far, and idle
    /// threads.
    pub fn admit(&self, waiting: u64, look: impl FnOnce() -> (u64, usize)) -> Result<(), Shed> {
        if self.deadline.is_none() && !self.control.has_bounds() {
            return Ok(());
        }
        if waiting == 0 && self.control.bounds.max_queue != Some(0) {
            self.of_pool().admission.pause();
            return Ok(());
        }
        let now = clock::now();
        let (started, idle) = look();
        let queue = Queue { waiting, started, threads: self.of_pool().threads(), idle: idle as u32 };
        let arrival = Arrival {
            deadline: self.deadline,
            elapsed: now.saturating_sub(self.arrival),
            service: self.route.mean_service_time(),
        };
        match self.of_pool().admission.admit(now, queue, arrival) {
            Verdict::Admit => Ok(()),
            Verdict::Shed { reason, retry_after } => Err(Shed { reason, retry_after }),
        }
    }

    /// Asks for a place among the threads, for which only a request of a slow or new route has to wait. `code` as in its
    /// [`Aim`].
    pub fn enter(&self, code: &[u8]) -> Admission {
        let (lanes, now) = (&self.of_pool().lanes, self.ready.get());
        let common = || self.control.pools.routes.shared(self.pool as u16, code, now);
        if self.has_no_lane {
            return Admission::Admitted(lanes.exempt(&self.route, now));
        }
        let turn = match lanes.enter(&self.route, common, now) {
            Entry::Enter(place) => return Admission::Admitted(place),
            Entry::Wait(turn) => turn,
        };
        // A lane is a queue too.
        let most = self.control.bounds.max_queue.map_or(MOST_IN_LANES, |most| most as usize);
        if lanes.waiting() > most {
            let shed = Shed { reason: Reason::QueueFull, retry_after: RETRY_AFTER };
            return Admission::Waiting(Box::pin(std::future::ready(Err(shed))));
        }
        match self.patience() {
            None => Admission::Waiting(Box::pin(async { Ok(turn.await) })),
            Some((left, shed)) => Admission::Waiting(Box::pin(async move {
                tokio::time::timeout(left, turn).await.map_err(|_| shed)
            })),
        }
    }

    /// It has its place.
    pub fn entered(&self, place: &Place) {
        if let Some(common) = place.newcomer_of() {
            // It has one place only.
            let _ = self.newcomer_of.set(Arc::clone(common));
        }
    }

    /// How much longer it may wait for a thread, and what becomes of it then.
    pub fn patience(&self) -> Option<(Duration, Shed)> {
        let by_wait = left(self.max_wait_time(), self.ready.get(), self.waited_too_long());
        by_wait.into_iter().chain(self.patience_by_deadline()).min_by_key(|(left, _)| *left)
    }

    /// The same where its wait is bounded by other means.
    pub fn patience_by_deadline(&self) -> Option<(Duration, Shed)> {
        let shed = Shed { reason: Reason::Deadline, retry_after: RETRY_AFTER };
        left(self.deadline, self.counts_from(), shed)
    }

    /// How long it may wait for a thread.
    pub fn max_wait_time(&self) -> Option<Duration> {
        self.control.bounds.max_wait_time
    }

    /// What becomes of it after that.
    pub fn waited_too_long(&self) -> Shed {
        Shed { reason: Reason::WaitTime, retry_after: RETRY_AFTER }
    }

    /// From when on its deadline bounds its wait: as a rule its arrival. A client that needed all of that time to send
    /// the request is late whatever happens here; to turn it away would only mean that it never gets an answer.
    fn counts_from(&self) -> Duration {
        let ready = self.ready.get();
        let is_late = self.deadline.is_some_and(|deadline| ready.saturating_sub(self.arrival) >= deadline);
        if is_late { ready } else { self.arrival }
    }

    /// How long it may run. `of_route`: what its route says of that, if anything; 0: without end.
    pub fn time_limit(&self, of_route: Option<Duration>) -> Option<Duration> {
        self.of_pool().time_limit(of_route)
    }

    /// Until when it may be run once more if its engine dies while it runs; `None`: it may not. What was let through an open
    /// circuit is to show what comes of it, once. `of_route`: the methods that its route names, if it does.
    pub fn may_repeat(&self, method: &str, of_route: Option<RetryMethods>) -> Option<Duration> {
        let methods = of_route.unwrap_or(self.control.bounds.retry);
        let is_probe = matches!(self.passage, Passage::Probe(_));
        (methods.contains(method) && !is_probe).then(|| {
            let end = |deadline| self.counts_from().saturating_add(deadline);
            self.deadline.map_or(Duration::MAX, end)
        })
    }

    /// It waits for a thread again, since its engine died while it ran. Says no if that is known.
    pub fn repeated(&self) -> bool {
        let is_news = !self.is_repeated.replace(true);
        if is_news {
            self.control.recorder.retried(self.id);
        }
        is_news
    }

    /// Whether an engine has died with it, and it was run again.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated.get()
    }

    /// It has run for longer than it may.
    pub fn overdue(&self) {
        self.failure.set(Some(OVERDUE));
        self.control.recorder.overdue(self.id);
    }

    /// Its response has begun, and a thread goes on with it since then.
    pub fn running(&self, thread: usize, since: Duration) {
        self.running.set(u32::try_from(thread).ok().map(|thread| (thread, since)));
    }

    /// How long it has waited for a thread, and has run since then; `None`: nobody knows.
    pub fn times(&self) -> Option<(Duration, Duration)> {
        match (self.timing.get(), self.running.get()) {
            (Some(timing), _) => Some((timing.waited, timing.execution)),
            (None, Some((_, since))) => {
                let waited = since.saturating_sub(self.ready.get());
                Some((waited, clock::now().saturating_sub(since)))
            }
            (None, None) => None,
        }
    }

    pub fn pool_name(&self) -> &str {
        &self.of_pool().name
    }

    /// The name of its route.
    pub fn route(&self) -> &str {
        self.route.name()
    }

    /// To be called once at most.
    pub fn observe(&self, observer: Observer) {
        // There is one already.
        let _ = self.observer.set(observer);
    }

    /// The engine has ended the response.
    pub fn executed(&self, timing: Timing) {
        self.route.record(timing.execution);
        self.newcomer_of.get().into_iter().for_each(|common| common.record(timing.execution));
        self.timing.set(Some(timing));
        if let Passage::Probe(probe) = &self.passage {
            probe.ended_well();
        }
    }

    /// The answer's head is there. Nothing happens to one that was [shed](Self::shed) or the like.
    pub fn answered(&self, status: u16) {
        if matches!(self.outcome.get(), Outcome::Waiting) {
            // A response that the engine has ended goes out as one.
            let began = self.timing.get().is_none().then(clock::now);
            self.outcome.set(Outcome::Answered(status, began));
        }
    }

    /// Its response was larger than it may be.
    pub fn response_refused(&self) {
        self.fail(RESPONSE_HEADER);
    }

    /// It was turned away, or given up while it waited.
    pub fn shed(&self, reason: Reason) {
        self.fail(reason.label());
        self.settle(|recorder| recorder.shed(self.id, reason));
    }

    /// Its engine died while it ran.
    pub fn lost(&self) {
        self.fail(LOST);
        self.settle(|recorder| recorder.lost(self.id));
    }

    /// It never was for an engine: its body was refused.
    pub fn refused(&self) {
        self.fail("request_body");
        self.settle(|_| ());
    }

    /// The first reason is the right one.
    fn fail(&self, reason: &'static str) {
        if self.failure.get().is_none() {
            self.failure.set(Some(reason));
        }
    }

    fn course(&self) -> Course {
        let ready = self.ready.get();
        let now = clock::now();
        let (started, ended, thread) = match (self.timing.get(), self.running.get()) {
            (Some(timing), _) => {
                let started = ready + timing.waited;
                let has_run = timing.thread.is_some() || !timing.execution.is_zero();
                // An engine can say anything; nothing ends later than now.
                let ended = started.saturating_add(timing.execution).min(now);
                (has_run.then_some(started.min(now)), ended, timing.thread)
            }
            (None, Some((thread, since))) => (Some(since.min(now)), now, Some(thread)),
            // It has run, and nobody knows since when.
            (None, None) if matches!(self.failure.get(), Some(OVERDUE | LOST)) => (Some(ready), now, None),
            (None, None) => (None, now, None),
        };
        Course { ready, started, ended, thread, failure: self.failure.get() }
    }

    fn settle(&self, count: impl FnOnce(&Recorder)) {
        if !matches!(self.outcome.replace(Outcome::Settled), Outcome::Settled) {
            count(&self.control.recorder);
        }
    }

    fn of_pool(&self) -> &Pool {
        self.control.pools.get(self.pool)
    }

    fn record(&self, status: u16, began: Option<Duration>) {
        let timing = self.timing.get();
        let ended = clock::now();
        let since = |moment: Duration| moment.saturating_sub(self.arrival);
        self.control.recorder.request(&Request {
            route: self.id,
            queue_wait: timing.map_or(Duration::ZERO, |timing| timing.waited),
            // A script that is still running when its client leaves has run up to now.
            execution: timing
                .map_or_else(|| ended.saturating_sub(self.ready.get()), |timing| timing.execution),
            cpu: timing.and_then(|timing| timing.cpu),
            first_byte: since(began.unwrap_or(ended)),
            total: since(ended),
            status,
            deadline: self.deadline,
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        match self.outcome.get() {
            Outcome::Waiting => self.shed(Reason::ClientGone),
            Outcome::Answered(status, began) => self.record(status, began),
            Outcome::Settled => {}
        }
        if let Some(observer) = self.observer.take() {
            observer(&self.course());
        }
    }
}

fn refused(refusal: &Refusal) -> Shed {
    Shed { reason: Reason::Circuit, retry_after: refusal.retry_after }
}

/// What is left of a limit that counts since then.
fn left(limit: Option<Duration>, since: Duration, shed: Shed) -> Option<(Duration, Shed)> {
    limit.map(|limit| (limit.saturating_sub(clock::now().saturating_sub(since)), shed))
}
