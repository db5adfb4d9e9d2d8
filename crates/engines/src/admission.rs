//! The way of a request into its pool, and what is measured of it.

mod in_flight;
mod route_ids;

use crate::pools::Pools;
use crate::rules::AdmissionBounds;
use in_flight::Outcome;
use regent_config::LaneChoice;
use regent_dispatch::admission::Reason;
use regent_dispatch::lanes::Place;
use regent_dispatch::routes::{Route, RouteCache};
use regent_metrics::{Recorder, RouteId};
use regent_wire::clock;
use route_ids::RouteIds;
use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub use in_flight::{Held, InFlight};

/// One I/O thread's door to the pools of one kind of engine.
pub struct AdmissionControl {
    pools: Arc<Pools>,
    routes: RefCell<RouteCache>,
    ids: RefCell<RouteIds>,
    recorder: Rc<Recorder>,
    bounds: AdmissionBounds,
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
    /// `recorder`: the I/O thread's.
    pub fn new(pools: Arc<Pools>, recorder: Rc<Recorder>, bounds: AdmissionBounds) -> Rc<Self> {
        Rc::new(Self {
            routes: RefCell::new(RouteCache::new(Arc::clone(&pools.routes))),
            ids: RefCell::default(),
            recorder,
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
        let passage = self.pools.circuits.ask(&route, aim.code);
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
            passage,
            timing: Cell::new(None),
            is_repeated: Cell::new(false),
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

#[cfg(test)]
mod tests {
    use super::in_flight::MOST_IN_LANES;
    use super::*;
    use crate::kind::EngineKind;
    use crate::plan::PoolPlan;
    use crate::rules::QueueRules;
    use regent_config::{Lane, LaneBound};
    use regent_metrics::Registry;
    use std::task::{Context, Poll, Waker};
    use std::time::Instant;

    const SECOND: Duration = Duration::from_secs(1);
    const AIM: Aim<'static> = Aim { pool: 0, path: "/", code: b"/index.php", lane: None };

    /// A pool with a lane of one thread.
    fn control(max_queue: Option<u32>) -> Rc<AdmissionControl> {
        let lane = Lane { name: "reports".into(), bound: LaneBound::Threads(1) };
        let bounds = AdmissionBounds { max_queue, ..AdmissionBounds::default() };
        let rules = QueueRules { bounds, lanes: vec![lane], circuit: None };
        let plan = PoolPlan {
            name: "classic".into(),
            kind: EngineKind::Php,
            worker: None,
            least: 4,
            most: 4,
            request_timeout: None,
            max_connections: None,
        };
        let pools = Pools::new(&[plan], Arc::new(Registry::new(Instant::now())), &rules);
        let recorder = Rc::new(pools.registry.recorder());
        AdmissionControl::new(pools, recorder, bounds)
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
