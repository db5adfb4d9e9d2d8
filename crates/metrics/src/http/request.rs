//! A request that is being answered.

use super::figures::{MethodLabel, SeriesKey};
use super::meter::{HttpMeter, Measured, Outcome};
use super::scopes::{HttpLabels, ScopeId};
use std::rc::Rc;
use std::time::Instant;

/// Of a request whose client left before there was a response, as nginx has it in logs.
const CLIENT_LEFT: u16 = 499;

/// Counted as in flight until it is dropped, and then as what became of it.
pub struct HttpRequest {
    meter: Rc<HttpMeter>,
    started: Instant,
    request_size: u64,
    sent: u64,
    scope: ScopeId,
    status: u16,
    method: MethodLabel,
    outcome: Outcome,
}

impl HttpRequest {
    /// `host`: in lower case, without a port. `size`: bytes of its head and of its body, as far as that is known.
    pub fn begin(
        meter: &Rc<HttpMeter>,
        labels: &HttpLabels,
        (method, host): (&str, &str),
        size: u64,
        started: Instant,
    ) -> Self {
        let scope = meter.scope(labels, host);
        meter.started(scope);
        Self {
            meter: Rc::clone(meter),
            started,
            request_size: size,
            sent: 0,
            scope,
            status: CLIENT_LEFT,
            method: MethodLabel::new(method),
            outcome: Outcome::Answered,
        }
    }

    /// The head of its response is written now.
    pub fn respond(&mut self, status: u16, outcome: Outcome) {
        self.status = status;
        self.outcome = outcome;
        self.meter.responded(self.key(), self.started.elapsed());
    }

    /// Bytes of the response's body.
    pub fn send(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    fn key(&self) -> SeriesKey {
        SeriesKey { scope: self.scope, status: self.status, method: self.method }
    }
}

impl Drop for HttpRequest {
    fn drop(&mut self) {
        self.meter.ended(&Measured {
            key: self.key(),
            duration: self.started.elapsed(),
            request_size: self.request_size,
            response_size: self.sent,
            outcome: self.outcome,
        });
    }
}
