//! Figures for people: the dashboard and `regent top`.

use crate::figures::{Counts, POOL_PHASES, PoolPhase, ROUTE_PHASES, RoutePhase};
use crate::history::WINDOW;
use crate::reading::{PoolReading, Reading, RouteReading};
use crate::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// All figures of the server. Durations are in seconds. What is recent, or of the last minute, ends at the last tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub uptime_seconds: u64,
    /// Of [`PoolReport::recent`] and [`RouteReport::recent`]: 10, or less right after the start.
    pub window_seconds: u64,
    /// Engines that were started.
    pub generations: u64,
    pub engine_deaths: u64,
    pub pools: Vec<PoolReport>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    pub name: String,
    /// The worker's script; `None` for a classic pool and for a native service.
    pub worker: Option<String>,
    pub recent: Period<PoolLatencies>,
    pub since_start: Period<PoolLatencies>,
    pub last_minute: LastMinute,
    /// Events, not threads.
    pub scaled_up: u64,
    pub scaled_down: u64,
    pub worker_crashes: u64,
    pub worker_restarts: u64,
    /// The first, `other`, is what has no route of its own.
    pub routes: Vec<RouteReport>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteReport {
    pub name: String,
    /// What was promised last.
    pub deadline_seconds: Option<f64>,
    pub recent: Period<RouteLatencies>,
    pub since_start: Period<RouteLatencies>,
    pub last_minute: LastMinute,
}

/// What became of the requests of some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Period<L> {
    /// Answered ones: neither shed nor lost.
    pub requests: u64,
    pub answers: Answers,
    pub shed: Shed,
    /// Their engine died.
    pub lost: u64,
    pub deadlines: Deadlines,
    pub latencies: L,
}

/// By class of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    #[serde(rename = "2xx")]
    pub success: u64,
    #[serde(rename = "3xx")]
    pub redirection: u64,
    #[serde(rename = "4xx")]
    pub client_error: u64,
    #[serde(rename = "5xx")]
    pub server_error: u64,
    pub other: u64,
}

/// Requests that were turned away without an engine, by [`Reason`](crate::Reason).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shed {
    pub queue_full: u64,
    pub wait_time: u64,
    pub deadline: u64,
    pub max_connections: u64,
    pub client_gone: u64,
    pub circuit: u64,
}

impl Shed {
    pub fn total(&self) -> u64 {
        self.queue_full
            + self.wait_time
            + self.deadline
            + self.max_connections
            + self.client_gone
            + self.circuit
    }
}

/// Of answered requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Those that had a deadline.
    pub promised: u64,
    pub missed: u64,
    /// `missed` of `promised`; 0 when nothing was promised.
    pub miss_ratio: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LastMinute {
    /// The longest request, from the first byte of its head to the last byte of the answer.
    pub worst: f64,
    pub deadlines: Deadlines,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolLatencies {
    pub queue_wait: Latency,
    pub first_byte: Latency,
    pub execution: Latency,
    /// Of those requests of which it was measured.
    pub cpu: Latency,
    pub total: Latency,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteLatencies {
    pub queue_wait: Latency,
    pub execution: Latency,
    /// Of those requests of which it was measured.
    pub cpu: Latency,
    pub total: Latency,
}

/// Quantiles are within 5 %; `max` is exact since the start, and at most 10 % too long when it is recent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl From<&Reading> for Report {
    fn from(reading: &Reading) -> Self {
        Self {
            uptime_seconds: reading.uptime,
            window_seconds: reading.uptime.min(WINDOW),
            generations: reading.generations,
            engine_deaths: reading.engine_deaths,
            pools: reading.pools.iter().map(PoolReport::from).collect(),
        }
    }
}

impl From<&PoolReading> for PoolReport {
    fn from(pool: &PoolReading) -> Self {
        Self {
            name: pool.name.clone(),
            worker: pool.serves.worker().map(|file| file.display().to_string()),
            recent: Period::new(
                pool.sum(|route| route.recent.counts),
                PoolLatencies::new(&pool.recent, |phase| pool.recent(phase)),
            ),
            since_start: Period::new(
                pool.sum(|route| route.totals.counts),
                PoolLatencies::new(&pool.totals, |phase| pool.total(phase)),
            ),
            last_minute: LastMinute::new(pool.sum(|route| route.recent.last_minute), pool.worst()),
            scaled_up: pool.events.scaled_up,
            scaled_down: pool.events.scaled_down,
            worker_crashes: pool.events.crashes,
            worker_restarts: pool.events.restarts,
            routes: pool.routes.iter().map(RouteReport::from).collect(),
        }
    }
}

impl From<&RouteReading> for RouteReport {
    fn from(route: &RouteReading) -> Self {
        Self {
            name: route.name.clone(),
            deadline_seconds: (route.totals.deadline > 0)
                .then(|| Duration::from_nanos(route.totals.deadline).as_secs_f64()),
            recent: Period::new(route.recent.counts, RouteLatencies::from(&route.recent.latencies)),
            since_start: Period::new(route.totals.counts, RouteLatencies::from(&route.totals.fine)),
            last_minute: LastMinute::new(route.recent.last_minute, route.recent.worst),
        }
    }
}

impl<L> Period<L> {
    fn new(counts: Counts, latencies: L) -> Self {
        let [success, redirection, client_error, server_error, other] = counts.answers;
        let [queue_full, wait_time, deadline, max_connections, client_gone, circuit] = counts.shed;
        Self {
            requests: counts.answered(),
            answers: Answers { success, redirection, client_error, server_error, other },
            shed: Shed { queue_full, wait_time, deadline, max_connections, client_gone, circuit },
            lost: counts.lost,
            deadlines: Deadlines::from(counts),
            latencies,
        }
    }
}

impl From<Counts> for Deadlines {
    fn from(counts: Counts) -> Self {
        Self { promised: counts.promised, missed: counts.missed, miss_ratio: counts.miss_ratio() }
    }
}

impl LastMinute {
    fn new(counts: Counts, worst_nanos: u64) -> Self {
        Self { worst: Duration::from_nanos(worst_nanos).as_secs_f64(), deadlines: Deadlines::from(counts) }
    }
}

impl PoolLatencies {
    fn new(of_pool: &[Snapshot; POOL_PHASES], of_routes: impl Fn(RoutePhase) -> Snapshot) -> Self {
        Self {
            queue_wait: Latency::from(&of_routes(RoutePhase::QueueWait)),
            first_byte: Latency::from(&of_pool[PoolPhase::FirstByte as usize]),
            execution: Latency::from(&of_routes(RoutePhase::Execution)),
            cpu: Latency::from(&of_routes(RoutePhase::Cpu)),
            total: Latency::from(&of_routes(RoutePhase::Total)),
        }
    }
}

impl From<&[Snapshot; ROUTE_PHASES]> for RouteLatencies {
    fn from(phases: &[Snapshot; ROUTE_PHASES]) -> Self {
        Self {
            queue_wait: Latency::from(&phases[RoutePhase::QueueWait as usize]),
            execution: Latency::from(&phases[RoutePhase::Execution as usize]),
            cpu: Latency::from(&phases[RoutePhase::Cpu as usize]),
            total: Latency::from(&phases[RoutePhase::Total as usize]),
        }
    }
}

impl From<&Snapshot> for Latency {
    fn from(snapshot: &Snapshot) -> Self {
        let quantile = |q| snapshot.quantile(q).as_secs_f64();
        Self {
            count: snapshot.count(),
            mean: snapshot.mean().as_secs_f64(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: snapshot.max().as_secs_f64(),
        }
    }
}
