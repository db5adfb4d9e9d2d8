//! The way of finished spans to an OpenTelemetry collector: OTLP over HTTP, in protobuf
//! (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! Whoever has finished a span puts it on a bounded queue and goes on ([`Exporter`]); one thread sends them in batches. What
//! becomes of all of them is counted ([`Figures`]).
#![forbid(unsafe_code)]

mod batch;
mod collector;
mod exporter;
mod figures;
mod message;
mod queue;

pub use exporter::{Error, Exporter};
pub use figures::{Counts, Loss};
