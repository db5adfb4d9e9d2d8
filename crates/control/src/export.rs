//! What goes from a running server to collectors of OpenTelemetry.

mod metrics;
mod traces;

pub use metrics::{NextMetrics, SentMetrics};
pub use traces::Traces;
