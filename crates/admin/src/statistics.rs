//! Figures of the last seconds.

use crate::milliseconds;
use crate::pool::Pool;
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
    /// Newest first; some hundred at most.
    pub scale_events: Vec<ScaleEvent>,
    /// Engines that run, newest first.
    pub generations: Vec<Generation>,
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
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Requests that ended within [`Statistics::window`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Answered by PHP, those with errors among them.
    pub requests: u64,
    /// Answered 5xx by PHP, or not answered because of it (502, 504). Shed ones are apart.
    pub errors: u64,
    /// Answered later than the route's deadline.
    pub deadline_misses: u64,
    pub shed: Shed,
    /// Time in the queue, of [`Self::requests`]. Each of the three is `None` when there were none, or when it is not known.
    pub queue: Option<Percentiles>,
    /// Time on a PHP thread.
    pub execution: Option<Percentiles>,
    /// From the head's arrival to the answer's end.
    pub total: Option<Percentiles>,
}

/// Requests that were turned away without PHP, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shed {
    pub queue_full: u64,
    /// Waited, or would have had to wait, longer than `max_wait_time`.
    pub wait_time: u64,
    /// Could not have met the route's deadline.
    pub deadline: u64,
    /// The server was stopping.
    pub draining: u64,
    /// Their clients hung up while they waited.
    pub client_gone: u64,
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
    /// Counts from 1.
    pub number: u64,
    #[serde(with = "milliseconds::unix", rename = "started_at_unix_ms")]
    pub started_at: SystemTime,
    /// For people, why it was started: `opcache_reset()`.
    pub reason: String,
}

impl Shed {
    pub fn total(&self) -> u64 {
        self.queue_full + self.wait_time + self.deadline + self.draining + self.client_gone
    }
}
