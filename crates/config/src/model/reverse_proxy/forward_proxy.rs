//! What stands between this server and upstreams.

use super::UpstreamAddress;
use crate::model::Secret;
use serde::Serialize;

/// A proxy that connections to upstreams go through (`network_proxy`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForwardProxy {
    /// By TCP, never a socket file.
    pub address: UpstreamAddress,
    /// What `Proxy-Authorization` is to say; `None`: it asks for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Secret>,
}
