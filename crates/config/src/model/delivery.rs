//! How requests get to an engine.

use super::{LaneChoice, RetryMethods, Template};
use serde::Serialize;
use std::time::Duration;

/// How a request is handed to a thread of an engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Delivery {
    /// Variables of the request, beside those that every request has.
    pub env: Vec<(String, Template)>,
    /// Longest silence within a request body for this route; 0: no limit.
    pub request_body_timeout: Option<Duration>,
    pub request_buffering: RequestBuffering,
    /// Soft real-time limit, longer than 0. `None`: that of a `deadline` directive before, or of the whole server.
    pub deadline: Option<Duration>,
    /// Of PHP only: longest time on a thread; 0: no limit. `None`: that of the worker, or of the whole server.
    pub request_timeout: Option<Duration>,
    /// Which requests are run once more when their engine dies. `None`: as a `retry` directive before says, or the whole
    /// server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryMethods>,
    /// `None`: that of a `lane` directive before, or the server's choice.
    pub lane: Option<LaneChoice>,
    pub client_address: ClientAddress,
}

/// Whose address and scheme the variables of a request are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum ClientAddress {
    /// The connection's.
    #[default]
    Connection,
    /// What a trusted proxy says of its client (`trust_client_address`).
    Forwarded,
}

/// When a thread gets a request that has a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum RequestBuffering {
    /// When the body is complete, in memory or in a file, so that no slow client holds a thread.
    #[default]
    Complete,
    /// At once; the script or handler reads the body as it comes.
    Streaming,
}
