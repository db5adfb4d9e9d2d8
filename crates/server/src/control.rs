//! The server as the admin listener sees it.

mod figures;
mod threads;

use crate::kind::EngineKind;
use crate::native::{self, Renewal};
use crate::stack::StackControl;
use crate::supervisor::{Refused, View};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use regent_admin::{Change, Control, Readiness, Refusal, Restarted, Statistics, Threads};
use regent_metrics::Registry;
use std::num::NonZeroU16;
use std::sync::Arc;
use tokio::sync::Notify;

/// Carries out what the admin API asks for.
pub(crate) struct ServerControl {
    /// PHP's, and that of native modules if there are any.
    pub stacks: Vec<StackControl>,
    /// Of the native modules that run in the server.
    pub renewal: Renewal,
    pub registry: Arc<Registry>,
    pub configuration: Arc<serde_json::Value>,
    /// Told when somebody asked the server to stop.
    pub stop: Arc<Notify>,
}

/// A stack, and how it stands.
type Seen<'a> = (&'a StackControl, View);

impl ServerControl {
    async fn views(&self) -> Result<Vec<Seen<'_>>, Refusal> {
        let mut views = Vec::with_capacity(self.stacks.len());
        for stack in &self.stacks {
            views.push((stack, stack.supervisor.view().await.map_err(refusal)?));
        }
        Ok(views)
    }

    /// The stack that has the pool of this name, and the pool's index in it.
    fn find(&self, pool: &str) -> Result<(&StackControl, usize), Refusal> {
        let index = |stack: &StackControl| stack.plans.iter().position(|plan| plan.name == pool);
        let found = self.stacks.iter().find_map(|stack| Some((stack, index(stack)?)));
        found.ok_or_else(|| Refusal::UnknownPool(pool.to_owned()))
    }

    /// What runs in the server is loaded first, since it can be refused without a consequence, and takes over last.
    async fn restart_all_native(&self) -> Result<Restarted, Refusal> {
        let _turn = self.renewal.turn().await;
        let inlined = self.renewal.load().await;
        let inlined = inlined.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        match self.restart(EngineKind::Native).await {
            Ok(restarted) => {
                self.renewal.switch_to(inlined).await;
                Ok(restarted)
            }
            Err(refusal) => {
                native::drop_elsewhere(inlined);
                Err(refusal)
            }
        }
    }

    async fn restart(&self, kind: EngineKind) -> Result<Restarted, Refusal> {
        let Some(stack) = self.stacks.iter().find(|stack| stack.links.kind == kind) else {
            return Ok(Restarted { restarted: 0 });
        };
        let restarted = stack.supervisor.restart().await.map_err(refusal)?;
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
            let (stack, index) = self.find(pool)?;
            let total = stack.supervisor.add(index, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let (stack, index) = self.find(pool)?;
            let total = stack.supervisor.remove(index, count.get()).await.map_err(refusal)?;
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

fn refusal(refused: Refused) -> Refusal {
    match refused {
        Refused::TooMany { threads, most } => Refusal::TooMany { threads, most },
        Refused::TooFew { threads } => Refusal::TooFew { threads },
        Refused::Unavailable(reason) => Refusal::Unavailable(reason),
    }
}
