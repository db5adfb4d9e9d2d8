//! The thread that sends metrics.

use crate::collector::{Answer, Collector};
use crate::envelope::Envelope;
use crate::exporter::Error;
use crate::points;
use crate::thread::{Stopping, Thread};
use bytes::Bytes;
use prometheus::proto::MetricFamily;
use regent_config::MetricsExport;
use std::pin::Pin;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// Before all metrics are sent once more; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// All metrics at one moment. `None`: the server is gone.
pub type Reading = Pin<Box<dyn Future<Output = Option<Vec<MetricFamily>>> + Send>>;

/// Reads all metrics at fixed times and sends them to a collector, until it is dropped; then once more.
///
/// They count from the start of the server on, so that what a collector did not take is in what comes next.
pub struct MetricsExporter(Thread);

impl MetricsExporter {
    /// Blocks: it reads certificates. `version`: that of the server; `started`: when it was started.
    pub fn start(
        export: &MetricsExport,
        version: &'static str,
        started: SystemTime,
        read: impl Fn() -> Reading + Send + 'static,
    ) -> Result<Self, Error> {
        let envelope = Envelope::new(&export.collector.resource, version, export.collector.compression);
        let collector = Collector::new(&export.collector, version)?;
        let interval = export.interval;
        let run =
            |stopping| Sending { read, started, envelope, collector, interval, stopping, fails: false }.run();
        Thread::start("metrics", run).map(Self).map_err(Error::Thread)
    }

    /// Sends the metrics as they are now, once, and ends.
    pub async fn finish(&self) {
        self.0.finish().await;
    }
}

/// What the thread has.
struct Sending<R> {
    read: R,
    started: SystemTime,
    envelope: Envelope,
    collector: Collector,
    interval: Duration,
    stopping: Stopping,
    /// The collector did not take what was sent last, which the log has said.
    fails: bool,
}

impl<R: Fn() -> Reading> Sending<R> {
    async fn run(mut self) {
        let mut times = interval_at(Instant::now() + self.interval, self.interval);
        times.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = times.tick() => {}
                () = self.stopping.wait() => {}
            }
            let is_last = self.stopping.is_so();
            let give_up = Instant::now() + self.interval;
            let Some(families) = (self.read)().await else { return };
            let metrics = points::metrics(&families, self.started, SystemTime::now());
            let body = self.envelope.of_metrics(metrics);
            self.send(&body, give_up).await;
            if is_last {
                return;
            }
        }
    }

    /// Sends them, again if need be, until the next are due.
    async fn send(&mut self, body: &Bytes, give_up: Instant) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (why, after) = match self.collector.send(body).await {
                Answer::Taken { rejected: 0, .. } => return self.went_well(),
                Answer::Taken { rejected, reason } => {
                    return self.failed(&format!("it refuses {rejected} points: {reason}"));
                }
                Answer::Refused(why) => return self.failed(&why),
                Answer::Later { why, after } => (why, after),
            };
            let next = Instant::now() + after.unwrap_or(pause).max(FIRST_PAUSE);
            if next >= give_up || self.stopping.is_so() {
                return self.failed(&why);
            }
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.stopping.wait() => {}
            }
            pause *= 2;
        }
    }

    fn went_well(&mut self) {
        if std::mem::take(&mut self.fails) {
            let collector = self.collector.name();
            tracing::info!(%collector, "the collector takes metrics again");
        }
    }

    fn failed(&mut self, why: &str) {
        if !std::mem::replace(&mut self.fails, true) {
            let collector = self.collector.name();
            tracing::warn!(%collector, reason = why, "the collector does not take metrics; they are sent again when the next are due");
        }
    }
}
