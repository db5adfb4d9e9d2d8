//! From one configuration to the next, while requests go on.
//!
//! Everything of the next configuration is made beside what runs: sockets are opened, certificates loaded, routes compiled,
//! engines started until their workers have booted. What goes wrong until then changes nothing. Then the I/O threads change to
//! the new App, each in one step, and what is old ends with its last request.

use crate::parts::{Clients, NextEngine, Parts, RunningEngine};
use crate::plan::Plan;
use crate::state::{Current, Server, State};
use crate::{Configuration, Place, StartError};
use regent_config::{Config, HotReload};
use regent_connections::{AddressChange, trust_at_start};
use regent_control::export::NextMetrics;
use regent_engines::{CommandRefused, EngineKind, EnginePlan, Program, Sinks, StartUntil};
use regent_gateway::Inlined;
use regent_hot_reload::{Begun, React, Wanted};
use regent_mercure::Publication;
use regent_metrics::ReloadOutcome;
use regent_service::Unused;
use regent_tls::Upkeep;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{MappedMutexGuard, MutexGuard};

/// How long modules that ran in the server stay loaded for requests of the App before, if their engine goes on.
const INLINED_LINGER: Duration = Duration::from_secs(60);

/// Whether a configuration that is the current one is loaded all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// It changes nothing, but for certificates, whose files are read again.
    No,
    /// Everything is made anew: engines, links to directories, certificates.
    Yes,
}

/// What a new configuration has brought.
#[derive(Debug, Clone, Default)]
pub struct Reloaded {
    /// Whether it was another one than the current one.
    pub is_changed: bool,
    /// Options that have changed and stay as they were until the process is started anew.
    pub warnings: Vec<String>,
    /// Ends with the last request that began before.
    pub before: Unused,
}

/// Why a configuration was not taken. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Its text is wrong; with file, line and column.
    #[error("{0}")]
    Configuration(String),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("an I/O thread could not take the configuration: {0}")]
    IoThread(std::io::Error),
    #[error("a listening socket cannot be watched: {0}; raise fs.epoll.max_user_watches")]
    Watch(std::io::Error),
    #[error("the server is stopping")]
    Stopping,
    #[error("the configuration is another one by now")]
    Replaced,
}

/// A configuration that waits only to be changed to.
struct Next {
    config: Config,
    change: AddressChange,
    parts: Parts,
    php: NextEngine,
    /// `None`: there are no native services.
    native: Option<NextEngine>,
    /// `None`: they stay.
    inlined: Option<Arc<Inlined>>,
    metrics: NextMetrics,
}

impl Server {
    /// Changes to the configuration that is there, or to none: an error changes nothing. One reload waits for another.
    ///
    /// `replaces`: the current configuration has to be this one.
    pub async fn reload_from(
        self: &Arc<Self>,
        place: Place,
        force: Force,
        replaces: Option<Arc<serde_json::Value>>,
    ) -> Result<Reloaded, ReloadError> {
        let configuration = self.read(place.clone()).await?;
        let reloaded = self.load(place, configuration, force, replaces).await;
        self.note(&reloaded);
        reloaded
    }

    /// For the metrics.
    fn note<T>(&self, reloaded: &Result<T, ReloadError>) {
        match reloaded {
            Ok(_) => self.registry.reloaded(ReloadOutcome::Loaded),
            // Nothing is wrong with what was to be loaded.
            Err(ReloadError::Stopping | ReloadError::Replaced) => {}
            Err(_) => self.registry.reloaded(ReloadOutcome::Refused),
        }
    }

