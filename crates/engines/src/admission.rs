//! The way of a request into its pool, and what is measured of it.

mod route_ids;

use crate::pools::{Permit, Pool, Pools};
use regent_config::LaneChoice;
use regent_dispatch::admission::{Arrival, Queue, Reason, Verdict};
use regent_dispatch::lanes::{Entry, Place};
use regent_dispatch::routes::{Route, RouteCache};
use regent_metrics::{Recorder, Request, RouteId};
use regent_wire::{MAX_SLOTS_PER_IO, Timing, clock};
use route_ids::RouteIds;
use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Requests that wait in the lanes of a pool at most without `max_queue`: as many as one I/O thread can have on queues.
const MOST_IN_LANES: usize = MAX_SLOTS_PER_IO;

/// `Retry-After` where no estimate says more.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// One I/O thread's door to the pools of one kind of engine.
pub struct AdmissionControl {
    pools: Arc<Pools>,
    routes: RefCell<RouteCache>,
    ids: RefCell<RouteIds>,
    recorder: Recorder,
    bounds: AdmissionBounds,
}

/// What holds for every request.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionBounds {
    /// Longest time in the queue.
    pub max_wait_time: Option<Duration>,
    pub max_queue: Option<u32>,
    /// Soft real-time limit of requests whose route has none.
    pub deadline: Option<Duration>,
}

/// What a request is for.
pub struct Aim<'a> {
    pub pool: usize,
    /// As in the request line.
    pub path: &'a str,
    /// What runs, whatever the path.
    pub code: &'a [u8],
    pub lane: Option<&'a LaneChoice>,
}

/// A request, from its head to the last byte of its answer. The last owner's drop is its end.
pub struct InFlight {
    control: Rc<AdmissionControl>,
    pool: usize,
    route: Arc<Route>,
    /// What it counts as besides, since its route was new.
    newcomer_of: OnceCell<Arc<Route>>,
    id: RouteId,
    /// The first byte of its head.
    arrival: Duration,
    /// When all of its head and its body was there: from then on it waits.
    ready: Cell<Duration>,
    deadline: Option<Duration>,
    has_no_lane: bool,
    permit: Permit,
    timing: Cell<Option<Timing>>,
    outcome: Cell<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Waiting,
    /// The status, and when the answer began, if it did not end at once.
    Answered(u16, Option<Duration>),
    /// Counted already, or not to be counted.
    Settled,
}

/// What becomes of a request that asks for a place.
pub enum Admission {
    Admitted(Place),
    Waiting(Pin<Box<dyn Future<Output = Result<Place, Shed>>>>),
}

/// Why a request does not reach its engine, and when it may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shed {
    pub reason: Reason,
    pub retry_after: Duration,
}

impl AdmissionControl {
    pub fn new(pools: Arc<Pools>, bounds: AdmissionBounds) -> Rc<Self> {
        Rc::new(Self {
            routes: RefCell::new(RouteCache::new(Arc::clone(&pools.routes))),
            ids: RefCell::default(),
            recorder: pools.registry.recorder(),
            bounds,
            pools,
        })
    }

    /// A request has come. `head_time`: from the first byte of its head to the last.
    pub fn arrive(
        self: &Rc<Self>,
        aim: Aim<'_>,
        deadline: Option<Duration>,
        head_time: Duration,
    ) -> Rc<InFlight> {
        let now = clock::now();
        let Aim { pool, lane, .. } = aim;
        let route = self.route(&aim, now);
        Rc::new(InFlight {
            control: Rc::clone(self),
            pool,
            id: self.id(&route),
            route,
            newcomer_of: OnceCell::new(),
            arrival: now.saturating_sub(head_time),
            ready: Cell::new(now),
            deadline: deadline.or(self.bounds.deadline),
            has_no_lane: matches!(lane, Some(LaneChoice::Off)),
            permit: self.pools.get(pool).permit(),
            timing: Cell::new(None),
            outcome: Cell::new(Outcome::Waiting),
        })
    }

    /// Judges lanes anew where that is due.
    pub fn tick(&self) {
        let now = clock::now();
        self.pools.iter().for_each(|pool| pool.lanes.tick(now));
    }

    /// How long requests may wait for a thread.
    pub fn max_wait_time(&self) -> Option<Duration> {
        self.bounds.max_wait_time
    }

    fn route(&self, aim: &Aim<'_>, now: Duration) -> Arc<Route> {
        let pool = aim.pool as u16;
        if let Some(LaneChoice::Named(name)) = aim.lane {
            return self.pools.routes.lane(pool, name);
        }
        let route = self.routes.borrow_mut().get(pool, aim.path, now);
        if route.is_overflow() { self.pools.routes.shared(pool, aim.code, now) } else { route }
    }

    fn id(&self, route: &Arc<Route>) -> RouteId {
        let pool = || self.pools.get(usize::from(route.pool())).id;
        self.ids.borrow_mut().get(route, &self.pools.registry, pool)
    }

