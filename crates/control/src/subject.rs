//! What the admin API looks at and gives orders to.

use crate::seen::Seen;
use crate::{cache, certificates, figures, threads, upstreams};
use regent_admin::{
    Certificate, CertificateAuthority, Change, Pool, ProfileWish, Readiness, Refusal, Restarted, Statistics,
    ThreadStack, Threads, Upstream,
};
use regent_cache::Store;
use regent_engines::{CommandRefused, EngineControl, EngineKind};
use regent_metrics::{Gauges, HostLabel, MemoryGauges, MetricFamily, RateZoneGauge, Registry};
use regent_otlp::Counts;
use regent_profile::Profile;
use regent_proxy::Transports;
use regent_tls::Tls;
use std::num::NonZeroU16;
use std::sync::Arc;

/// What the admin API looks at and gives orders to, as it is under one configuration.
pub struct Subject {
    /// PHP's, and that of native modules if there are any.
    pub engines: Vec<Arc<EngineControl>>,
    pub proxies: Arc<Transports>,
    /// `None`: no address has TLS.
    pub tls: Option<Tls>,
    /// What is kept under Caddy's names; `None`: nothing.
    pub http: Option<HostLabel>,
}

/// What goes on from one configuration to the next, as it stands.
pub struct Kept {
    /// The caches that are in use.
    pub stores: Vec<Arc<Store>>,
    /// What became of spans, if any are recorded.
    pub traces: Option<Counts>,
    pub rate_zones: Vec<RateZoneGauge>,
}

impl Subject {
    /// All of them, in the text format of Prometheus.
    pub async fn metrics(&self, registry: &Arc<Registry>, kept: Kept) -> String {
        self.with_gauges(registry, kept, regent_metrics::render).await
    }

    /// The same, as a library has them.
    pub async fn families(&self, registry: &Arc<Registry>, kept: Kept) -> Vec<MetricFamily> {
        self.with_gauges(registry, kept, regent_metrics::families).await
    }

