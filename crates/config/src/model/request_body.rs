//! What a route says of the bodies of its requests.

use super::Template;
use serde::Serialize;
use std::time::Duration;

/// `request_body`; `None`: as an earlier one says, or the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestBody {
    /// Bytes.
    pub max_size: Option<u64>,
    /// Longest time that the client may take for all of it; longer than 0.
    pub read_timeout: Option<Duration>,
    /// Takes the place of what the client sends.
    pub set: Option<Template>,
}
