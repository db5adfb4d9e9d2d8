//! The server as the admin listener sees it.

use crate::Place;
use crate::reload::{Force, ReloadError, Reloaded};
use crate::state::{Server, State};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use regent_admin::{
    Adapted, Change, Control, ProfileWish, Readiness, Refusal, Reload, Restarted, Statistics, ThreadStack,
    Threads, Upgraded,
};
use regent_control::{cache, purging, reloads, tasks};
use regent_engines::EngineKind;
use regent_gateway::Inlined;
use regent_metrics::{AdminRequest, MetricFamily};
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

impl Server {
    /// All of them, in the text format of Prometheus.
    pub async fn metrics(&self) -> String {
        self.current().subject.metrics(&self.registry, self.lasting.kept()).await
    }

    /// The same, to be sent to a collector.
    pub async fn metric_families(&self) -> Vec<MetricFamily> {
        self.current().subject.families(&self.registry, self.lasting.kept()).await
    }
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
        let inlined = Inlined::load_apart(state.config.global.native.clone()).await;
        let inlined = inlined.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        match self.server.current().subject.restart(EngineKind::Native).await {
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
}

impl Control for ServerControl {
    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        async { self.server.current().subject.threads().await }.boxed()
    }

    fn stack(&self, index: u16) -> BoxFuture<'_, Result<ThreadStack, Refusal>> {
        async move { self.server.current().subject.stack(index).await }.boxed()
    }

    fn profile(&self, wish: ProfileWish) -> BoxFuture<'_, Result<Profile, Refusal>> {
        async { self.server.current().subject.profile(wish).await }.boxed()
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<regent_admin::Pool>, Refusal>> {
        async { self.server.current().subject.pools().await }.boxed()
    }

    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move { self.server.current().subject.add(pool, count).await }.boxed()
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        async move { self.server.current().subject.remove(pool, count).await }.boxed()
    }

    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        async { self.server.current().subject.restart(EngineKind::Php).await }.boxed()
    }

    fn restart_native(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        self.restart_all_native().boxed()
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        async {
            if self.server.lasting.shutdown.stops_at().is_some() {
                return Readiness::NotReady("the server is about to stop".to_owned());
            }
            let current = self.server.current();
            let ready = current.subject.readiness().await;
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
        async { self.server.current().subject.statistics(&self.server.registry).await }.boxed()
    }

    fn upstreams(&self) -> Vec<regent_admin::Upstream> {
        self.server.current().subject.upstreams()
    }

    fn authority(&self) -> BoxFuture<'_, Option<regent_admin::CertificateAuthority>> {
        async { self.server.current().subject.authority().await }.boxed()
    }

    fn tasks(&self) -> Vec<regent_admin::Task> {
        self.server.tasks.tasks().into_iter().map(tasks::listed).collect()
    }

    fn order(&self, task: &str, order: regent_admin::TaskOrder) -> Result<u16, Refusal> {
        self.server.tasks.order(task, tasks::order(order)).map_err(tasks::refusal)
    }

    fn cache(&self) -> regent_admin::CacheFigures {
        cache::figures(&self.server.lasting.caches.all())
    }

    fn purge(&self, purge: regent_admin::CachePurge) -> BoxFuture<'_, Result<regent_admin::Purged, Refusal>> {
        async {
            let lasting = Arc::clone(&self.server.lasting);
            let purging = tokio::task::spawn_blocking(move || purging::purge(&lasting.caches.all(), purge));
            let purged = purging.await.expect("invariant: a purge does not panic");
            Ok(regent_admin::Purged { purged })
        }
        .boxed()
    }

    fn certificates(&self) -> BoxFuture<'_, Vec<regent_admin::Certificate>> {
        async { self.server.current().subject.certificates().await }.boxed()
    }

    fn configuration(&self) -> Arc<serde_json::Value> {
        Arc::clone(&self.server.current().configuration)
    }

    fn reload(&self, reload: Reload) -> BoxFuture<'_, Result<regent_admin::Reloaded, Refusal>> {
        async move {
            let Reload { source, force, replaces, wait } = reload;
            let place = match source {
                regent_admin::Source::Own => Place::Own,
                regent_admin::Source::File(path, language) => Place::File(path, language),
                regent_admin::Source::Text(language, text) => Place::Text(language, text),
            };
            let force = match force {
                regent_admin::Force::No => Force::No,
                regent_admin::Force::Yes => Force::Yes,
            };
            let reloaded = self.server.reload_from(place, force, replaces);
            let Reloaded { is_changed, warnings, before } = reloaded.await.map_err(not_reloaded)?;
            let before = reloads::before(before.ended(), wait).await;
            Ok(regent_admin::Reloaded { changed: is_changed, warnings, before })
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
