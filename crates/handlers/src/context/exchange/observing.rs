//! What is watched of the request.

use super::Exchange;
use crate::context::observed::EngineTimes;
use crate::context::request_span::{self, RequestSpan};
use crate::context::step::Step;
use http::Response;
use regent_config::TimingFields;
use regent_traces::{Trace, TraceContext};
use std::time::Instant;

impl Exchange {
    /// `None`: it is not traced.
    pub fn trace(&self) -> Option<&Trace> {
        self.observed.trace.as_ref().map(|traced| &traced.trace)
    }

    /// A step of somebody who is to work for it. `None`: nobody wants to know.
    pub fn step(&self) -> Option<Step> {
        self.trace().and_then(Step::of)
    }

    /// The span of the request, whose response has just this head. `None`: nobody wants to know.
    pub fn span<B>(&self, response: &Response<B>) -> Option<Box<RequestSpan>> {
        request_span::of(self, response)
    }

    /// Whether its response is to say where the time went.
    pub fn is_timed(&self) -> bool {
        self.observed.timing.is_some()
    }

    /// To be called with a response before anything else is made of it.
    pub fn note_times<B>(&mut self, response: &mut Response<B>) {
        if self.is_timed() {
            let times = response.extensions_mut().remove::<EngineTimes>();
            self.observed.times = times.or(self.observed.times);
        }
    }

    /// Its response is to say where the time went, from now on.
    pub(crate) fn time(&mut self, fields: TimingFields) {
        let since = self.observed.timing.map_or_else(Instant::now, |(_, since)| since);
        self.observed.timing = Some((fields, since));
    }

    pub(super) fn write_trace_var(&self, name: &str, out: &mut Vec<u8>) {
        let Some(TraceContext { trace, span, .. }) = self.trace().map(Trace::context) else { return };
        let id = if name == "trace_id" { trace.to_string() } else { span.to_string() };
        out.extend_from_slice(id.as_bytes());
    }
}
