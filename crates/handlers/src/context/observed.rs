//! What is watched of a request: its trace, and where its time goes.

use crate::context::request_span::SpanRules;
use regent_config::TimingFields;
use regent_traces::Trace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Stays with a request that starts over, or whose error has a page.
#[derive(Clone, Default)]
pub(crate) struct Observed {
    pub(crate) trace: Option<Traced>,
    /// Which fields the response is to have of its times, and since when they count.
    pub(crate) timing: Option<(TimingFields, Instant)>,
    /// Of the engine that made the response.
    pub(crate) times: Option<EngineTimes>,
    /// What the cache did, in a word.
    pub(crate) cache: Option<&'static str>,
}

/// A request's trace, and what directives say of its span.
#[derive(Clone)]
pub(crate) struct Traced {
    pub(crate) trace: Trace,
    /// Of a trace that is recorded: those that the request has come by.
    pub(crate) rules: Vec<Arc<dyn SpanRules>>,
}

/// Where the time of a request went that an engine answered; an extension of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineTimes {
    /// A token: `php`.
    pub engine: &'static str,
    /// For a thread.
    pub queue_wait: Duration,
    /// On it, to the end of the response, or to its head if that was not known then.
    pub execution: Duration,
}
