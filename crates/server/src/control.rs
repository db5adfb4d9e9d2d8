//! The server as the admin listener sees it.

mod figures;
mod threads;

use crate::acceptor::Command;
use crate::plan::PoolPlan;
use crate::pools::Pools;
use crate::supervisor::{Handle, Refused, View};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use regent_admin::{Change, Control, Readiness, Refusal, Restarted, Statistics, Threads};
use std::num::NonZeroU16;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// Carries out what the admin API asks for.
pub(crate) struct ServerControl {
    pub supervisor: Handle,
    pub pools: Arc<Pools>,
    pub plans: Vec<PoolPlan>,
    pub io_threads: Vec<mpsc::UnboundedSender<Command>>,
    pub configuration: Arc<serde_json::Value>,
    /// Told when somebody asked the server to stop.
    pub stop: Arc<Notify>,
}

impl ServerControl {
    async fn view(&self) -> Result<View, Refusal> {
        self.supervisor.view().await.map_err(refusal)
    }

    fn index(&self, pool: &str) -> Result<usize, Refusal> {
        let found = self.plans.iter().position(|plan| plan.name == pool);
        found.ok_or_else(|| Refusal::UnknownPool(pool.to_owned()))
    }
}

impl Control for ServerControl {
    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        async { Ok(threads::list(&self.plans, self.view().await?, &self.io_threads).await) }.boxed()
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<regent_admin::Pool>, Refusal>> {
        async { Ok(figures::pools(&self.plans, &self.view().await?)) }.boxed()
    }

    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let total = self.supervisor.add(self.index(pool)?, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let total = self.supervisor.remove(self.index(pool)?, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        async {
            let restarted = self.supervisor.restart_workers().await.map_err(refusal)?;
            Ok(Restarted { restarted })
        }
        .boxed()
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        async {
            match self.view().await {
                Ok(view) => figures::readiness(&self.plans, &view),
                Err(refusal) => Readiness::NotReady(refusal.to_string()),
            }
        }
        .boxed()
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        async {
            let gauges = figures::gauges(&self.pools, self.view().await.ok().as_ref());
            let pools = Arc::clone(&self.pools);
            // With many routes it takes tens of milliseconds, in which this thread has to scale.
            let rendered =
                tokio::task::spawn_blocking(move || regent_metrics::render(&pools.registry, &gauges));
            rendered.await.expect("invariant: rendering does not panic")
        }
        .boxed()
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>> {
        async {
            let view = self.view().await?;
            let pools = Arc::clone(&self.pools);
            let report = tokio::task::spawn_blocking(move || pools.registry.report());
            let report = report.await.expect("invariant: a report does not panic");
            Ok(figures::statistics(&self.plans, &view, &report))
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