    async fn load(
        self: &Arc<Self>,
        place: Place,
        configuration: Configuration,
        force: Force,
        replaces: Option<Arc<serde_json::Value>>,
    ) -> Result<Reloaded, ReloadError> {
        let Configuration { config, document } = configuration;
        let mut state = self.lock().await?;
        if replaces.is_some_and(|expected| expected != self.current().configuration) {
            return Err(ReloadError::Replaced);
        }
        if force == Force::No && config == state.config && !has_certificate_files(&config) {
            tracing::info!("the configuration is the current one: nothing has changed");
            state.document = document;
            self.show(&state);
            self.keep(place, config).await;
            return Ok(Reloaded::default());
        }
        let reloaded = Reloaded {
            is_changed: force == Force::Yes || config != state.config,
            warnings: self.fixed.warnings(&config),
            before: state.unused.clone(),
        };
        let mut stopping = self.stopping.subscribe();
        let next = tokio::select! {
            next = self.prepare(&state, config, force) => next,
            // The sender is this one's own.
            _ = stopping.wait_for(|stopping| *stopping) => Err(ReloadError::Stopping),
        };
        let next = next.inspect_err(|_| {
            self.io.discard();
            self.hubs.keep_only(&state.config.global.hubs);
        })?;
        state.document = document;
        self.change_to(&mut state, next).await;
        self.change_tasks(&mut state, force);
        if Wanted::of(&state.config) != Wanted::by(state.watching.as_ref()) {
            // The one before ends first: no change is told of twice.
            state.watching = None;
            let begun = Begun::new(&state.config).await;
            state.watching = begun.map(|begun| begun.follow(ToServer(Arc::downgrade(self))));
        }
        self.hubs.keep_only(&state.config.global.hubs);
        self.keep(place, state.config.clone()).await;
        drop(state);
        self.close_unused_logs();
        reloaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        tracing::info!("the new configuration is in use");
        Ok(reloaded)
    }

    /// To be called as long as nobody else can change anything.
    async fn keep(&self, place: Place, config: Config) {
        let source = Arc::clone(&self.options.source);
        let kept = tokio::task::spawn_blocking(move || source.loaded(place, &config)).await;
        kept.expect("invariant: keeping a configuration does not panic");
    }

    /// What the configuration of the start wants to be watched.
    pub async fn follow_files(self: &Arc<Self>, begun: Option<Begun>) {
        if let Ok(mut state) = self.lock().await {
            state.watching = begun.map(|begun| begun.follow(ToServer(Arc::downgrade(self))));
        }
    }

    async fn restart_workers(&self) {
        let current = self.current();
        let engines = &current.subject.engines;
        let Some(php) = engines.iter().find(|engine| engine.clients.kind == EngineKind::Php) else {
            return;
        };
        if let Err(CommandRefused::Unavailable(reason)) = php.supervisor.restart().await {
            tracing::error!("the workers were not started anew, and those before go on: {reason}");
        }
    }

