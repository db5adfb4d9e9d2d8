//! The way of finished spans and of metrics to an OpenTelemetry collector: OTLP over HTTP, in protobuf
//! (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! Whoever has finished a span puts it on a bounded queue and goes on ([`Exporter`]); one thread sends them in batches. What
//! becomes of all of them is counted ([`Figures`]). Metrics are read and sent by another, at fixed times ([`MetricsExporter`]).
#![forbid(unsafe_code)]

mod batch;
mod collector;
mod envelope;
mod exporter;
mod figures;
mod message;
mod metrics;
mod points;
mod queue;
mod thread;

pub use exporter::{Error, Exporter};
pub use figures::{Counts, Loss};
pub use metrics::{MetricsExporter, Reading};
