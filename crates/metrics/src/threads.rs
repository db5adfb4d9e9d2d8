//! What each thread has counted, and the sums over them.

use crate::figures::{POOL_PHASES, PoolFigures, RouteFigures, RouteTotals};
use crate::names::{MAX_POOLS, PoolId, ROUTE_SLOTS, RouteId};
use crate::snapshot::Snapshot;
use std::sync::{Arc, OnceLock};

/// The figures of all threads.
#[derive(Clone, Default)]
pub(crate) struct AllThreads(Vec<Arc<ThreadFigures>>);

impl AllThreads {
    pub fn add(&mut self) -> Arc<ThreadFigures> {
        let figures = Arc::new(ThreadFigures::default());
        self.0.push(figures.clone());
        figures
    }

    pub fn pool(&self, pool: PoolId) -> [Snapshot; POOL_PHASES] {
        let mut totals = Default::default();
        let used = self.0.iter().filter_map(|thread| thread.pools[pool.index()].get());
        used.for_each(|figures| figures.add_to(&mut totals));
        totals
    }

    pub fn route(&self, route: RouteId) -> RouteTotals {
        let mut totals = RouteTotals::default();
        self.used(route).for_each(|figures| figures.add_to(&mut totals));
        totals
    }

    /// The longest request since the last call, in ns.
    pub fn take_worst(&self, route: RouteId) -> u64 {
        self.used(route).map(|figures| figures.worst.take()).max().unwrap_or(0)
    }

    fn used(&self, route: RouteId) -> impl Iterator<Item = &RouteFigures> {
        self.0.iter().filter_map(move |thread| thread.routes[route.slot()].get()).map(Box::as_ref)
    }
}

/// What one thread has counted: a place for each name there can be, filled when it is first used.
pub(crate) struct ThreadFigures {
    pools: [OnceLock<Box<PoolFigures>>; MAX_POOLS],
    routes: [OnceLock<Box<RouteFigures>>; ROUTE_SLOTS],
}

impl ThreadFigures {
    pub fn pool(&self, pool: PoolId) -> &PoolFigures {
        self.pools[pool.index()].get_or_init(Box::default)
    }

    pub fn route(&self, route: RouteId) -> &RouteFigures {
        self.routes[route.slot()].get_or_init(Box::default)
    }
}

impl Default for ThreadFigures {
    fn default() -> Self {
        Self {
            pools: [const { OnceLock::new() }; MAX_POOLS],
            routes: [const { OnceLock::new() }; ROUTE_SLOTS],
        }
    }
}
