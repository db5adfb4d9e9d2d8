//! Metrics on their way to a collector, as long as the configuration and the environment say the same.

use regent_config::MetricsExport;
use regent_otlp::{Error, MetricsExporter, Reading};
use std::time::{Duration, SystemTime};

/// How long a stop waits for the collector at most.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Sends them.
pub(crate) struct SentMetrics {
    config: MetricsExport,
    exporter: MetricsExporter,
}

/// Whether metrics are sent elsewhere from now on.
pub(crate) enum NextMetrics {
    Kept,
    /// `None`: nowhere.
    Changed(Option<Box<SentMetrics>>),
}

impl SentMetrics {
    /// Blocks: it reads certificates. `started`: when the server was.
    pub fn start(
        config: MetricsExport,
        started: SystemTime,
        read: impl Fn() -> Reading + Send + 'static,
    ) -> Result<Self, Error> {
        let exporter = MetricsExporter::start(&config, env!("CARGO_PKG_VERSION"), started, read)?;
        Ok(Self { config, exporter })
    }

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