    /// Nobody else changes anything while what is returned is held.
    pub async fn lock(&self) -> Result<MappedMutexGuard<'_, State>, ReloadError> {
        let state = self.state.lock().await;
        if *self.stopping.borrow() {
            return Err(ReloadError::Stopping);
        }
        MutexGuard::try_map(state, Option::as_mut).map_err(|_| ReloadError::Stopping)
    }

    /// Reads a configuration, on a thread that may wait for a disk.
    async fn read(&self, place: Place) -> Result<Configuration, ReloadError> {
        let source = Arc::clone(&self.options.source);
        let reading = tokio::task::spawn_blocking(move || source.read(&place));
        let read = reading.await.expect("invariant: reading a configuration does not panic");
        let read = read.map_err(ReloadError::Configuration);
        if read.is_err() {
            self.note(&read);
        }
        read
    }

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn prepare(
        self: &Arc<Self>,
        state: &State,
        config: Config,
        force: Force,
    ) -> Result<Next, ReloadError> {
        let plan = Plan::new(&config, self.facts).map_err(StartError::from)?;
        let mut change = state.addresses.change_to(&config.servers).map_err(StartError::from)?;
        let sockets = std::mem::take(&mut change.sockets);
        self.io.prepare_to_open(sockets).await.map_err(ReloadError::Watch)?;
        let spools =
            (config.global.php.spool == state.config.global.php.spool).then(|| Arc::clone(&state.spools));
        let (addresses, lasting, hubs) =
            (change.addresses.clone(), Arc::clone(&self.lasting), Arc::clone(&self.hubs));
        let parts = Parts::make(
            config.clone(),
            addresses,
            lasting,
            hubs,
            Some(Arc::clone(&state.proxies)),
            spools,
            Arc::clone(&self.registry),
        )
        .await?;
        let keeps_modules = force == Force::No && config.global.native == state.config.global.native;
        let inlined = match keeps_modules {
            true => None,
            false => {
                let loading = Inlined::load_apart(config.global.native.clone());
                Some(loading.await.map_err(StartError::from)?)
            }
        };
        let php = self.engine(Some(&state.php), plan.php.clone(), &self.options.php, force);
        let native = async {
            match plan.native.clone() {
                Some(plan) => {
                    let engine = self.engine(state.native.as_ref(), plan, &self.options.native, force);
                    engine.await.map(Some)
                }
                None => Ok(None),
            }
        };
        let ((php, to_php), native) = tokio::try_join!(php, native)?;
        let (native, to_native) = native.unzip();
        let clients = (to_php, to_native);
        let starts = parts.app_starts(&config, self.facts.io_threads, clients, inlined.as_ref());
        self.io.prepare(starts).await.map_err(ReloadError::IoThread)?;
        let metrics = self.send_metrics(state, &config).await?;
        Ok(Next { config, change, parts, php, native, inlined, metrics })
    }

    /// The engine for this plan: the one before if it does, or a new one whose workers have booted.
    async fn engine(
        &self,
        before: Option<&RunningEngine>,
        plan: EnginePlan,
        program: &Program,
        force: Force,
    ) -> Result<(NextEngine, Clients), StartError> {
        if force == Force::No && before.is_some_and(|before| before.plan == plan) {
            return Ok((NextEngine::Kept, Clients::Kept));
        }
        let (starting, clients) = RunningEngine::plan(
            plan,
            program.clone(),
            &self.registry,
            StartUntil::Ready,
            Sinks { updates: self.hubs.sink(), purges: self.lasting.purges() },
        )?;
        Ok((NextEngine::New(Box::new(starting.await?)), clients))
    }

    /// Goes on to the end once it has begun.
    async fn change_to(&self, state: &mut State, next: Next) {
        let Next { config, change, parts, php, native, inlined, metrics } = next;
        self.io.close(&change.closed).await;
        self.io.change().await;
        self.io.open();
        state.addresses.apply(change, &config.servers);
        let deadline = Instant::now() + regent_config::timeout(config.global.grace_period);
        let old_inlined = inlined.map(|inlined| std::mem::replace(&mut state.inlined, inlined));
        if let NextEngine::New(engine) = php {
            let old = std::mem::replace(&mut state.php, *engine);
            state.retire(Some(old), None, deadline);
        }
        match native {
            Some(NextEngine::Kept) => let_go(old_inlined),
            Some(NextEngine::New(engine)) => {
                let old = state.native.replace(*engine);
                state.retire(old, old_inlined, deadline);
            }
            None => {
                let old = state.native.take();
                state.retire(old, old_inlined, deadline);
            }
        }
        metrics.apply_to(&mut state.metrics);
        state.spools = parts.spools;
        state.proxies = parts.proxies;
        state.hubs = parts.hubs;
        state.unused = parts.unused.after(&state.unused);
        if let (Some(next), Some(before)) = (&parts.tls, &state.tls) {
            // What a public CA has refused is not asked for again at once.
            next.continue_from(before);
        }
        state.upkeep = parts.tls.as_ref().map(Upkeep::of);
        trust_at_start(Some(&state.config), &config, parts.tls.as_ref());
        state.tls = parts.tls;
        state.config = config;
        self.show(state);
    }

    fn show(&self, state: &State) {
        let current = Arc::new(state.current());
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    /// Some are used by the last requests of the configuration before; those are closed the next time.
    fn close_unused_logs(&self) {
        let lasting = Arc::clone(&self.lasting);
        tokio::task::spawn_blocking(move || lasting.logs.close_unused());
    }
}

/// Changed files reach the server by this.
struct ToServer(Weak<Server>);

impl React for ToServer {
    async fn restart(&self) {
        if let Some(server) = self.0.upgrade() {
            server.restart_workers().await;
        }
    }

    fn tell(&self, pages: &HotReload, changes: String) {
        let Some(server) = self.0.upgrade() else { return };
        let publication =
            Publication { topics: vec![pages.topic.clone()], data: changes, ..Publication::default() };
        let current = server.current();
        // It has gone if the configuration changes at this moment, and what is watched will too.
        let Some(hub) = current.hubs.hubs.get(usize::from(pages.hub.0)) else { return };
        if let Err(error) = hub.publish(publication) {
            tracing::warn!(%error, "pages could not be told of changed files");
        }
    }
}

/// A stop does not wait for that.
fn let_go(inlined: Option<Arc<Inlined>>) {
    let Some(inlined) = inlined else { return };
    tokio::spawn(async move {
        tokio::time::sleep(INLINED_LINGER).await;
        drop(inlined);
    });
}

/// Whether there is something to read again though the configuration is the same.
fn has_certificate_files(config: &Config) -> bool {
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    let mut sources = sites.filter_map(|site| site.tls.as_ref().map(|tls| &tls.source));
    sources.any(|source| matches!(source, regent_config::CertificateSource::Files { .. }))
}
