//! The server: everything put together.
//!
//! [`start`] turns a [`Config`] into a [`Running`] server: listening sockets and I/O threads ([`acceptor`]), an [`Engine`] of
//! each kind, and the way of a request between them ([`service`], [`gateway`]).
#![forbid(unsafe_code)]

mod acceptor;
mod admin;
mod control;
mod front;
mod head_check;
mod hooks;
mod https;
mod inline_reload;
mod listener;
mod plan;
mod service;
mod vigil;

use acceptor::{Dealer, IoStart, NativeAccess, Stage};
use admin::{AdminListener, AdminTask};
use control::ServerControl;
use futures_util::future::{join_all, try_join_all};
use https::Https;
use inline_reload::InlineReload;
use listener::{Listener, Listening};
use plan::Plan;
use regent_config::{Config, Listen};
use regent_engines::{Engine, Supervisor};
use regent_gateway::Spools;
use regent_handlers::{BuildError, Sites};
use regent_metrics::Registry;
use regent_net::SocketFile;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use vigil::Vigil;

pub use admin::AdminError;
pub use https::HttpsErrors;
pub use regent_engines::{EngineError, EngineKind};
pub use regent_gateway::SpoolError;
pub use regent_handlers::visible;

/// What does not come from the configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program of the engine for PHP.
    pub php: PathBuf,
    /// The program of the engine for native modules.
    pub native: PathBuf,
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("listening on {address}: {cause}{hint}", hint = hint(.cause))]
    Listen { address: String, cause: io::Error },
    #[error("listening on the Unix socket {path}: {cause}{hint}", path = .path.display(), hint = unix_hint(.cause))]
    ListenUnix { path: PathBuf, cause: io::Error },
    #[error("TLS: {0}")]
    Tls(#[from] regent_tls::Error),
    #[error(transparent)]
    TlsSites(#[from] HttpsErrors),
    #[error(transparent)]
    Routes(#[from] BuildError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("native modules could not be loaded into the server (`inline`): {0}")]
    Inline(#[from] regent_module_loader::LoadError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("starting an I/O thread: {0}")]
    Thread(io::Error),
}

/// A server that runs. Stop it with [`Running::stop`]; dropped, its engines are killed.
pub struct Running {
    addresses: Vec<Listen>,
    access_logs: AccessLogs,
    socket_files: Vec<SocketFile>,
    stage: watch::Sender<Stage>,
    threads: Vec<oneshot::Receiver<()>>,
    supervisors: Vec<Supervisor>,
    admin: Option<AdminTask>,
    admin_addresses: Vec<SocketAddr>,
    stop_wanted: Arc<Notify>,
    /// Renews certificates.
    upkeep: Option<JoinHandle<()>>,
    grace_period: Duration,
}

/// Starts a server; it serves when this returns. Must be called within a tokio runtime.
pub async fn start(config: Config, options: Options) -> Result<Running, StartError> {
    let plan = Plan::new(&config)?;
    let spools = Spools::open(&config.global.php.spool)?;
    let Listening { addresses, sockets, files: socket_files } = Listening::open(&config.servers)?;
    let admin = config.global.admin.as_ref().map(AdminListener::bind).transpose()?;
    let Https { tls, tables } = Https::open(&config)?;
    let listeners = Listener::all(&config, tables)?;

    let registry = Arc::new(Registry::new(Instant::now()));
    let engine = |plan, program| Engine::new(plan, program, &registry, &config.global.php);
    let (php, php_clients) = engine(plan.php, options.php)?;
    let native = plan.native.map(|plan| engine(plan, options.native)).transpose()?;
    let (native, native_clients) = native.unzip();
    let inlined = inline_reload::load(config.global.native.clone()).await?;

    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..plan.io_threads).map(|_| mpsc::unbounded_channel()).unzip();
    let (stage, stages) = watch::channel(Stage::Running);
    let mut accept = Some(Dealer { listeners: sockets, threads: senders.clone() });
    let (mut threads, cpus) = (Vec::new(), regent_engines::cpus());
    let mut native_clients = native_clients.into_iter().flatten();
    for ((index, commands), php) in receivers.into_iter().enumerate().zip(php_clients) {
        threads.push(spawn_io_thread(IoStart {
            index,
            php,
            native: native_clients.next().map(|engine| NativeAccess {
                engine,
                services: config.global.native.services.iter().map(|service| service.name.clone()).collect(),
                inlined: Arc::clone(&inlined),
            }),
            listeners: listeners.clone(),
            settings: plan.settings,
            limits: plan.bodies,
            bounds: plan.bounds,
            spools: Arc::clone(&spools),
            vigil: Vigil::new(cpus, plan.io_threads),
            commands,
            stage: stages.clone(),
            accept: accept.take(),
        })?);
    }
    let starts = std::iter::once(php).chain(native).map(Engine::start);
    let (supervisors, engines) = try_join_all(starts).await?.into_iter().unzip();
    tokio::spawn(tick(Arc::downgrade(&registry)));
    let upkeep = tls.map(|tls| tokio::spawn(async move { tls.maintain().await }));
    let stop_wanted = Arc::new(Notify::new());
    let admin_addresses = admin.as_ref().map_or_else(Vec::new, AdminListener::addresses);
    let control = Arc::new(ServerControl {
        engines,
        inline: InlineReload::new(config.global.native.clone(), senders),
        registry,
        configuration: Arc::new(serde_json::to_value(&config).unwrap_or_default()),
        stop: Arc::clone(&stop_wanted),
    });
    Ok(Running {
        addresses,
        socket_files,
        access_logs: AccessLogs(listeners.iter().map(|listener| Arc::downgrade(&listener.sites)).collect()),
        stage,
        threads,
        supervisors,
        admin: admin.map(|admin| admin.serve(control)),
        admin_addresses,
        stop_wanted,
        upkeep,
        grace_period: plan::timeout(config.global.grace_period),
    })
}

impl Running {
    /// The addresses that it listens on, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The access logs of all sites.
    pub fn access_logs(&self) -> AccessLogs {
        self.access_logs.clone()
    }

    /// The addresses of the admin API; none if it is off or a Unix socket.
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        &self.admin_addresses
    }

    /// Ends when the admin API was asked to stop the server.
    pub async fn stop_wanted(&self) {
        self.stop_wanted.notified().await;
    }

    /// Stops in good order: no new connections, running requests are answered, within the grace period; then
    /// everything ends.
    pub async fn stop(self) {
        let deadline = Instant::now() + self.grace_period;
        // Without I/O threads there is nothing to drain.
        let _ = self.stage.send(Stage::Draining);
        drop(self.socket_files);
        self.upkeep.iter().for_each(JoinHandle::abort);
        for thread in self.threads {
            if tokio::time::timeout_at(deadline.into(), thread).await.is_err() {
                tracing::warn!("requests were cut off: they had not ended within the grace period");
                break;
            }
        }
        join_all(self.supervisors.into_iter().map(|supervisor| supervisor.stop(deadline))).await;
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
    }
}

/// The access logs of a server, as long as it runs.
#[derive(Clone)]
pub struct AccessLogs(Vec<Weak<Sites>>);

impl AccessLogs {
    /// Opens their files again, after a rotation has renamed them. Returns before that is done; no line is lost.
    pub fn reopen(&self) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|sites| sites.reopen_logs());
    }
}

