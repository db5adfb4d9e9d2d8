//! The thread that sends spans.

use crate::collector::{Answer, Collector};
use crate::envelope::Envelope;
use crate::figures::{Counts, Figures, Loss};
use crate::queue::{Inlet, Outlet, queue};
use crate::thread::{Stopping, Thread};
use regent_config::{TraceBatches, TraceExport};
use regent_traces::{Span, SpanSink};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Before a batch is sent once more; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// For which a collector is left alone that asks for it.
const LONGEST_REST: Duration = Duration::from_secs(300);
/// Between two lines in the log.
const QUIET: Duration = Duration::from_secs(60);

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("TLS to the collector of OpenTelemetry: {0}")]
    Tls(#[from] regent_tls::Error),
    #[error("starting the thread that sends to the collector of OpenTelemetry: {0}")]
    Thread(io::Error),
}

/// Sends spans to a collector, until it is dropped; what waits then is sent still, once.
pub struct Exporter {
    inlet: Arc<Inlet>,
    figures: Arc<Figures>,
    thread: Thread,
}

impl Exporter {
    /// Blocks: it reads certificates. `version`: that of the server.
    pub fn start(export: &TraceExport, version: &'static str) -> Result<Self, Error> {
        let figures = Arc::<Figures>::default();
        let (inlet, outlet) = queue(export.batches.queue, export.batches.size, &figures);
        let envelope = Envelope::new(&export.collector.resource, version, export.collector.compression);
        let collector = Collector::new(&export.collector, version)?;
        let (batches, counted) = (export.batches, Arc::clone(&figures));
        let run = |stopping| {
            let complaints = Complaints::default();
            let (figures, resting) = (counted, None);
            Sending { outlet, envelope, collector, batches, figures, stopping, resting, complaints }.run()
        };
        let thread = Thread::start("traces", run).map_err(Error::Thread)?;
        Ok(Self { inlet: Arc::new(inlet), figures, thread })
    }

    /// Where spans are put.
    pub fn sink(&self) -> Arc<dyn SpanSink> {
        Arc::clone(&self.inlet) as _
    }

    pub fn counts(&self) -> Counts {
        self.figures.counts()
    }

    /// Takes no more spans, sends those that wait, each batch once, and ends.
    pub async fn finish(&self) {
        self.thread.finish().await;
    }
}

/// What the thread has.
struct Sending {
    outlet: Outlet,
    envelope: Envelope,
    collector: Collector,
    batches: TraceBatches,
    figures: Arc<Figures>,
    stopping: Stopping,
    /// Until when the collector wants to be left alone.
    resting: Option<Instant>,
    complaints: Complaints,
}

impl Sending {
    async fn run(mut self) {
        loop {
            let next = Instant::now() + self.batches.delay;
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.outlet.enough() => {}
                () = self.stopping.wait() => self.outlet.close(),
            }
            let is_last = self.stopping.is_so();
            loop {
                let spans = self.outlet.take();
                if spans.is_empty() {
                    break;
                }
                self.rest().await;
                self.send(spans).await;
            }
            self.complaints.of_losses(&self.collector, self.figures.counts());
            if is_last {
                return;
            }
        }
    }

    /// As long as the collector has asked for, or until the server stops.
    async fn rest(&mut self) {
        if let Some(until) = self.resting.take() {
            self.pause(until).await;
        }
    }

    async fn pause(&mut self, until: Instant) {
        tokio::select! {
            () = sleep_until(until) => {}
            () = self.stopping.wait() => {}
        }
    }

    /// Sends a batch, again if need be, and counts what becomes of it.
    async fn send(&mut self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        let body = self.envelope.of_spans(spans);
        let give_up = Instant::now() + self.batches.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let (why, after) = match self.collector.send(&body).await {
                Answer::Taken { rejected, reason } => {
                    let rejected = rejected.min(count);
                    self.figures.exported(count - rejected);
                    if rejected > 0 {
                        self.figures.lost(Loss::Refused, rejected);
                        self.complaints.note(&self.collector, &reason);
                    }
                    return;
                }
                Answer::Refused(why) => {
                    self.figures.lost(Loss::Refused, count);
                    return self.complaints.note(&self.collector, &why);
                }
                Answer::Later { why, after } => (why, after),
            };
            self.complaints.note(&self.collector, &why);
            let next = Instant::now() + after.map_or(pause, |after| after.min(LONGEST_REST));
            if self.stopping.is_so() {
                return self.figures.lost(Loss::Stopped, count);
            }
            if next >= give_up {
                self.resting = after.map(|_| next);
                return self.figures.lost(Loss::Unreachable, count);
            }
            self.pause(next).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// What the log says: a line a minute at most, whatever happens.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    /// Spans that were lost when something was said last.
    lost: u64,
}

impl Complaints {
    fn note(&mut self, collector: &Collector, why: &str) {
        if self.is_time() {
            let collector = collector.name();
            tracing::warn!(%collector, reason = why, "the collector does not take all traces; requests do not wait for it");
        }
    }

    fn of_losses(&mut self, collector: &Collector, counts: Counts) {
        let lost = counts.lost().map(|(_, spans)| spans).sum::<u64>();
        if lost > self.lost && self.is_time() {
            let collector = collector.name();
            tracing::warn!(%collector, spans = lost - self.lost, "spans were lost, since the collector did not take them in time");
            self.lost = lost;
        }
    }

    fn is_time(&mut self) -> bool {
        let now = Instant::now();
        let is_time = self.last.is_none_or(|last| now.duration_since(last) >= QUIET);
        if is_time {
            self.last = Some(now);
        }
        is_time
    }
}

#[cfg(test)]
mod tests;
