//! What an engine does for a traced request, as spans: the wait for a thread, and the time on it.

use crate::target::Target;
use regent_engines::{Course, InFlight, Subject, Submitted};
use regent_handlers::Step;
use regent_traces::{Attribute, Period, SpanKind};
use regent_wire::clock;
use std::time::{Duration, Instant};

/// As `Server-Timing` and spans name it.
pub(crate) fn engine(subject: &Subject) -> &'static str {
    match subject {
        Subject::Script(_) => "php",
        Subject::Service(_) => "native",
    }
}

/// Has the spans recorded when the figures of the request are complete.
pub(crate) fn observe(in_flight: &InFlight, step: &Step, target: &impl Target) {
    step.set_route(in_flight.route());
    let (step, subject, pool) = (step.clone(), target.subject(), in_flight.pool_name().to_owned());
    in_flight.observe(Box::new(move |course| record(&step, &subject, &pool, course)));
}

fn record(step: &Step, subject: &Subject, pool: &str, course: &Course) {
    // By both clocks, once, so that one span ends where the next begins.
    let (now, here) = (Instant::now(), clock::now());
    let period = |began: Duration, ended: Duration| {
        Period::before(now, here.saturating_sub(began), ended.saturating_sub(began))
    };
    let pool = || Attribute::text("regent.pool", pool.as_bytes());
    let until = course.started.unwrap_or(course.ended);
    let failure = course.failure.map(str::to_owned);
    let error = |failure: &Option<String>| {
        failure.as_ref().map(|reason| Attribute::text("error.type", reason.as_bytes()))
    };
    // What never left the queue has failed there.
    let in_queue = failure.clone().filter(|_| course.started.is_none());
    let attributes = std::iter::once(pool()).chain(error(&in_queue)).collect();
    step.waited("queue".to_owned(), period(course.ready, until), attributes, in_queue);
    let Some(started) = course.started else { return };
    let mut attributes = vec![pool(), subject_of(subject)];
    attributes.extend(course.thread.map(|thread| Attribute::number("regent.thread", thread)));
    attributes.extend(error(&failure));
    let name = engine(subject).to_owned();
    step.ended(SpanKind::Internal, name, period(started, course.ended), attributes, failure);
}

fn subject_of(subject: &Subject) -> Attribute {
    match subject {
        Subject::Script(script) => Attribute::text("code.file.path", script.as_bytes()),
        Subject::Service(service) => Attribute::text("regent.service", service.as_bytes()),
    }
}

/// Which thread runs it, if one does.
pub(crate) fn note_thread(in_flight: &InFlight, submitted: &Submitted) {
    submitted.running_on().into_iter().for_each(|(thread, since)| in_flight.running(thread, since));
}
