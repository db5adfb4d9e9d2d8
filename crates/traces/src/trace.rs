//! The part of a trace that is this server's: the span of a request, and those under it.

use crate::context::{Sampled, TraceContext};
use crate::ids::{SpanId, TraceId};
use crate::sampler::Sampler;
use crate::span::{Attribute, Span, SpanKind, SpanSink};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Begins traces, or goes on with those of others.
pub struct Tracer {
    sampler: Sampler,
    propagation: Propagation,
    /// `None`: spans are for nobody, and traces are only passed on.
    sink: Option<Arc<dyn SpanSink>>,
}

/// Whether traces go from one process to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// By the fields of this specification.
    TraceContext,
    /// Each begins, and ends, here.
    Nothing,
}

/// A request's trace. Clones are of the same.
#[derive(Clone)]
pub struct Trace {
    context: TraceContext,
    /// `None`: it begins with this request.
    parent: Option<SpanId>,
    propagation: Propagation,
    /// `None`: it is not sampled, and nothing is kept of it.
    recording: Option<Arc<Recording>>,
}

/// What the spans of a sampled request have in common.
pub struct Recording {
    context: TraceContext,
    parent: Option<SpanId>,
    state: String,
    /// By both clocks, at the same moment: spans lie right to each other though somebody sets the time meanwhile.
    began: Instant,
    began_at: SystemTime,
    route: OnceLock<String>,
    sink: Arc<dyn SpanSink>,
}

/// From when to when.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    pub began: Instant,
    pub ended: Instant,
}

/// A span under that of the request, as far as it is known when it has ended.
pub struct Part {
    pub id: SpanId,
    pub kind: SpanKind,
    pub name: String,
    pub period: Period,
    pub attributes: Vec<Attribute>,
    pub failure: Option<String>,
}

impl Tracer {
    pub fn new(sampler: Sampler, propagation: Propagation, sink: Option<Arc<dyn SpanSink>>) -> Self {
        Self { sampler, propagation, sink }
    }

    /// The trace of a request that comes with this context, if with any. `state`: what other systems keep with it; asked for only
    /// if the trace is sampled.
    pub fn begin(&self, parent: Option<TraceContext>, state: impl FnOnce() -> String) -> Trace {
        let parent = parent.filter(|_| self.propagation == Propagation::TraceContext);
        let trace = parent.map_or_else(TraceId::random, |parent| parent.trace);
        let sampled = self.sampler.decide(parent.map(|parent| parent.sampled), trace);
        let context = TraceContext { trace, span: SpanId::random(), sampled };
        let sink = self.sink.as_ref().filter(|_| sampled == Sampled::Yes);
        let recording = sink.map(|sink| {
            Arc::new(Recording {
                context,
                parent: parent.map(|parent| parent.span),
                state: parent.map(|_| state()).unwrap_or_default(),
                began: Instant::now(),
                began_at: SystemTime::now(),
                route: OnceLock::new(),
                sink: Arc::clone(sink),
            })
        });
        Trace { context, parent: parent.map(|parent| parent.span), propagation: self.propagation, recording }
    }
}

impl Trace {
    /// With the span of the request.
    pub fn context(&self) -> TraceContext {
        self.context
    }

    /// `None`: it begins with this request.
    pub fn parent(&self) -> Option<SpanId> {
        self.parent
    }

    pub fn propagation(&self) -> Propagation {
        self.propagation
    }

    pub fn recording(&self) -> Option<&Arc<Recording>> {
        self.recording.as_ref()
    }
}

impl Recording {
    /// What whoever works for the request is told, if its span is this one.
    pub fn context_of(&self, part: SpanId) -> TraceContext {
        TraceContext { span: part, ..self.context }
    }

    /// Requests that are alike have the same. The first counts.
    pub fn set_route(&self, route: &str) {
        // There is one already.
        let _ = self.route.set(route.to_owned());
    }

    pub fn route(&self) -> Option<&str> {
        self.route.get().map(String::as_str)
    }

    /// A span under that of the request has ended.
    pub fn part(&self, part: Part) {
        let Part { id, kind, name, period, attributes, failure } = part;
        let (began, ended) = self.times(period);
        self.sink.finished(Span {
            trace: self.context.trace,
            id,
            parent: Some(self.context.span),
            parent_is_remote: false,
            state: self.state.clone(),
            kind,
            name,
            began,
            ended,
            attributes,
            failure,
        });
    }

