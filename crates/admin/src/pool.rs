//! Pools of threads and their queues.

use crate::milliseconds;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What runs requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    Php,
    /// Compiled modules.
    Native,
}

/// Threads that take requests from one queue: those of classic requests, of one worker script, or of one native service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Unique among the pools; the name of the worker or of the service, or `classic`.
    pub name: String,
    pub engine: Engine,
    /// The worker's script, absolute; `None` for classic requests and native services.
    pub worker: Option<String>,
    pub threads: ThreadCounts,
    /// Threads that it has at least, as configured (`num`).
    pub least: u16,
    /// Threads that it has at most, as configured (`max_threads`).
    pub most: u16,
    /// Requests that wait for a thread.
    pub queued: u32,
    /// How long the first of them has waited; zero when none waits.
    #[serde(with = "milliseconds", rename = "oldest_wait_ms")]
    pub oldest_wait: Duration,
}

/// Threads of a pool by what they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounts {
    pub starting: u32,
    /// Their worker script failed; they wait before it is started again.
    pub backoff: u32,
    pub idle: u32,
    pub busy: u32,
    pub stuck: u32,
    pub leaving: u32,
}

/// The answer of `GET /regent/queue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Requests that wait for a thread, in all pools.
    pub queued: u64,
    /// How long the first of them has waited.
    #[serde(with = "milliseconds", rename = "oldest_wait_ms")]
    pub oldest_wait: Duration,
    pub pools: Vec<Pool>,
}

impl ThreadCounts {
    /// All of them, those that are leaving too.
    pub fn total(&self) -> u32 {
        self.starting + self.backoff + self.idle + self.busy + self.stuck + self.leaving
    }
}

impl Queue {
    pub(crate) fn of(pools: Vec<Pool>) -> Self {
        Self {
            queued: pools.iter().map(|pool| u64::from(pool.queued)).sum(),
            oldest_wait: pools.iter().map(|pool| pool.oldest_wait).max().unwrap_or_default(),
            pools,
        }
    }
}
