//! Figures of the last seconds.

use crate::circuit::Circuit;
use crate::milliseconds;
use crate::php::Php;
use crate::pool::{Engine, Pool};
use regent_metrics::Shed;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// How the server is doing. The answer of `GET /regent/statistics`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Regent's version.
    pub version: String,
    #[serde(with = "milliseconds", rename = "uptime_ms")]
    pub uptime: Duration,
    /// The time up to now that every [`Traffic`] is of; some ten seconds.
    #[serde(with = "milliseconds", rename = "window_ms")]
    pub window: Duration,
    /// As [`crate::Control::pools`] orders them.
    pub pools: Vec<PoolStatistics>,
    /// Busiest first.
    pub routes: Vec<RouteStatistics>,
    /// Those that are not closed.
    pub circuits: Vec<Circuit>,
    /// Newest first; some hundred at most.
    pub scale_events: Vec<ScaleEvent>,
    /// Engines that run: PHP's, newest first, then those of native modules.
    pub generations: Vec<Generation>,
    /// `None`: no engine of PHP has started yet, or the server is older than this field.
    #[serde(default)]
    pub php: Option<Php>,
}

/// A pool, and what it has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolStatistics {
    #[serde(flatten)]
    pub pool: Pool,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// What the requests of a route met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteStatistics {
    /// As the metrics label it.
    pub route: String,
    /// [`Pool::name`] of the pool that serves it.
    pub pool: String,
    /// The promise that misses are counted against (`deadline`); `None`: there is none.
    #[serde(with = "milliseconds::optional", rename = "deadline_ms")]
    pub deadline: Option<Duration>,
    /// `None`: it may have as many threads as there are.
    pub lane: Option<Lane>,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// The bounds of a route that is slow, or whose lane is pinned, at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Threads that it may hold.
    pub limit: u32,
    /// Its requests that are in the pool's queue or running.
    pub inside: u32,
    /// Its requests that wait for their turn.
    pub waiting: u32,
}

/// Requests that ended within [`Statistics::window`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Answered by an engine, those with errors among them.
    pub requests: u64,
    /// Answered 5xx by an engine, or not answered because of it (502, 504). Shed ones are apart.
    pub errors: u64,
    /// Answered later than the route's deadline.
    pub deadline_misses: u64,
    pub shed: Shed,
    /// Time in the queue, of [`Self::requests`]. Each of the four is `None` when there were none.
    pub queue: Option<Percentiles>,
    /// Time on a thread.
    pub execution: Option<Percentiles>,
    /// CPU time of those of which it was measured: about one in 16.
    pub cpu: Option<Percentiles>,
    /// From the first byte of the head to the last byte of the answer.
    pub total: Option<Percentiles>,
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    #[serde(with = "milliseconds", rename = "p50_ms")]
    pub p50: Duration,
    #[serde(with = "milliseconds", rename = "p90_ms")]
    pub p90: Duration,
    #[serde(with = "milliseconds", rename = "p99_ms")]
    pub p99: Duration,
    #[serde(with = "milliseconds", rename = "max_ms")]
    pub max: Duration,
}

/// A pool grew or shrank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleEvent {
    #[serde(with = "milliseconds::unix", rename = "at_unix_ms")]
    pub at: SystemTime,
    pub pool: String,
    /// Threads before.
    pub from: u16,
    /// Threads after.
    pub to: u16,
    /// For people: `queue head waited 3.2 ms, 96 % blocked`.
    pub reason: String,
}

/// One run of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    pub engine: Engine,
    /// Counts from 1, for each kind of engine.
    pub number: u64,
    #[serde(with = "milliseconds::unix", rename = "started_at_unix_ms")]
    pub started_at: SystemTime,
    /// For people, why it was started: `opcache_reset()`.
    pub reason: String,
    /// What it has given up; `None`: it was to give up nothing, or has not started yet.
    pub confinement: Option<Confinement>,
}

/// What an engine is kept from, in words of a few each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub enforced: Vec<String>,
    /// What it should be kept from too, and why it is not.
    pub missing: Vec<String>,
}