    /// The span of the request has ended now.
    pub fn request(&self, name: String, attributes: Vec<Attribute>, failure: Option<String>) {
        let (began, ended) = self.times(Period { began: self.began, ended: Instant::now() });
        self.sink.finished(Span {
            trace: self.context.trace,
            id: self.context.span,
            parent: self.parent,
            parent_is_remote: self.parent.is_some(),
            state: self.state.clone(),
            kind: SpanKind::Server,
            name,
            began,
            ended,
            attributes,
            failure,
        });
    }

    fn times(&self, period: Period) -> (SystemTime, SystemTime) {
        let began = self.time(period.began);
        (began, began + period.ended.saturating_duration_since(period.began))
    }

    fn time(&self, moment: Instant) -> SystemTime {
        match moment.checked_duration_since(self.began) {
            Some(after) => self.began_at + after,
            None => self.began_at - self.began.saturating_duration_since(moment),
        }
    }
}

impl Period {
    /// Until now.
    pub fn since(began: Instant) -> Self {
        Self { began, ended: Instant::now() }
    }

    /// Of what began so long before `now`, and took so long.
    pub fn before(now: Instant, began: Duration, length: Duration) -> Self {
        // A clock that began later than that cannot say it.
        let began = now.checked_sub(began).unwrap_or(now);
        Self { began, ended: (began + length).min(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{ParentRule, RootRule};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Kept(Mutex<Vec<Span>>);

    impl SpanSink for Kept {
        fn finished(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }
    }

    fn tracer(root: RootRule, sink: &Arc<Kept>) -> Tracer {
        let sink: Arc<dyn SpanSink> = Arc::clone(sink) as _;
        Tracer::new(Sampler { root, parent: ParentRule::Followed }, Propagation::TraceContext, Some(sink))
    }

    #[test]
    fn spans_of_a_request_are_under_that_of_the_client() {
        let sink = Arc::<Kept>::default();
        let parent = TraceContext::parse(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        let trace = tracer(RootRule::Never, &sink).begin(Some(parent), || "a=1".into());
        assert_eq!((trace.context().trace, trace.context().sampled), (parent.trace, Sampled::Yes));
        assert_ne!(trace.context().span, parent.span);
        let recording = trace.recording().unwrap();
        let part = SpanId::random();
        assert_eq!(recording.context_of(part), TraceContext { span: part, ..trace.context() });
        let hour = Duration::from_secs(3600);
        let period = Period::before(Instant::now(), Duration::from_secs(2), hour);
        recording.part(Part {
            id: part,
            kind: SpanKind::Internal,
            name: "php".into(),
            period,
            attributes: Vec::new(),
            failure: None,
        });
        recording.request("GET".into(), Vec::new(), Some("502".into()));
        let spans = sink.0.lock().unwrap();
        assert_eq!([spans[0].parent, spans[1].parent], [Some(trace.context().span), Some(parent.span)]);
        assert_eq!([spans[0].id, spans[1].id], [part, trace.context().span]);
        assert!(spans[1].parent_is_remote && !spans[0].parent_is_remote);
        assert!(spans.iter().all(|span| span.trace == parent.trace && span.state == "a=1"));
        let length = spans[0].ended.duration_since(spans[0].began).unwrap();
        assert!(length < hour, "nothing ends later than now");
        assert!(spans[0].began < spans[1].began);
    }

    #[test]
    fn of_a_trace_that_is_not_sampled_nothing_is_asked_or_kept() {
        let sink = Arc::<Kept>::default();
        let parent = TraceContext::parse(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00").unwrap();
        for (root, parent) in [(RootRule::Always, Some(parent)), (RootRule::Never, None)] {
            let trace = tracer(root, &sink).begin(parent, || unreachable!("nobody wants to know"));
            assert!(trace.recording().is_none() && trace.context().sampled == Sampled::No);
        }
        let sampler = Sampler { root: RootRule::Always, parent: ParentRule::Followed };
        let nobody = Tracer::new(sampler, Propagation::TraceContext, None);
        let trace = nobody.begin(None, || unreachable!("nobody wants to know"));
        assert!(trace.recording().is_none() && trace.context().sampled == Sampled::Yes);
    }
}
