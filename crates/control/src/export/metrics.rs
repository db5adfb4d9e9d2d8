//! Metrics on their way to a collector, as long as the configuration and the environment say the same.

use regent_config::MetricsExport;
use regent_otlp::{Error, MetricsExporter, Reading};
use std::time::{Duration, SystemTime};

/// How long a stop waits for the collector at most.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Sends them.
pub struct SentMetrics {
    config: MetricsExport,
    exporter: MetricsExporter,
}

/// Whether metrics are sent elsewhere from now on.
pub enum NextMetrics {
    Kept,
    /// `None`: nowhere.
    Changed(Option<Box<SentMetrics>>),
}

impl NextMetrics {
    /// Blocks: it reads certificates. `before`: where they are sent now; `config`: where they are to be sent; `started`: when the
    /// server was; `read`: how they are read.
    pub fn prepare(
        before: Option<&MetricsExport>,
        config: Option<&MetricsExport>,
        started: SystemTime,
        read: impl Fn() -> Reading + Send + 'static,
    ) -> Result<Self, Error> {
        if before == config {
            return Ok(Self::Kept);
        }
        let start = |config: &MetricsExport| {
            let exporter = MetricsExporter::start(config, env!("CARGO_PKG_VERSION"), started, read)?;
            Ok(Box::new(SentMetrics { config: config.clone(), exporter }))
        };
        config.map(start).transpose().map(Self::Changed)
    }

    pub fn apply_to(self, sent: &mut Option<Box<SentMetrics>>) {
        if let Self::Changed(next) = self {
            *sent = next;
        }
    }
}

impl SentMetrics {
    pub fn config(&self) -> &MetricsExport {
        &self.config
    }

    /// Sends what is left, if the collector takes it at once.
    pub async fn finish(self) {
        if tokio::time::timeout(LAST_WAIT, self.exporter.finish()).await.is_err() {
            tracing::warn!("the last metrics were not sent: the collector does not answer");
        }
    }
}
