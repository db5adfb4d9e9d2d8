//! Everything that is known, at one moment, as plain data: what reports and scrapes are made of.

use crate::figures::{Counts, POOL_PHASES, RoutePhase, RouteTotals};
use crate::history::RecentRoute;
use crate::names::{PoolId, Serves};
use crate::snapshot::Snapshot;
use std::time::SystemTime;

pub(crate) struct Reading {
    pub started: SystemTime,
    /// Seconds from the start to the last tick.
    pub uptime: u64,
    pub generations: u64,
    pub engine_deaths: u64,
    pub pools: Vec<PoolReading>,
}

pub(crate) struct PoolReading {
    pub id: PoolId,
    pub name: String,
    pub serves: Serves,
    pub events: PoolEvents,
    /// By [`PoolPhase`](crate::figures::PoolPhase), as `recent`.
    pub totals: [Snapshot; POOL_PHASES],
    pub recent: [Snapshot; POOL_PHASES],
    /// The first is `other`.
    pub routes: Vec<RouteReading>,
}

pub(crate) struct RouteReading {
    pub name: String,
    pub totals: RouteTotals,
    pub recent: RecentRoute,
}

/// What happened to the threads of a pool.
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolEvents {
    /// Threads that did not come back.
    pub written_off: u64,
    /// Requests that were ended after their clients had left.
    pub departed: u64,
    pub scaled_up: u64,
    pub scaled_down: u64,
    pub crashes: u64,
    pub restarts: u64,
}

impl PoolReading {
    pub fn total(&self, phase: RoutePhase) -> Snapshot {
        self.merged(|route| &route.totals.fine[phase as usize])
    }

    pub fn recent(&self, phase: RoutePhase) -> Snapshot {
        self.merged(|route| &route.recent.latencies[phase as usize])
    }

    /// Of all routes.
    pub fn sum(&self, counts: impl Fn(&RouteReading) -> Counts) -> Counts {
        let mut sum = Counts::default();
        self.routes.iter().for_each(|route| sum += counts(route));
        sum
    }

    /// In ns.
    pub fn worst(&self) -> u64 {
        self.routes.iter().map(|route| route.recent.worst).max().unwrap_or(0)
    }

    fn merged(&self, snapshot: impl Fn(&RouteReading) -> &Snapshot) -> Snapshot {
        let mut merged = Snapshot::default();
        self.routes.iter().for_each(|route| merged.merge(snapshot(route)));
        merged
    }
}
