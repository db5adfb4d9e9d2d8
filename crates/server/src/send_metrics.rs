//! What is sent of a running server's metrics, and where, follows its configuration.

use crate::StartError;
use crate::metrics_export::{NextMetrics, SentMetrics};
use crate::state::Server;
use regent_config::MetricsExport;
use regent_otlp::Reading;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;

impl Server {
    /// As the configuration of the start wants it.
    pub async fn begin_to_send_metrics(self: &Arc<Self>) -> Result<(), StartError> {
        // Whoever has stopped it already needs no metrics.
        let Ok(mut state) = self.lock().await else { return Ok(()) };
        let wanted = self.send_metrics(None, state.config.global.metrics_export.as_ref()).await?;
        if let NextMetrics::Changed(metrics) = wanted {
            state.metrics = metrics;
        }
        Ok(())
    }

    /// `before`: where they are sent now; `config`: where they are to be sent.
    pub async fn send_metrics(
        self: &Arc<Self>,
        before: Option<&SentMetrics>,
        config: Option<&MetricsExport>,
    ) -> Result<NextMetrics, StartError> {
        if before.map(SentMetrics::config) == config {
            return Ok(NextMetrics::Kept);
        }
        let Some(config) = config.cloned() else { return Ok(NextMetrics::Changed(None)) };
        let (started, read) = (self.registry.started(), reader(Arc::downgrade(self)));
        // It reads certificates.
        let sent = tokio::task::spawn_blocking(move || SentMetrics::start(config, started, read)).await;
        let sent = sent.expect("invariant: starting it does not panic")?;
        Ok(NextMetrics::Changed(Some(Box::new(sent))))
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
