//! Traces of requests: what a trace is known by from one process to the next ([`TraceContext`]), whose spans are recorded
//! ([`Sampler`]), and what a span says ([`Span`]). No I/O, and no word of who serves requests: finished spans go to a
//! [`SpanSink`].
#![forbid(unsafe_code)]

mod context;
mod ids;
mod sampler;
mod span;
mod state;
mod trace;

pub use context::{Sampled, TraceContext};
pub use ids::{SpanId, TraceId};
pub use sampler::{ParentRule, RootRule, Sampler};
pub use span::{Attribute, Span, SpanKind, SpanSink, Value};
pub use state::joined_state;
pub use trace::{Part, Period, Propagation, Recording, Trace, Tracer};
