//! Upstreams of `reverse_proxy`, and how they stand.

use serde::{Deserialize, Serialize};

/// As Caddy shows it (reverseproxy/admin.go).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// `host:port`, or `unix/PATH`.
    pub address: String,
    /// Requests that it has now.
    pub num_requests: u64,
    /// Failures that are remembered.
    pub fails: u64,
}
