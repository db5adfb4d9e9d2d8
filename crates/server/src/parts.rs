//! What is made of a configuration before anything is changed: on one side all that a thread's App takes, on the other
//! engines that have been started.

use crate::StartError;
use crate::app::{AppStart, EngineSource, NativeStart};
use crate::lasting::Lasting;
use crate::listener::Listener;
use regent_config::Config;
use regent_connections::{Https, ListenedOn};
use regent_engines::{
    ClientStart, Engine, EngineControl, EngineError, EnginePlan, Program, Sinks, StartUntil, Supervisor,
};
use regent_gateway::Inlined;
use regent_metrics::Registry;
use regent_proxy::{HealthChecks, Transports};
use regent_service::{Hubs, InUse, OpenHubs, Unused};
use regent_spool::Spools;
use regent_tls::Tls;
use std::sync::Arc;

/// All of a configuration that needs no engine.
pub(crate) struct Parts {
    pub listeners: Vec<Listener>,
    pub tls: Option<Tls>,
    pub spools: Arc<Spools>,
    /// By their ids.
    pub hubs: Arc<OpenHubs>,
    pub proxies: Arc<Transports>,
    in_use: InUse,
    pub unused: Unused,
}

/// An engine that runs, and what it was planned as.
pub(crate) struct RunningEngine {
    pub plan: EnginePlan,
    pub supervisor: Supervisor,
    pub control: Arc<EngineControl>,
}

/// The engine of one kind under the next configuration.
pub(crate) enum NextEngine {
    Kept,
    New(Box<RunningEngine>),
}

/// What each I/O thread is given for its way to an engine.
pub(crate) enum Clients {
    Kept,
    /// By I/O thread.
    New(std::vec::IntoIter<ClientStart>),
}

impl Parts {
    /// `addresses`: those that are listened on. `spools`: those before, if they are to stay.
    pub async fn make(
        config: Config,
        addresses: Vec<ListenedOn>,
        lasting: Arc<Lasting>,
        hubs: Arc<Hubs>,
        proxies: Option<Arc<Transports>>,
        spools: Option<Arc<Spools>>,
        registry: Arc<Registry>,
    ) -> Result<Self, StartError> {
        let making = tokio::task::spawn_blocking(move || {
            let spools = match spools {
                Some(kept) => kept,
                None => Spools::open(&config.global.php.spool)?,
            };
            let https = Https::open(&config)?;
            let tls = https.tls.clone();
            let listeners = Listener::all(&config, https, &addresses, &lasting, &registry)?;
            let hubs = Arc::new(hubs.open(&config.global.hubs)?);
            let proxies = Transports::open(&config, proxies.as_deref())?;
            let (in_use, unused) = Unused::new();
            Ok(Self { listeners, tls, spools, hubs, proxies, in_use, unused })
        });
        making.await.expect("invariant: making the parts of a configuration does not panic")
    }

    /// One for each I/O thread. `inlined`: the modules that run in the server; `None`: those before.
    pub fn app_starts(
        &self,
        config: &Config,
        io_threads: usize,
        (mut php, mut native): (Clients, Option<Clients>),
        inlined: Option<&Arc<Inlined>>,
    ) -> Vec<AppStart> {
        let start = |thread| AppStart {
            listeners: self.listeners.clone(),
            spools: Arc::clone(&self.spools),
            hubs: Arc::clone(&self.hubs),
            proxies: Arc::clone(&self.proxies),
            in_use: self.in_use.clone(),
            health_checks: if thread == 0 { HealthChecks::Here } else { HealthChecks::Elsewhere },
            php: php.next(),
            native: native.as_mut().map(|native| NativeStart {
                engine: native.next(),
                services: config.global.native.services.iter().map(|service| service.name.clone()).collect(),
                inlined: inlined.cloned(),
            }),
        };
        (0..io_threads).map(start).collect()
    }
}

impl Clients {
    fn next(&mut self) -> EngineSource {
        match self {
            Self::Kept => EngineSource::Kept,
            Self::New(starts) => {
                EngineSource::New(starts.next().expect("invariant: there is one for each I/O thread"))
            }
        }
    }
}

impl RunningEngine {
    /// Queues for its requests are there at once, for the I/O threads that have the clients; it runs when the future has
    /// ended.
    pub fn plan(
        plan: EnginePlan,
        program: Program,
        registry: &Arc<Registry>,
        until: StartUntil,
        sinks: Sinks,
    ) -> Result<(impl Future<Output = Result<Self, EngineError>> + use<>, Clients), EngineError> {
        let (engine, clients) = Engine::new(plan.clone(), program, registry, sinks)?;
        let starting = async move {
            let (supervisor, control) = engine.start(until).await?;
            Ok(Self { plan, supervisor, control: Arc::new(control) })
        };
        Ok((starting, Clients::New(clients.into_iter())))
    }
}
