//! The server as the admin listener sees it.

mod cache;
mod certificates;
mod figures;
mod threads;
mod upstreams;

use crate::Place;
use crate::inline_reload;
use crate::reload::{Force, ReloadError, Reloaded};
use crate::state::{Current, Server, State};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use regent_admin::{
    Adapted, Change, Control, Readiness, Refusal, Reload, Restarted, Statistics, ThreadStack, Threads,
    Upgraded,
};
use regent_engines::{CommandRefused, EngineControl, EngineKind, ProfileWish, View};
use regent_metrics::{AdminRequest, Gauges, MemoryGauges};
use regent_profile::Profile;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Carries out what the admin API asks for.
pub(crate) struct ServerControl {
    pub server: Arc<Server>,
    /// Told when somebody asked the server to stop.
    pub stop: Arc<Notify>,
}

/// A engine, and how it stands.
type Seen<'a> = (&'a EngineControl, View);

impl Current {
    async fn views(&self) -> Result<Vec<Seen<'_>>, Refusal> {
        let mut views = Vec::with_capacity(self.engines.len());
        for engine in &self.engines {
            views.push((&**engine, engine.supervisor.view().await.map_err(refusal)?));
        }
        Ok(views)
    }

    /// The engine that has the pool of this name, and the pool's index in it.
    fn find(&self, pool: &str) -> Result<(&EngineControl, usize), Refusal> {
        let index = |engine: &EngineControl| engine.plans.iter().position(|plan| plan.name == pool);
        let found = self.engines.iter().find_map(|engine| Some((&**engine, index(engine)?)));
        found.ok_or_else(|| Refusal::UnknownPool(pool.to_owned()))
    }
}

impl Server {
    /// All of them, in the text format of Prometheus.
    pub async fn metrics(&self) -> String {
        let current = self.current();
        let of_pools = figures::gauges(&current.views().await.unwrap_or_default());
        let (registry, tls, http) = (Arc::clone(&self.registry), current.tls.clone(), current.http);
        let cache = cache::gauges(&self.lasting.caches);
        let upstreams = current.proxies.upstreams().into_iter().map(upstreams::gauge).collect();
        // With many routes it takes tens of milliseconds, in which this thread has to scale.
        let rendered = tokio::task::spawn_blocking(move || {
            let certificates = certificates::gauges(tls.as_ref());
            let memory = memory();
            let gauges = Gauges { certificates, upstreams, cache, memory, http, ..of_pools };
            regent_metrics::render(&registry, &gauges)
        });
        rendered.await.expect("invariant: rendering does not panic")
    }
}

fn memory() -> Option<MemoryGauges> {
    let regent_engines::Memory { limit, used } = regent_engines::memory()?;
    Some(MemoryGauges { limit, used })
}

impl ServerControl {
    /// What runs in the server is loaded first, since it can be refused without a consequence, and takes over last.
    async fn restart_all_native(&self) -> Result<Restarted, Refusal> {
        let mut stopping = self.server.stopping.subscribe();
        let mut state = self.server.lock().await.map_err(not_reloaded)?;
        tokio::select! {
            restarted = self.restart_native_of(&mut state) => restarted,
            // A stop needs the lock. The sender is the server's own.
            _ = stopping.wait_for(|stopping| *stopping) => Err(not_reloaded(ReloadError::Stopping)),
        }
    }

    async fn restart_native_of(&self, state: &mut State) -> Result<Restarted, Refusal> {
        let inlined = inline_reload::load(state.config.global.native.clone()).await;
        let inlined = inlined.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        match self.restart(EngineKind::Native).await {
            Ok(restarted) => {
                let before = self.server.io.switch_inlined(&inlined).await;
                state.inlined = inlined;
                drop(before);
                Ok(restarted)
            }
            Err(refusal) => {
                drop(inlined);
                Err(refusal)
            }
        }
    }

    async fn restart(&self, kind: EngineKind) -> Result<Restarted, Refusal> {
        let current = self.server.current();
        let Some(engine) = current.engines.iter().find(|engine| engine.clients.kind == kind) else {
            return Ok(Restarted { restarted: 0 });
        };
        let restarted = engine.supervisor.restart().await.map_err(refusal)?;
        Ok(Restarted { restarted })
    }
}

