//! What a configuration says of the queues of all pools.

use regent_config::{Circuit, Lane, RetryMethods};
use std::time::Duration;

/// What holds for every request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionBounds {
    /// Longest time in the queue.
    pub max_wait_time: Option<Duration>,
    pub max_queue: Option<u32>,
    /// Soft real-time limit of requests whose route has none.
    pub deadline: Option<Duration>,
    /// Methods of requests that are run once more when their engine dies, of routes that do not say it.
    pub retry: RetryMethods,
}

/// Bounds, lanes and circuits, which all pools of a server have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueRules {
    pub bounds: AdmissionBounds,
    /// Those that are declared.
    pub lanes: Vec<Lane>,
    /// When what kills engines is refused; `None`: never.
    pub circuit: Option<Circuit>,
}
