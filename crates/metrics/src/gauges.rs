//! What is not counted but looked at: the state of pools at the moment of a scrape.

use crate::{HostLabel, PoolId};
use std::time::{Duration, SystemTime};

/// Pools that are left out are empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    pub pools: Vec<PoolGauges>,
    /// Routes that are limited at this moment.
    pub lanes: Vec<LaneGauges>,
    /// Circuits that are not closed at this moment.
    pub circuits: Vec<CircuitGauge>,
    pub certificates: Vec<CertificateGauge>,
    pub upstreams: Vec<UpstreamGauge>,
    pub rate_zones: Vec<RateZoneGauge>,
    /// `None`: there is no cache.
    pub cache: Option<CacheGauges>,
    /// `None`: the system does not say.
    pub memory: Option<MemoryGauges>,
    /// `None`: no traces are sent.
    pub traces: Option<TraceGauges>,
    /// Whether figures of HTTP are kept, and by what; `None`: they are not.
    pub http: Option<HostLabel>,
    /// `None`: no engine of PHP has started yet.
    pub php: Option<PhpGauge>,
}

/// The PHP of the engine that started last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhpGauge {
    pub version: String,
    /// Empty: it is of no package of the distribution.
    pub package: String,
    /// A word for what is known of its holes.
    pub state: &'static str,
    pub is_below_floor: bool,
}

/// Spans of traces, since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceGauges {
    pub exported: u64,
    /// By reason.
    pub dropped: Vec<(&'static str, u64)>,
}

/// Of the machine or the control group, whichever leaves the server less; in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryGauges {
    pub limit: u64,
    /// Without what the kernel can take back at once.
    pub used: u64,
}

/// The cache, since the server started and now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheGauges {
    pub hits: u64,
    pub stale: u64,
    pub misses: u64,
    pub passes: u64,
    pub collapsed: u64,
    pub revalidations: u64,
    pub stores: u64,
    pub evictions: u64,
    pub purged: u64,
    pub urls: u64,
    pub bytes: u64,
    pub limit: u64,
    /// Bytes of bodies, those on their way in and out with them.
    pub body_bytes: u64,
    /// `None`: there is none.
    pub disk: Option<CacheDiskGauges>,
}

/// The disk of the cache, the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheDiskGauges {
    pub hits: u64,
    pub writes: u64,
    pub dropped: u64,
    pub evictions: u64,
    pub errors: u64,
    pub files: u64,
    pub bytes: u64,
    pub limit: u64,
    pub is_working: bool,
}

/// A server that requests are handed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamGauge {
    pub address: String,
    pub is_healthy: bool,
    /// Requests that it has now.
    pub requests: u64,
    pub requests_total: u64,
    pub failures_total: u64,
}

/// A zone of `rate_limit`, since it is there and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateZoneGauge {
    pub zone: String,
    pub requests: u64,
    pub declined: u64,
    /// That something is remembered of.
    pub keys: u64,
}

/// A certificate that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateGauge {
    pub name: String,
    pub source: &'static str,
    /// The latest, of several for the same name.
    pub not_after: SystemTime,
}

/// A lane: a route that may hold a part of the pool's threads only.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneGauges {
    pub pool: PoolId,
    pub route: String,
    /// Threads that it may hold.
    pub limit: u32,
    /// Its requests that are on the pool's queue, or running.
    pub inside: u32,
    /// Its requests that wait in the lane.
    pub waiting: u32,
}

/// What is refused because it has killed its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitGauge {
    pub pool: PoolId,
    /// Empty: whatever the route.
    pub route: String,
    /// Empty: that of a native service.
    pub script: String,
}

impl Gauges {
    /// Whether the configuration has this pool. Before there is an engine, all that are registered count.
    pub(crate) fn has(&self, pool: PoolId) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|gauges| gauges.pool == pool)
    }

    pub(crate) fn of(&self, pool: PoolId) -> PoolGauges {
        self.pools.iter().find(|gauges| gauges.pool == pool).copied().unwrap_or(PoolGauges::empty(pool))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolGauges {
    pub pool: PoolId,
    pub threads: Threads,
    /// Threads that it may have.
    pub most: u32,
    /// Busy threads that are far beyond their route's service time and off the CPU.
    pub stuck: u32,
    /// Requests that wait.
    pub queue_length: u64,
    /// How long the first of them has waited; zero when none waits.
    pub oldest_wait: Duration,
}

impl PoolGauges {
    pub fn empty(pool: PoolId) -> Self {
        let threads = Threads::default();
        Self { pool, threads, most: 0, stuck: 0, queue_length: 0, oldest_wait: Duration::ZERO }
    }
}

/// The threads of a pool; each is in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Threads {
    /// PHP or the worker script starts, or the thread does.
    pub booting: u32,
    pub idle: u32,
    /// Stuck ones too.
    pub busy: u32,
    /// A worker script that failed waits before it is started again.
    pub backoff: u32,
}

impl Threads {
    pub fn total(self) -> u32 {
        self.booting + self.idle + self.busy + self.backoff
    }

    /// Those that have asked for a request at least once since their script started.
    pub fn ready(self) -> u32 {
        self.idle + self.busy
    }
}
