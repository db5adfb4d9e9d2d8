//! What the I/O threads and the supervisor know in common of the pools: who may join a queue, which lanes there are, and
//! what is counted.

use crate::plan::PoolPlan;
use regent_config::{LaneBound, PhpGlobal};
use regent_dispatch::admission::{Admission, Bounds};
use regent_dispatch::lanes::{LaneLimit, Lanes};
use regent_dispatch::routes::Routes;
use regent_metrics::{PoolId, Registry};
use regent_wire::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// All pools, in the order of the plan.
pub(crate) struct Pools {
    pools: Vec<Pool>,
    pub routes: Arc<Routes>,
    pub registry: Registry,
}

/// One pool.
pub(crate) struct Pool {
    pub id: PoolId,
    pub admission: Admission,
    pub lanes: Lanes,
    /// Threads that take requests.
    threads: AtomicU32,
}

impl Pools {
    pub fn new(plans: &[PoolPlan], php: &PhpGlobal) -> Arc<Self> {
        let now = clock::now();
        let registry = Registry::new(Instant::now());
        let routes = Arc::new(Routes::new(now));
        let bounds = Bounds { max_queue: php.max_queue, max_wait: php.max_wait_time };
        let pools = plans.iter().enumerate().map(|(index, plan)| {
            let lanes = Lanes::new(u32::from(plan.most), now);
            for lane in &php.lanes {
                lanes.pin(&routes.lane(index as u16, &lane.name), limit(lane.bound));
            }
            Pool {
                id: registry.pool(&plan.label(), plan.worker.as_deref()),
                admission: Admission::new(bounds),
                lanes,
                threads: AtomicU32::new(u32::from(plan.least)),
            }
        });
        Arc::new(Self { pools: pools.collect(), routes, registry })
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
}

fn limit(bound: LaneBound) -> LaneLimit {
    match bound {
        LaneBound::Threads(threads) => LaneLimit::Threads(u32::from(threads)),
        LaneBound::Share(percent) => LaneLimit::Share(percent),
    }
}
