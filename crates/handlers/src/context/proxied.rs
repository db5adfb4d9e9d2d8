//! What is known of the upstream that a request was handed to.

use http::{HeaderMap, StatusCode};
use std::time::Duration;

/// For the placeholders behind `reverse_proxy`, and in its own options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proxied {
    /// `host:port`, or `unix/PATH`.
    pub address: String,
    /// Of a socket file: its path.
    pub host: String,
    /// Of a socket file: empty.
    pub port: String,
    /// Tries that failed.
    pub retries: u32,
    /// From the request to the head of the response.
    pub latency: Option<Duration>,
    pub response: Option<(StatusCode, HeaderMap)>,
}
