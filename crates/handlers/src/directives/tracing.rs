//! `tracing`: requests have a trace, which begins here or goes on.

use crate::context::exchange::Exchange;
use crate::context::observed::Traced;
use crate::context::request_span::SpanRules;
use crate::templates::text::Text;
use http::{HeaderMap, HeaderName, HeaderValue};
use regent_config as config;
use regent_traces::{Attribute, Propagation, Trace, TraceContext, Tracer, joined_state};
use std::sync::Arc;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The compiled directive.
pub(crate) struct Tracing {
    name: Option<Text>,
    attributes: Vec<(String, Text)>,
    /// `None`: the environment has turned traces off.
    tracer: Option<Arc<Tracer>>,
}

impl Tracing {
    pub(crate) fn compile(tracing: &config::Tracing, tracer: Option<&Arc<Tracer>>) -> Self {
        let attributes = tracing.attributes.iter();
        Self {
            name: tracing.span.as_ref().map(Text::compile),
            attributes: attributes.map(|(name, value)| (name.clone(), Text::compile(value))).collect(),
            tracer: tracer.cloned(),
        }
    }

    /// A request that has a trace already, or starts over, keeps it.
    pub(crate) fn handle(self: &Arc<Self>, exchange: &mut Exchange) {
        let Some(tracer) = &self.tracer else { return };
        let traced = exchange
            .observed
            .trace
            .get_or_insert_with(|| Traced { trace: begin(tracer, &exchange.headers), rules: Vec::new() });
        let is_known = |rules: &Arc<dyn SpanRules>| std::ptr::addr_eq(Arc::as_ptr(rules), Arc::as_ptr(self));
        if traced.trace.recording().is_some() && !traced.rules.iter().any(is_known) {
            traced.rules.push(Arc::<Self>::clone(self));
        }
        pass_on(&traced.trace, &mut exchange.headers);
    }
}

impl SpanRules for Tracing {
    fn name(&self, exchange: &Exchange) -> Option<String> {
        self.name.as_ref().map(|name| name.render_str(exchange).into_owned())
    }

    fn add_attributes(&self, exchange: &Exchange, attributes: &mut Vec<Attribute>) {
        for (name, value) in &self.attributes {
            attributes.retain(|known| known.name != *name);
            attributes.push(Attribute::text(name.clone(), &value.render(exchange)));
        }
    }
}

fn begin(tracer: &Tracer, headers: &HeaderMap) -> Trace {
    let mut fields = headers.get_all(TRACEPARENT).iter();
    let parent = match (fields.next(), fields.next()) {
        (Some(field), None) => TraceContext::parse(field.as_bytes()),
        // Of several none is right (§3.2.1).
        _ => None,
    };
    tracer.begin(parent, || state(headers))
}

fn state(headers: &HeaderMap) -> String {
    joined_state(headers.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes))
}

/// Whoever gets the request finds the span of the request in it, and of what others have added what is well-formed. (What belongs to
/// the trace of a parent that was not understood, belongs to no trace.)
fn pass_on(trace: &Trace, headers: &mut HeaderMap) {
    if trace.propagation() == Propagation::Nothing {
        return;
    }
    if headers.contains_key(TRACESTATE) {
        let state = trace.parent().map(|_| state(headers)).filter(|state| !state.is_empty());
        match state.and_then(|state| HeaderValue::try_from(state).ok()) {
            Some(state) => headers.insert(TRACESTATE, state),
            None => headers.remove(TRACESTATE),
        };
    }
    let field = HeaderValue::try_from(trace.context().field());
    field.into_iter().for_each(|field| drop(headers.insert(TRACEPARENT, field)));
}