    fn has_bounds(&self) -> bool {
        self.bounds.max_wait_time.is_some() || self.bounds.max_queue.is_some()
    }
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
        self.timing.set(Some(Timing { waited, execution: Duration::ZERO, cpu: None }));
    }

    /// Whether it is one of the requests that its pool may have at once.
    pub fn is_permitted(&self) -> Result<(), Shed> {
        match self.permit {
            Permit::Unbounded | Permit::Counted(_) => Ok(()),
            Permit::Refused => Err(Shed { reason: Reason::Connections, retry_after: RETRY_AFTER }),
        }
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

    /// The engine has ended the response.
    pub fn executed(&self, timing: Timing) {
        self.route.record(timing.execution);
        self.newcomer_of.get().into_iter().for_each(|common| common.record(timing.execution));
        self.timing.set(Some(timing));
    }

    /// The answer's head is there. Nothing happens to one that was [shed](Self::shed) or the like.
    pub fn answered(&self, status: u16) {
        if matches!(self.outcome.get(), Outcome::Waiting) {
            // A response that the engine has ended goes out as one.
            let began = self.timing.get().is_none().then(clock::now);
            self.outcome.set(Outcome::Answered(status, began));
        }
    }

    /// It was turned away, or given up while it waited.
    pub fn shed(&self, reason: Reason) {
        self.settle(|recorder| recorder.shed(self.id, metric(reason)));
    }

    /// Its engine died while it ran.
    pub fn lost(&self) {
        self.settle(|recorder| recorder.lost(self.id));
    }

    /// It never was for an engine: its body was refused.
    pub fn refused(&self) {
        self.settle(|_| ());
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
    }
}

/// What is left of a limit that counts since then.
fn left(limit: Option<Duration>, since: Duration, shed: Shed) -> Option<(Duration, Shed)> {
    limit.map(|limit| (limit.saturating_sub(clock::now().saturating_sub(since)), shed))
}

fn metric(reason: Reason) -> regent_metrics::Reason {
    match reason {
        Reason::QueueFull => regent_metrics::Reason::QueueFull,
        Reason::WaitTime => regent_metrics::Reason::WaitTime,
        Reason::Deadline => regent_metrics::Reason::Deadline,
        Reason::Connections => regent_metrics::Reason::Connections,
        Reason::ClientGone => regent_metrics::Reason::ClientGone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::EngineKind;
    use crate::plan::PoolPlan;
    use regent_config::{Lane, LaneBound, PhpGlobal};
    use regent_metrics::Registry;
    use std::task::{Context, Poll, Waker};
    use std::time::Instant;

    const SECOND: Duration = Duration::from_secs(1);
    const AIM: Aim<'static> = Aim { pool: 0, path: "/", code: b"/index.php", lane: None };

    /// A pool with a lane of one thread.
    fn control(max_queue: Option<u32>) -> Rc<AdmissionControl> {
        let lane = Lane { name: "reports".into(), bound: LaneBound::Threads(1) };
        let rules = PhpGlobal { lanes: vec![lane], max_queue, ..PhpGlobal::default() };
        let plan = PoolPlan {
            name: "classic".into(),
            kind: EngineKind::Php,
            worker: None,
            least: 4,
            most: 4,
            max_connections: None,
        };
        let pools = Pools::new(&[plan], Arc::new(Registry::new(Instant::now())), &rules);
        AdmissionControl::new(pools, AdmissionBounds { max_wait_time: None, max_queue, deadline: None })
    }

    /// What becomes of so many requests of the lane that come after one that has its place.
    fn refused_of(control: &Rc<AdmissionControl>, requests: usize) -> usize {
        let lane = LaneChoice::Named("reports".into());
        let arrive = || control.arrive(Aim { lane: Some(&lane), ..AIM }, None, Duration::ZERO);
        let first = arrive();
        let Admission::Admitted(_place) = first.enter(AIM.code) else { panic!("nobody is there") };
        let in_flight: Vec<_> = (0..requests).map(|_| arrive()).collect();
        let mut turns: Vec<_> = in_flight
            .iter()
            .map(|request| match request.enter(AIM.code) {
                Admission::Waiting(turn) => turn,
                Admission::Admitted(_) => panic!("the lane has one place"),
            })
            .collect();
        let mut context = Context::from_waker(Waker::noop());
        let refused = |turn: &mut Pin<Box<dyn Future<Output = Result<Place, Shed>>>>| {
            let Poll::Ready(Err(shed)) = turn.as_mut().poll(&mut context) else { return false };
            assert_eq!(shed.reason, Reason::QueueFull);
            true
        };
        turns.iter_mut().map(refused).filter(|refused| *refused).count()
    }

    #[test]
    fn lanes_hold_no_more_than_max_queue() {
        assert_eq!(refused_of(&control(Some(3)), 5), 2);
    }

    #[test]
    fn lanes_are_bounded_without_configuration_too() {
        assert_eq!(refused_of(&control(None), MOST_IN_LANES + 3), 3);
    }

    /// How much longer a request may wait whose head took so long.
    fn patience(head_time: Duration) -> Duration {
        let request = control(None).arrive(AIM, Some(10 * SECOND), head_time);
        let (left, shed) = request.patience().expect("it has a deadline");
        assert_eq!(shed.reason, Reason::Deadline);
        left
    }

    #[test]
    fn a_deadline_counts_from_the_first_byte_of_the_head() {
        assert!(patience(Duration::ZERO) > 7 * SECOND);
        assert!(patience(4 * SECOND) <= 6 * SECOND);
    }

    #[test]
    fn who_has_used_up_its_deadline_itself_waits_as_others_do() {
        assert!(patience(20 * SECOND) > 7 * SECOND);
    }
}
