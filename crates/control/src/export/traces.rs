//! Where traces go: as long as the environment says the same, which is as long as the process lives, by one exporter.

use regent_config as config;
use regent_otlp::{Counts, Error, Exporter};
use regent_traces::{ParentRule, Propagation, RootRule, Sampler, SpanSink, Tracer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a stop waits for the collector at most.
const LAST_WAIT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Traces(Mutex<Option<Open>>);

/// What was opened last.
struct Open {
    config: config::Traces,
    tracer: Arc<Tracer>,
    /// `None`: nothing is recorded.
    exporter: Option<Arc<Exporter>>,
}

impl Traces {
    /// `None`: no request is traced. Blocks: certificates are read.
    pub fn open(&self, config: Option<&config::Traces>) -> Result<Option<Arc<Tracer>>, Error> {
        let Some(config) = config else { return Ok(None) };
        let mut open = self.lock();
        if let Some(known) = open.as_ref().filter(|known| known.config == *config) {
            return Ok(Some(Arc::clone(&known.tracer)));
        }
        let start = |export| Exporter::start(export, env!("CARGO_PKG_VERSION")).map(Arc::new);
        let exporter = config.export.as_ref().map(start).transpose()?;
        let sink: Option<Arc<dyn SpanSink>> = exporter.as_ref().map(|exporter| exporter.sink());
        let tracer = Arc::new(Tracer::new(sampler(config.sampler), propagation(config.propagation), sink));
        *open = Some(Open { config: config.clone(), tracer: Arc::clone(&tracer), exporter });
        Ok(Some(tracer))
    }

    /// `None`: nothing is recorded.
    pub fn counts(&self) -> Option<Counts> {
        self.exporter().map(|exporter| exporter.counts())
    }

    /// Sends what is left, as far as the collector takes it at once.
    pub async fn finish(&self) {
        let Some(exporter) = self.exporter() else { return };
        if tokio::time::timeout(LAST_WAIT, exporter.finish()).await.is_err() {
            tracing::warn!("the last traces were not sent: the collector does not answer");
        }
    }

    fn exporter(&self) -> Option<Arc<Exporter>> {
        self.lock().as_ref()?.exporter.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sampler(config: config::TraceSampler) -> Sampler {
    let root = match config.ratio {
        1.0 => RootRule::Always,
        0.0 => RootRule::Never,
        ratio => RootRule::Ratio(ratio),
    };
    let parent = if config.follows_parent { ParentRule::Followed } else { ParentRule::Ignored };
    Sampler { root, parent }
}

fn propagation(config: config::TracePropagation) -> Propagation {
    match config {
        config::TracePropagation::TraceContext => Propagation::TraceContext,
        config::TracePropagation::Nothing => Propagation::Nothing,
    }
}
