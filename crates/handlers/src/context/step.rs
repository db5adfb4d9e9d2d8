//! A step on the way of a traced request that somebody else takes: an engine, or an upstream.

use http::HeaderValue;
use regent_traces::{Attribute, Part, Period, Propagation, Recording, SpanId, SpanKind, Trace};
use std::sync::Arc;

/// Has a span under that of the request, whose number whoever takes the step is told beforehand.
#[derive(Clone)]
pub struct Step {
    recording: Arc<Recording>,
    id: SpanId,
    propagation: Propagation,
}

impl Step {
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        let recording = Arc::clone(trace.recording()?);
        Some(Self { recording, id: SpanId::random(), propagation: trace.propagation() })
    }

    /// The value of `traceparent` for whoever takes it. `None`: it is to be told nothing.
    pub fn field(&self) -> Option<HeaderValue> {
        let field = self.recording.context_of(self.id).field();
        (self.propagation == Propagation::TraceContext).then(|| HeaderValue::try_from(field).ok()).flatten()
    }

    /// The route of the request, by the names of those that are alike.
    pub fn set_route(&self, route: &str) {
        self.recording.set_route(route);
    }

    /// It has ended. `failure`: why without success.
    pub fn ended(
        &self,
        kind: SpanKind,
        name: String,
        period: Period,
        attributes: Vec<Attribute>,
        failure: Option<String>,
    ) {
        self.recording.part(Part { id: self.id, kind, name, period, attributes, failure });
    }

    /// What was waited for before it has ended too.
    pub fn waited(&self, name: String, period: Period, attributes: Vec<Attribute>, failure: Option<String>) {
        let (id, kind) = (SpanId::random(), SpanKind::Internal);
        self.recording.part(Part { id, kind, name, period, attributes, failure });
    }
}
