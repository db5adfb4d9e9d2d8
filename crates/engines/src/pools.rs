//! What the I/O threads and the supervisor know in common of the pools of one kind of engine: who may join a queue, which
//! lanes there are, and what is counted.

use crate::circuits::CircuitBreaker;
use crate::plan::PoolPlan;
use crate::rules::QueueRules;
use regent_config::LaneBound;
use regent_dispatch::admission::{Admission, Bounds};
use regent_dispatch::lanes::{LaneLimit, Lanes};
use regent_dispatch::routes::Routes;
use regent_metrics::{PoolId, Registry};
use regent_wire::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// All pools, in the order of the plan.
pub struct Pools {
    pools: Vec<Pool>,
    pub routes: Arc<Routes>,
    pub registry: Arc<Registry>,
    pub circuits: Arc<CircuitBreaker>,
}

/// One pool.
pub struct Pool {
    pub id: PoolId,
    /// As metrics have it.
    pub name: String,
    pub admission: Admission,
    pub lanes: Lanes,
    /// Threads that take requests.
    threads: AtomicU32,
    /// Its script does not boot, and is not tried again: nothing can answer.
    given_up: AtomicBool,
    /// How long each of its requests may run, unless its route says something else.
    request_timeout: Option<Duration>,
    max_connections: Option<u32>,
    /// Requests that are there, if they are bounded.
    connections: Arc<AtomicU32>,
}

/// Whether a request is one of those that its pool may have at once. Dropped, it makes room for another.
pub enum Permit {
    /// The pool has no bound.
    Unbounded,
    Counted(Arc<AtomicU32>),
    Refused,
}

impl Pools {
    pub fn new(plans: &[PoolPlan], registry: Arc<Registry>, rules: &QueueRules) -> Arc<Self> {
        let now = clock::now();
        let routes = Arc::new(Routes::new(now));
        let bounds = Bounds { max_queue: rules.bounds.max_queue, max_wait: rules.bounds.max_wait_time };
        let pools = plans.iter().enumerate().map(|(index, plan)| {
            let lanes = Lanes::new(u32::from(plan.most), u32::from(plan.least), now);
            for lane in &rules.lanes {
                lanes.pin(&routes.lane(index as u16, &lane.name), limit(lane.bound));
            }
            Pool {
                id: registry.pool(&plan.label(), plan.serves()),
                name: plan.label(),
                admission: Admission::new(bounds),
                lanes,
                threads: AtomicU32::new(u32::from(plan.least)),
                given_up: AtomicBool::new(false),
                request_timeout: plan.request_timeout,
                max_connections: plan.max_connections,
                connections: Arc::default(),
            }
        });
        let circuits = CircuitBreaker::new(rules.circuit, plans);
        Arc::new(Self { pools: pools.collect(), routes, registry, circuits })
    }

    pub fn get(&self, pool: usize) -> &Pool {
        &self.pools[pool]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter()
    }
}

impl Pool {
    pub fn threads(&self) -> u32 {
        self.threads.load(Ordering::Relaxed)
    }

    pub fn set_threads(&self, threads: u32) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// The pool has so many threads now, and its lanes are for all of them.
    pub fn resize(&self, threads: u32, now: Duration) {
        self.set_threads(threads);
        self.lanes.set_threads(threads.max(1), now);
    }

    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns whether that is news.
    pub fn set_given_up(&self, given_up: bool) -> bool {
        self.given_up.swap(given_up, Ordering::Relaxed) != given_up
    }

    /// How long a request may run whose route says so much of it; 0: without end.
    pub fn time_limit(&self, of_route: Option<Duration>) -> Option<Duration> {
        of_route.or(self.request_timeout).filter(|limit| !limit.is_zero())
    }

    /// Asks whether there may be one more request.
    pub fn permit(&self) -> Permit {
        let Some(most) = self.max_connections else { return Permit::Unbounded };
        let one_more = |open: u32| (open < most).then(|| open + 1);
        match self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Permit::Counted(Arc::clone(&self.connections)),
            Err(_) => Permit::Refused,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Self::Counted(connections) = self {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn limit(bound: LaneBound) -> LaneLimit {
    match bound {
        LaneBound::Threads(threads) => LaneLimit::Threads(u32::from(threads)),
        LaneBound::Share(percent) => LaneLimit::Share(percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::EngineKind;
    use std::time::Instant;

    fn pool(max_connections: Option<u32>) -> Arc<Pools> {
        let name = "hello".into();
        let plan = PoolPlan {
            name,
            kind: EngineKind::Native,
            worker: None,
            least: 1,
            most: 1,
            request_timeout: None,
            max_connections,
        };
        Pools::new(&[plan], Arc::new(Registry::new(Instant::now())), &QueueRules::default())
    }

    #[test]
    fn a_request_that_ends_makes_room_for_one_more() {
        let pools = pool(Some(2));
        let permit = || pools.get(0).permit();
        let (first, _second) = (permit(), permit());
        assert!(matches!(first, Permit::Counted(_)) && matches!(permit(), Permit::Refused));
        drop(first);
        assert!(matches!(permit(), Permit::Counted(_)));
        assert!(matches!(permit(), Permit::Counted(_)), "a refused one takes no room");
    }

    #[test]
    fn without_a_bound_nothing_is_counted() {
        let pools = pool(None);
        assert!(matches!(pools.get(0).permit(), Permit::Unbounded));
    }
}
