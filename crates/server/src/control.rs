//! The server as the admin listener sees it.

mod figures;
mod threads;

use crate::inline_reload::{self, InlineReload};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use regent_admin::{Change, Control, Readiness, Refusal, Restarted, Statistics, Threads};
use regent_engines::{CommandRefused, EngineControl, EngineKind, View};
use regent_metrics::Registry;
use std::num::NonZeroU16;
use std::sync::Arc;
use tokio::sync::Notify;

/// Carries out what the admin API asks for.
pub(crate) struct ServerControl {
    /// PHP's, and that of native modules if there are any.
    pub engines: Vec<EngineControl>,
    /// Of the native modules that run in the server.
    pub inline: InlineReload,
    pub registry: Arc<Registry>,
    pub configuration: Arc<serde_json::Value>,
    /// Told when somebody asked the server to stop.
    pub stop: Arc<Notify>,
}

/// A engine, and how it stands.
type Seen<'a> = (&'a EngineControl, View);

impl ServerControl {
    async fn views(&self) -> Result<Vec<Seen<'_>>, Refusal> {
        let mut views = Vec::with_capacity(self.engines.len());
        for engine in &self.engines {
            views.push((engine, engine.supervisor.view().await.map_err(refusal)?));
        }
        Ok(views)
    }

    /// The engine that has the pool of this name, and the pool's index in it.
    fn find(&self, pool: &str) -> Result<(&EngineControl, usize), Refusal> {
        let index = |engine: &EngineControl| engine.plans.iter().position(|plan| plan.name == pool);
        let found = self.engines.iter().find_map(|engine| Some((engine, index(engine)?)));
        found.ok_or_else(|| Refusal::UnknownPool(pool.to_owned()))
    }

    /// What runs in the server is loaded first, since it can be refused without a consequence, and takes over last.
    async fn restart_all_native(&self) -> Result<Restarted, Refusal> {
        let _turn = self.inline.turn().await;
        let inlined = self.inline.load().await;
        let inlined = inlined.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        match self.restart(EngineKind::Native).await {
            Ok(restarted) => {
                self.inline.switch_to(inlined).await;
                Ok(restarted)
            }
            Err(refusal) => {
                inline_reload::drop_elsewhere(inlined);
                Err(refusal)
            }
        }
    }

    async fn restart(&self, kind: EngineKind) -> Result<Restarted, Refusal> {
        let Some(engine) = self.engines.iter().find(|engine| engine.clients.kind == kind) else {
            return Ok(Restarted { restarted: 0 });
        };
        let restarted = engine.supervisor.restart().await.map_err(refusal)?;
        Ok(Restarted { restarted })
    }
}

impl Control for ServerControl {
    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        async { Ok(threads::list(self.views().await?).await) }.boxed()
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<regent_admin::Pool>, Refusal>> {
        async { Ok(figures::pools(&self.views().await?)) }.boxed()
    }

    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let (engine, index) = self.find(pool)?;
            let total = engine.supervisor.add(index, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let (engine, index) = self.find(pool)?;
            let total = engine.supervisor.remove(index, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        self.restart(EngineKind::Php).boxed()
    }

    fn restart_native(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        self.restart_all_native().boxed()
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        async {
            match self.views().await {
                Ok(views) => figures::readiness(&views),
                Err(refusal) => Readiness::NotReady(refusal.to_string()),
            }
        }
        .boxed()
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        async {
            let gauges = figures::gauges(&self.views().await.unwrap_or_default());
            let registry = Arc::clone(&self.registry);
            // With many routes it takes tens of milliseconds, in which this thread has to scale.
            let rendered = tokio::task::spawn_blocking(move || regent_metrics::render(&registry, &gauges));
            rendered.await.expect("invariant: rendering does not panic")
        }
        .boxed()
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>> {
        async {
            let views = self.views().await?;
            let registry = Arc::clone(&self.registry);
            let report = tokio::task::spawn_blocking(move || registry.report());
            let report = report.await.expect("invariant: a report does not panic");
            Ok(figures::statistics(&views, &report))
        }
        .boxed()
    }

    fn configuration(&self) -> Arc<serde_json::Value> {
        Arc::clone(&self.configuration)
    }

    fn stop(&self) {
        self.stop.notify_one();
    }
}

fn refusal(refused: CommandRefused) -> Refusal {
    match refused {
        CommandRefused::TooMany { threads, most } => Refusal::TooMany { threads, most },
        CommandRefused::TooFew { threads } => Refusal::TooFew { threads },
        CommandRefused::Unavailable(reason) => Refusal::Unavailable(reason),
    }
}

/// As the admin API names it.
fn engine(kind: EngineKind) -> regent_admin::Engine {
    match kind {
        EngineKind::Php => regent_admin::Engine::Php,
        EngineKind::Native => regent_admin::Engine::Native,
    }
}