/// Moves what the metrics call recent along with time, until the server is gone.
async fn tick(registry: Weak<Registry>) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let Some(registry) = registry.upgrade() else { return };
        registry.tick(Instant::now());
    }
}

/// The receiver is told when the thread has ended.
fn spawn_io_thread(start: IoStart) -> Result<oneshot::Receiver<()>, StartError> {
    let (ended, receiver) = oneshot::channel();
    let name = format!("io-{}", start.index);
    let body = move || {
        if let Err(error) = acceptor::run(start) {
            tracing::error!(%error, "an I/O thread could not run");
        }
        // Nobody waits for it otherwise.
        let _ = ended.send(());
    };
    std::thread::Builder::new().name(name).spawn(body).map_err(StartError::Thread)?;
    Ok(receiver)
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it, or choose another port",
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 are for root: choose a higher one (`--listen :8443`; in a Caddyfile the address of the site, \
             or `http_port` and `https_port`), or allow it with `setcap cap_net_bind_service=+ep` on the program, in systemd \
             with `AmbientCapabilities=CAP_NET_BIND_SERVICE`"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}

fn unix_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it, or choose another path",
        io::ErrorKind::AlreadyExists => "; remove it, or choose another path",
        io::ErrorKind::NotFound => "; make its directory first",
        io::ErrorKind::PermissionDenied => "; the server's user must be able to write to its directory",
        _ => "",
    }
}