    async fn with_gauges<M: Send + 'static>(
        &self,
        registry: &Arc<Registry>,
        kept: Kept,
        make: fn(&Registry, &Gauges) -> M,
    ) -> M {
        let of_pools = figures::gauges(&self.views().await.unwrap_or_default());
        let (registry, tls, http) = (Arc::clone(registry), self.tls.clone(), self.http);
        let Kept { stores, traces, rate_zones } = kept;
        let cache = cache::gauges(&stores);
        let traces = traces.map(figures::traces);
        let upstreams = self.proxies.upstreams().into_iter().map(upstreams::gauge).collect();
        // With many routes it takes tens of milliseconds, in which this thread has to scale.
        let made = tokio::task::spawn_blocking(move || {
            let certificates = certificates::gauges(tls.as_ref());
            let memory = memory();
            let gauges =
                Gauges { certificates, upstreams, rate_zones, cache, memory, traces, http, ..of_pools };
            make(&registry, &gauges)
        });
        made.await.expect("invariant: metrics are made without a panic")
    }

    pub async fn threads(&self) -> Result<Threads, Refusal> {
        Ok(threads::list(self.views().await?).await)
    }

    /// Where a thread of PHP is.
    pub async fn stack(&self, index: u16) -> Result<ThreadStack, Refusal> {
        let engine = self.engine(EngineKind::Php).ok_or(Refusal::UnknownThread(index))?;
        let stack = engine.supervisor.trace(index).await.map_err(refusal)?;
        Ok(ThreadStack { index, stack: stack.lines().map(str::to_owned).collect() })
    }

    pub async fn profile(&self, wish: ProfileWish) -> Result<Profile, Refusal> {
        let no_php = || Refusal::NoPhp("native".to_owned());
        let (engine, pool) = match &wish.pool {
            None => (self.engine(EngineKind::Php).ok_or_else(no_php)?, None),
            Some(pool) => self.find(pool).map(|(engine, index)| (engine, Some(index)))?,
        };
        let ProfileWish { path, duration, hertz, .. } = wish;
        let wish = regent_engines::ProfileWish { pool, path, duration, hertz };
        engine.supervisor.profile(wish).await.map_err(refusal)
    }

    pub async fn pools(&self) -> Result<Vec<Pool>, Refusal> {
        Ok(figures::pools(&self.views().await?))
    }

    pub async fn add(&self, pool: &str, count: NonZeroU16) -> Result<Change, Refusal> {
        let (engine, index) = self.find(pool)?;
        let total = engine.supervisor.add(index, count.get()).await.map_err(refusal)?;
        Ok(Change { changed: count.get(), total })
    }

    pub async fn remove(&self, pool: &str, count: NonZeroU16) -> Result<Change, Refusal> {
        let (engine, index) = self.find(pool)?;
        let total = engine.supervisor.remove(index, count.get()).await.map_err(refusal)?;
        Ok(Change { changed: count.get(), total })
    }

    /// Has a new generation of an engine take over.
    pub async fn restart(&self, kind: EngineKind) -> Result<Restarted, Refusal> {
        let Some(engine) = self.engine(kind) else {
            return Ok(Restarted { restarted: 0 });
        };
        let restarted = engine.supervisor.restart().await.map_err(refusal)?;
        Ok(Restarted { restarted })
    }

    /// Whether each pool has a thread that serves.
    pub async fn readiness(&self) -> Readiness {
        match self.views().await {
            Ok(views) => figures::readiness(&views),
            Err(refusal) => Readiness::NotReady(refusal.to_string()),
        }
    }

    pub async fn statistics(&self, registry: &Arc<Registry>) -> Result<Statistics, Refusal> {
        let views = self.views().await?;
        let registry = Arc::clone(registry);
        let report = tokio::task::spawn_blocking(move || registry.report());
        let report = report.await.expect("invariant: a report does not panic");
        Ok(figures::statistics(&views, &report))
    }

    pub fn upstreams(&self) -> Vec<Upstream> {
        self.proxies.upstreams().into_iter().map(upstreams::listed).collect()
    }

    pub async fn certificates(&self) -> Vec<Certificate> {
        let tls = self.tls.clone();
        // Its lock is held while files are read and certificates are made.
        let listed = tokio::task::spawn_blocking(move || certificates::list(tls.as_ref()));
        listed.await.expect("invariant: listing does not panic")
    }

    pub async fn authority(&self) -> Option<CertificateAuthority> {
        let tls = self.tls.clone();
        let read = tokio::task::spawn_blocking(move || certificates::authority(tls.as_ref()));
        read.await.expect("invariant: reading does not panic")
    }

    async fn views(&self) -> Result<Vec<Seen<'_>>, Refusal> {
        let mut views = Vec::with_capacity(self.engines.len());
        for engine in &self.engines {
            views.push((&**engine, engine.supervisor.view().await.map_err(refusal)?));
        }
        Ok(views)
    }

    fn engine(&self, kind: EngineKind) -> Option<&EngineControl> {
        self.engines.iter().find(|engine| engine.clients.kind == kind).map(|engine| &**engine)
    }

    /// The engine that has the pool of this name, and the pool's index in it.
    fn find(&self, pool: &str) -> Result<(&EngineControl, usize), Refusal> {
        let index = |engine: &EngineControl| engine.plans.iter().position(|plan| plan.name == pool);
        let found = self.engines.iter().find_map(|engine| Some((&**engine, index(engine)?)));
        found.ok_or_else(|| Refusal::UnknownPool(pool.to_owned()))
    }
}

fn memory() -> Option<MemoryGauges> {
    let regent_engines::Memory { limit, used } = regent_engines::memory()?;
    Some(MemoryGauges { limit, used })
}

fn refusal(refused: CommandRefused) -> Refusal {
    match refused {
        CommandRefused::TooMany { threads, most } => Refusal::TooMany { threads, most },
        CommandRefused::TooFew { threads } => Refusal::TooFew { threads },
        CommandRefused::ProfileUnderWay => Refusal::ProfileUnderWay,
        CommandRefused::NoThread(index) => Refusal::UnknownThread(index),
        CommandRefused::Unavailable(reason) => Refusal::Unavailable(reason),
    }
}
