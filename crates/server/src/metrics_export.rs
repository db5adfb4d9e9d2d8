//! Metrics on their way to a collector, as long as the configuration and the environment say the same.

use crate::StartError;
use crate::state::Server;
use regent_config::MetricsExport;
use regent_otlp::{MetricsExporter, Reading};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

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

impl Server {
    /// `before`: where they are sent now; `config`: where they are to be sent.
    pub async fn send_metrics(
        self: &Arc<Self>,
        before: Option<&SentMetrics>,
        config: Option<&MetricsExport>,
    ) -> Result<NextMetrics, StartError> {
        if before.map(|sent| &sent.config) == config {
            return Ok(NextMetrics::Kept);
        }
        let Some(config) = config.cloned() else { return Ok(NextMetrics::Changed(None)) };
        let (started, read) = (self.registry.started(), reader(Arc::downgrade(self)));
        let start = move || {
            let exporter = MetricsExporter::start(&config, env!("CARGO_PKG_VERSION"), started, read)?;
            Ok(SentMetrics { config, exporter })
        };
        // It reads certificates.
        let sent = tokio::task::spawn_blocking(start).await;
        let sent: Result<_, regent_otlp::Error> = sent.expect("invariant: starting it does not panic");
        Ok(NextMetrics::Changed(Some(Box::new(sent?))))
    }
}

impl SentMetrics {
    /// Sends what is left, if the collector takes it at once.
    pub async fn finish(self) {
        if tokio::time::timeout(LAST_WAIT, self.exporter.finish()).await.is_err() {
            tracing::warn!("the last metrics were not sent: the collector does not answer");
        }
    }
}

/// What looks at engines belongs to the runtime of the server.
fn reader(server: Weak<Server>) -> impl Fn() -> Reading + Send + 'static {
    let runtime = Handle::current();
    move || {
        let server = server.clone();
        let reading = runtime.spawn(async move { Some(server.upgrade()?.metric_families().await) });
        Box::pin(async move { reading.await.ok().flatten() })
    }
}
