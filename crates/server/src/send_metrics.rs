//! Where the metrics of a running server are sent follows its configuration.

use crate::StartError;
use crate::state::{Server, State};
use regent_config::Config;
use regent_control::export::{NextMetrics, SentMetrics};
use regent_otlp::Reading;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;

impl Server {
    /// As the configuration of the start wants it.
    pub async fn begin_to_send_metrics(self: &Arc<Self>) -> Result<(), StartError> {
        // Whoever has stopped it already needs no metrics.
        let Ok(mut state) = self.lock().await else { return Ok(()) };
        let next = self.send_metrics(&state, &state.config).await?;
        next.apply_to(&mut state.metrics);
        Ok(())
    }

    pub async fn send_metrics(
        self: &Arc<Self>,
        state: &State,
        config: &Config,
    ) -> Result<NextMetrics, StartError> {
        let before = state.metrics.as_deref().map(SentMetrics::config).cloned();
        let wanted = config.global.metrics_export.clone();
        let (started, read) = (self.registry.started(), reader(Arc::downgrade(self)));
        let prepare = move || NextMetrics::prepare(before.as_ref(), wanted.as_ref(), started, read);
        let prepared = tokio::task::spawn_blocking(prepare).await;
        Ok(prepared.expect("invariant: nothing in it panics")?)
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