impl Control for ServerControl {
    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        async { Ok(threads::list(self.server.current().views().await?).await) }.boxed()
    }

    fn stack(&self, index: u16) -> BoxFuture<'_, Result<ThreadStack, Refusal>> {
        async move {
            let current = self.server.current();
            let php = current.engines.iter().find(|engine| engine.clients.kind == EngineKind::Php);
            let engine = php.ok_or(Refusal::UnknownThread(index))?;
            let stack = engine.supervisor.trace(index).await.map_err(refusal)?;
            Ok(ThreadStack { index, stack: stack.lines().map(str::to_owned).collect() })
        }
        .boxed()
    }

    fn profile(&self, wish: regent_admin::ProfileWish) -> BoxFuture<'_, Result<Profile, Refusal>> {
        async move {
            let current = self.server.current();
            let php = current.engines.iter().find(|engine| engine.clients.kind == EngineKind::Php);
            let no_php = || Refusal::NoPhp("native".to_owned());
            let (engine, pool) = match &wish.pool {
                None => (&**php.ok_or_else(no_php)?, None),
                Some(pool) => current.find(pool).map(|(engine, index)| (engine, Some(index)))?,
            };
            let regent_admin::ProfileWish { path, duration, hertz, .. } = wish;
            engine.supervisor.profile(ProfileWish { pool, path, duration, hertz }).await.map_err(refusal)
        }
        .boxed()
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<regent_admin::Pool>, Refusal>> {
        async { Ok(figures::pools(&self.server.current().views().await?)) }.boxed()
    }

    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let current = self.server.current();
            let (engine, index) = current.find(pool)?;
            let total = engine.supervisor.add(index, count.get()).await.map_err(refusal)?;
            Ok(Change { changed: count.get(), total })
        }
        .boxed()
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move {
            let current = self.server.current();
            let (engine, index) = current.find(pool)?;
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
            let current = self.server.current();
            let ready = match current.views().await {
                Ok(views) => figures::readiness(&views),
                Err(refusal) => Readiness::NotReady(refusal.to_string()),
            };
            match &current.health {
                Some(check) if ready == Readiness::Ready => {
                    let asked = self.server.io.probe(check.clone()).await;
                    asked.map_or_else(Readiness::NotReady, |()| Readiness::Ready)
                }
                _ => ready,
            }
        }
        .boxed()
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        self.server.metrics().boxed()
    }

    fn answered(&self, request: AdminRequest<'_>) {
        self.server.registry.admin_answered(request);
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>> {
        async {
            let current = self.server.current();
            let views = current.views().await?;
            let registry = Arc::clone(&self.server.registry);
            let report = tokio::task::spawn_blocking(move || registry.report());
            let report = report.await.expect("invariant: a report does not panic");
            Ok(figures::statistics(&views, &report))
        }
        .boxed()
    }

    fn upstreams(&self) -> Vec<regent_admin::Upstream> {
        let upstreams = self.server.current().proxies.upstreams();
        upstreams.into_iter().map(upstreams::listed).collect()
    }

    fn cache(&self) -> regent_admin::CacheFigures {
        cache::figures(&self.server.lasting.caches)
    }

    fn purge(&self, purge: regent_admin::CachePurge) -> BoxFuture<'_, Result<regent_admin::Purged, Refusal>> {
        async {
            let lasting = Arc::clone(&self.server.lasting);
            let purging = tokio::task::spawn_blocking(move || crate::purging::purge(&lasting.caches, purge));
            let purged = purging.await.expect("invariant: a purge does not panic");
            Ok(regent_admin::Purged { purged })
        }
        .boxed()
    }

    fn certificates(&self) -> BoxFuture<'_, Vec<regent_admin::Certificate>> {
        async {
            let tls = self.server.current().tls.clone();
            // Its lock is held while files are read and certificates are made.
            let listed = tokio::task::spawn_blocking(move || certificates::list(tls.as_ref()));
            listed.await.expect("invariant: listing does not panic")
        }
        .boxed()
    }

    fn configuration(&self) -> Arc<serde_json::Value> {
        Arc::clone(&self.server.current().configuration)
    }

    fn reload(&self, reload: Reload) -> BoxFuture<'_, Result<regent_admin::Reloaded, Refusal>> {
        async move {
            let Reload { source, force, replaces } = reload;
            let place = match source {
                regent_admin::Source::Own => Place::Own,
                regent_admin::Source::File(path) => Place::File(path),
                regent_admin::Source::Text(text) => Place::Text(text),
            };
            let force = match force {
                regent_admin::Force::No => Force::No,
                regent_admin::Force::Yes => Force::Yes,
            };
            let reloaded = self.server.reload_from(place, force, replaces);
            let Reloaded { is_changed, warnings } = reloaded.await.map_err(not_reloaded)?;
            Ok(regent_admin::Reloaded { changed: is_changed, warnings })
        }
        .boxed()
    }

    fn adapt(&self, text: String) -> BoxFuture<'_, Result<Adapted, Refusal>> {
        let source = Arc::clone(&self.server.options.source);
        let adapting = tokio::task::spawn_blocking(move || source.adapt(&text));
        async {
            let adapted = adapting.await.expect("invariant: adapting does not panic");
            let (result, warnings) = adapted.map_err(Refusal::Configuration)?;
            Ok(Adapted { result, warnings })
        }
        .boxed()
    }

    fn upgrade(&self, patience: Option<Duration>) -> BoxFuture<'_, Result<Upgraded, Refusal>> {
        async move {
            let upgraded = self.server.upgrade(patience).await;
            let process = upgraded.map_err(|error| Refusal::Unavailable(error.to_string()))?;
            Ok(Upgraded { process })
        }
        .boxed()
    }

    fn stop(&self) {
        self.stop.notify_one();
    }
}

fn not_reloaded(error: ReloadError) -> Refusal {
    match error {
        ReloadError::Stopping | ReloadError::IoThread(_) | ReloadError::Watch(_) => {
            Refusal::Unavailable(error.to_string())
        }
        ReloadError::Replaced => Refusal::Replaced,
        ReloadError::Configuration(_) | ReloadError::Start(_) => Refusal::Configuration(error.to_string()),
    }
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

/// As the admin API names it.
fn engine(kind: EngineKind) -> regent_admin::Engine {
    match kind {
        EngineKind::Php => regent_admin::Engine::Php,
        EngineKind::Native => regent_admin::Engine::Native,
    }
}
