//! Traces, and where they go.

use super::{OtlpCollector, Template};
use serde::Serialize;
use std::time::Duration;

/// `tracing`: the requests behind it are traced.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tracing {
    /// The name of the request's span. `None`: the method, with the route where that is known.
    pub span: Option<Template>,
    /// Further facts about it, looked up when the response is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, Template)>,
}

/// `server_timing`: clients are told where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimingFields {
    /// `Server-Timing`.
    #[default]
    ServerTiming,
    /// `X-Queue-Wait` beside it.
    WithQueueWait,
}

/// What the environment says of traces (`OTEL_…`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traces {
    pub sampler: TraceSampler,
    pub propagation: TracePropagation,
    /// `None`: traces are passed on, and nothing is recorded.
    pub export: Option<TraceExport>,
}

/// Whose spans are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TraceSampler {
    /// Of traces that begin here, and of others if their parent is not followed: how many, from 0 to 1.
    pub ratio: f64,
    pub follows_parent: bool,
}

/// What is read from requests, and told to whoever works for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TracePropagation {
    /// `traceparent` and `tracestate`.
    TraceContext,
    Nothing,
}

/// How spans are sent to a collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceExport {
    #[serde(flatten)]
    pub collector: OtlpCollector,
    pub batches: TraceBatches,
}

/// When spans are sent, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TraceBatches {
    /// Spans that wait at most; more are dropped.
    pub queue: usize,
    /// Spans of one request to the collector; no more than `queue`.
    pub size: usize,
    /// How long a span waits at most for others, while the collector answers.
    pub delay: Duration,
    /// After which a batch is given up that the collector does not take.
    pub patience: Duration,
}

impl Default for TraceBatches {
    fn default() -> Self {
        Self { queue: 2048, size: 512, delay: Duration::from_secs(5), patience: Duration::from_secs(30) }
    }
}
