//! What a route says of the bodies of its requests.

use super::Template;
use serde::Serialize;
use std::time::Duration;

/// `request_body` and `timeouts`; `None`: as an earlier one says, or the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestBody {
    /// Bytes.
    pub max_size: Option<u64>,
    /// Longest time that the client may take for all of it; longer than 0.
    pub read_timeout: Option<Duration>,
    /// Longest time without a byte of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Duration>,
    /// Bytes a second that it brings on average. 0: as slow as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<u64>,
    /// Takes the place of what the client sends.
    pub set: Option<Template>,
}
