//! What is refused because it kills engines.

use crate::milliseconds;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A circuit that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    /// [`Pool::name`](crate::Pool::name) of the pool that serves it.
    pub pool: String,
    /// As the metrics label it; `None`: all that the script answers, whatever the route.
    pub route: Option<String>,
    /// Its file; empty for a native service.
    pub script: String,
    pub state: CircuitState,
    /// How long it is open after a death.
    #[serde(with = "milliseconds", rename = "pause_ms")]
    pub pause: Duration,
    /// Until a request is let through.
    #[serde(with = "milliseconds", rename = "left_ms")]
    pub left: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    Open,
    /// One request is let through to see.
    Probing,
}
