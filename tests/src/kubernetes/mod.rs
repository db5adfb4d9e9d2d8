//! A Kubernetes of a test's own.
//!
//! Real: etcd, the API server, the controllers (of Deployments, ReplicaSets, HorizontalPodAutoscalers, disruption budgets,
//! garbage), `kubectl` and `helm`, of which `tools/kubernetes` builds all but etcd. Simulated: whatever is on nodes, since there
//! are none ([`Nodes`]), and where autoscalers get their metrics ([`MetricsApi`]).

mod api;
mod cluster;
mod metrics_api;
mod nodes;
mod program;
mod stand_in;

pub use api::Api;
pub use cluster::Cluster;
pub use metrics_api::{Metric, MetricsApi};
pub use nodes::{Nodes, PodCounts};
pub use stand_in::StandIn;

use crate::wait::try_until;
use std::time::Duration;

/// How long a test waits for what several programs have to agree on.
const PATIENCE: Duration = Duration::from_secs(180);

/// Polls `event` until it gives a value.
#[track_caller]
pub fn until_agreed<T>(what: &str, event: impl FnMut() -> Option<T>) -> T {
    try_until(PATIENCE, event).unwrap_or_else(|| panic!("still waiting after {PATIENCE:?}: {what}"))
}
