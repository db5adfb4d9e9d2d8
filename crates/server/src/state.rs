//! A running server, and what its current configuration has made.

use crate::Options;
use crate::admin::AdminHandle;
use crate::io_threads::IoThreads;
use crate::lasting::Lasting;
use crate::parts::RunningEngine;
use regent_config::{Admin, Config, HealthCheck, ServerLog};
use regent_connections::Addresses;
use regent_control::Subject;
use regent_control::export::SentMetrics;
use regent_engines::{ServerFacts, TaskBoard, Tasks};
use regent_gateway::Inlined;
use regent_hot_reload::Watching;
use regent_metrics::Registry;
use regent_net::Handover;
use regent_proxy::Transports;
use regent_service::{Hubs, OpenHubs, Unused, counted};
use regent_spool::Spools;
use regent_tls::{Tls, Upkeep};
use std::sync::{Arc, RwLock};
use std::time::Instant;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

/// What a running server keeps whatever its configuration, and what the current one has made.
pub(crate) struct Server {
    pub options: Options,
    pub facts: ServerFacts,
    pub registry: Arc<Registry>,
    pub io: IoThreads,
    pub lasting: Arc<Lasting>,
    pub hubs: Arc<Hubs>,
    pub fixed: Fixed,
    pub current: RwLock<Arc<Current>>,
    /// Locked by whoever changes something. `None`: it has stopped.
    pub state: Mutex<Option<State>>,
    pub tasks: TaskBoard,
    /// Becomes true once.
    pub stopping: watch::Sender<bool>,
    pub admin: AdminHandle,
    /// Becomes the way to the process that has taken this one's place, once.
    pub succeeded: watch::Sender<Option<Arc<Handover>>>,
}

/// Options that cannot change while the process runs, as it was started with them.
pub(crate) struct Fixed {
    pub admin: Option<Admin>,
    pub logs: Vec<ServerLog>,
}

/// What can be looked at while something is being changed.
pub(crate) struct Current {
    pub subject: Subject,
    pub configuration: Arc<serde_json::Value>,
    pub hubs: Arc<OpenHubs>,
    /// What PHP has to answer when it is ready; `None`: nothing.
    pub health: Option<HealthCheck>,
}

pub(crate) struct State {
    pub config: Config,
    /// What the admin API shows of it.
    pub document: Arc<serde_json::Value>,
    pub addresses: Addresses,
    pub php: RunningEngine,
    pub native: Option<RunningEngine>,
    pub inlined: Arc<Inlined>,
    pub spools: Arc<Spools>,
    pub proxies: Arc<Transports>,
    pub hubs: Arc<OpenHubs>,
    /// Of this configuration, and of those before while requests that began under them run.
    pub unused: Unused,
    /// `None`: no address has TLS.
    pub tls: Option<Tls>,
    /// Renews certificates.
    pub upkeep: Option<Upkeep>,
    /// `None`: no worker watches files.
    pub watching: Option<Watching>,
    /// `None`: metrics are sent nowhere.
    pub metrics: Option<Box<SentMetrics>>,
    /// Scripts that run beside the pools.
    pub tasks: Tasks,
    /// Engines that finish what they have begun.
    pub retiring: JoinSet<()>,
    /// Whether the server before still has HTTP/3.
    pub awaits_datagrams: bool,
}

impl State {
    pub fn current(&self) -> Current {
        let engines = std::iter::once(&self.php).chain(&self.native);
        Current {
            subject: Subject {
                engines: engines.map(|engine| Arc::clone(&engine.control)).collect(),
                proxies: Arc::clone(&self.proxies),
                tls: self.tls.clone(),
                http: counted::shown(self.config.global.metrics),
            },
            configuration: Arc::clone(&self.document),
            hubs: Arc::clone(&self.hubs),
            health: self.config.global.health.clone(),
        }
    }

    /// Has an engine finish what it has begun. `inlined`: modules that may be in use as long.
    pub fn retire(
        &mut self,
        engine: Option<RunningEngine>,
        inlined: Option<Arc<Inlined>>,
        deadline: Instant,
    ) {
        while self.retiring.try_join_next().is_some() {}
        self.retiring.spawn(async move {
            if let Some(RunningEngine { supervisor, control, .. }) = engine {
                let kind = control.clients.kind;
                drop(control);
                supervisor.retire(deadline).await;
                tracing::info!(engine = %kind, "the engine of the configuration before has ended");
            }
            drop(inlined);
        });
    }
}

impl Fixed {
    pub fn warnings(&self, config: &Config) -> Vec<String> {
        let warning = |option: &str, stays: &str| {
            format!("the global option `{option}` has changed: {stays} until the process is started anew")
        };
        let admin = (self.admin != config.global.admin)
            .then(|| warning("admin", "the admin API listens, and checks origins, as before"));
        let log = (self.logs != config.global.server_logs())
            .then(|| warning("log", "the server's own log goes on as before"));
        admin.into_iter().chain(log).collect()
    }
}
