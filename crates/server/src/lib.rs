//! The server: everything put together.
//!
//! [`start`] turns a [`Config`] into a [`Running`] server: listening addresses ([`regent_connections`]), I/O threads with all
//! that a configuration means ([`app`]), an engine of each kind ([`parts`]), and what changes them: [`reload`], [`upgrade`].
#![forbid(unsafe_code)]

mod admin;
mod answers;
mod app;
mod background;
mod blocking;
mod control;
mod engine_clients;
mod handles;
mod hooks;
mod io_thread;
mod io_threads;
mod lasting;
mod listener;
mod parts;
mod plan;
mod reload;
mod send_metrics;
mod source;
mod state;
mod succeed;
mod upgrade;

use admin::{AdminHandle, AdminListener, AdminTask};
use control::ServerControl;
use futures_util::future::join_all;
use io_thread::IoStart;
use io_threads::IoThreads;
use lasting::Lasting;
use parts::{Parts, RunningEngine};
use plan::Plan;
use regent_config::Listen;
use regent_connections::{Addresses, Dealer, Stage};
use regent_engines::{Sinks, StartUntil, Tasks};
use regent_gateway::Inlined;
use regent_handlers::{BuildError, Caches};
use regent_hot_reload::Begun;
use regent_metrics::{Registry, ReloadOutcome};
use regent_net::BusyPoll;
use regent_service::{Hubs, scrapes};
use regent_spool::Spools;
use state::{Fixed, Server, State};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

pub use admin::AdminError;
pub use blocking::{keep_one_thread, runtime};
pub use handles::{AccessLogs, Pulse, Reloader};
pub use regent_admin::Language;
pub use regent_connections::{HttpsError, ListenError, tls_options};
pub use regent_engines::{Descriptors, EngineChild, EngineError, EngineKind, Launch, Launcher, Program};
pub use regent_handlers::{LogKind, LogWriter, RollingFile, Sampler, log_template, log_time, visible};
pub use regent_net::{Inherited, InheritedSocket, Keeper};
pub use regent_spool::SpoolError;
pub use regent_succession::{Legacy, Predecessor, Successor, UpgradeError};
pub use reload::{Force, ReloadError, Reloaded};
pub use source::{ConfigSource, Configuration, Place};

/// How long a stop waits for the disk at most.
const HISTORY_WAIT: Duration = Duration::from_secs(5);

/// What does not come from the configuration.
#[derive(Clone)]
pub struct Options {
    /// The program of the engine for PHP.
    pub php: Program,
    /// The program of the engine for native modules.
    pub native: Program,
    /// Where further configurations come from.
    pub source: Arc<dyn ConfigSource>,
    /// Starts the program that takes the server's place.
    pub successor: Arc<dyn Successor>,
}

/// Where sockets come from that the server does not bind itself.
#[derive(Default)]
pub struct Sockets {
    /// Used where the configuration has their addresses.
    pub inherited: Inherited,
    /// The server whose place this one takes; it has handed sockets over.
    pub predecessor: Option<Predecessor>,
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Tls(#[from] HttpsError),
    #[error(transparent)]
    Routes(#[from] BuildError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("native modules could not be loaded into the server (`inline`): {0}")]
    Inline(#[from] regent_module_loader::LoadError),
    #[error("mercure: {0}")]
    Hub(#[from] regent_mercure::HubError),
    #[error(transparent)]
    Proxy(#[from] regent_proxy::OpenError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Traces(#[from] regent_otlp::Error),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("starting an I/O thread: {0}")]
    Thread(io::Error),
    #[error("{0}")]
    NotReady(String),
    #[error("the server whose place this one was to take has given it up: {0}")]
    Predecessor(io::Error),
}

/// A server that runs. Stop it with [`Running::stop`]; dropped, its engines are killed.
pub struct Running {
    server: Arc<Server>,
    addresses: Vec<Listen>,
    stage: watch::Sender<Stage>,
    threads: Vec<oneshot::Receiver<()>>,
    admin: Option<AdminTask>,
    admin_addresses: Vec<SocketAddr>,
    stop_wanted: Arc<Notify>,
    /// Ends when nothing is received by UDP any more.
    receiving: oneshot::Receiver<Infallible>,
}

/// Starts a server; it serves when this returns. Must be called within a [`runtime`].
///
/// One that takes another's place begins to accept when all is there, engines too; whoever calls this then tells the other by
/// [`Predecessor::serving`].
pub async fn start(
    configuration: Configuration,
    options: Options,
    sockets: Sockets,
) -> Result<Running, StartError> {
    let Configuration { config, document } = configuration;
    let Sockets { inherited, predecessor } = sockets;
    let facts = plan::facts(&config);
    let plan = Plan::new(&config, facts)?;
    let spools = Spools::open(&config.global.php.spool)?;
    let bind_admin = |admin| AdminListener::bind(admin, &inherited);
    let admin = config.global.admin.as_ref().map(bind_admin).transpose()?;
    let admin_handle = AdminHandle::new(admin.as_ref()).map_err(AdminError::Sockets)?;
    let mut addresses = Addresses::inheriting(inherited);
    let mut change = addresses.change_to(&config.servers)?;
    let (lasting, hubs) = (Arc::<Lasting>::default(), Arc::<Hubs>::default());
    let registry = Arc::new(Registry::new(Instant::now()));
    let making = Parts::make(
        config.clone(),
        change.addresses.clone(),
        Arc::clone(&lasting),
        Arc::clone(&hubs),
        None,
        Some(spools),
        Arc::clone(&registry),
    );
    let parts = making.await?;

    // The server before serves as long as workers boot.
    let until = if predecessor.is_some() { StartUntil::Ready } else { StartUntil::Running };
    let engine = |plan, program: &Program| {
        let sinks = Sinks { updates: hubs.sink(), purges: lasting.purges() };
        RunningEngine::plan(plan, program.clone(), &registry, until, sinks)
    };
    let (php, to_php) = engine(plan.php.clone(), &options.php)?;
    let native = plan.native.clone().map(|plan| engine(plan, &options.native)).transpose()?;
    let (native, to_native) = native.unzip();
    let inlined = Inlined::load_apart(config.global.native.clone()).await?;
    let apps = parts.app_starts(&config, facts.io_threads, (to_php, to_native), Some(&inlined));

    // Before the first request, whose client may go on to change a file.
    let watched = Begun::new(&config).await;
    let (scrapes, askers) = scrapes::channel();
    let (commands, receivers): (Vec<_>, Vec<_>) =
        (0..facts.io_threads).map(|_| mpsc::unbounded_channel()).unzip();
    let (stage, stages) = watch::channel(Stage::Running);
    let (listeners, changes) = mpsc::unbounded_channel();
    let sockets = std::mem::take(&mut change.sockets);
    let (at_once, later) = if predecessor.is_some() { (Vec::new(), sockets) } else { (sockets, Vec::new()) };
    let (ends, receiving) = oneshot::channel();
    let threads_of_dealer = commands.clone();
    let mut accept =
        Some(Dealer { addresses: at_once, changes, threads: threads_of_dealer, receiving: ends });
    let (mut threads, cpus) = (Vec::new(), regent_engines::cpus());
    for ((index, commands), app) in receivers.into_iter().enumerate().zip(apps) {
        threads.push(io_threads::spawn(IoStart {
            index,
            app,
            recorder: registry.recorder(),
            meter: registry.http_meter(),
            connections: registry.connection_meter(),
            scrapes: scrapes.clone(),
            busy_poll: BusyPoll::new(cpus, facts.io_threads),
            commands,
            stage: stages.clone(),
            accept: accept.take(),
        })?);
    }
    addresses.apply(change, &config.servers);
    addresses.has_started(&admin_handle.lend().map_err(AdminError::Sockets)?);
    let native = async {
        match native {
            Some(starting) => starting.await.map(Some),
            None => Ok(None),
        }
    };
    let (php, native) = tokio::try_join!(php, native)?;
    tokio::spawn(tick(Arc::downgrade(&registry)));
    registry.reloaded(ReloadOutcome::Loaded);
    regent_connections::trust_at_start(None, &config, parts.tls.as_ref());
    let fixed = Fixed { admin: config.global.admin.clone(), logs: config.global.server_logs() };
    let listened_on = addresses.actual();
    let tasks = Tasks::new(&registry);
    let task_board = tasks.board().clone();
    let state = State {
        config,
        document,
        addresses,
        php,
        native,
        inlined,
        spools: parts.spools,
        proxies: parts.proxies,
        hubs: parts.hubs,
        unused: parts.unused,
        upkeep: parts.tls.as_ref().map(regent_tls::Upkeep::of),
        watching: None,
        metrics: None,
        tasks,
        tls: parts.tls,
        retiring: JoinSet::new(),
        awaits_datagrams: predecessor.is_some(),
    };
    let server = Arc::new(Server {
        options,
        facts,
        registry,
        io: IoThreads { commands, listeners },
        lasting,
        hubs,
        fixed,
        current: RwLock::new(Arc::new(state.current())),
        state: Mutex::new(Some(state)),
        tasks: task_board,
        stopping: watch::Sender::new(false),
        admin: admin_handle,
        succeeded: watch::Sender::new(None),
    });
    if let Some(predecessor) = predecessor {
        server.succeed(&predecessor, later).await?;
    }
    let asked = Arc::downgrade(&server);
    tokio::spawn(askers.serve(async move || Some(asked.upgrade()?.metrics().await)));
    server.follow_files(watched).await;
    server.start_tasks().await;
    server.begin_to_send_metrics().await?;
    let stop_wanted = Arc::new(Notify::new());
    let admin_addresses = admin.as_ref().map_or_else(Vec::new, AdminListener::addresses);
    let control = Arc::new(ServerControl { server: Arc::clone(&server), stop: Arc::clone(&stop_wanted) });
    Ok(Running {
        admin: admin.map(|admin| admin.serve(control, &server.admin)),
        server,
        addresses: listened_on,
        stage,
        threads,
        admin_addresses,
        stop_wanted,
        receiving,
    })
}

impl Running {
    /// The addresses that it began to listen on, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The access logs of all sites.
    pub fn access_logs(&self) -> AccessLogs {
        AccessLogs(Arc::downgrade(&self.server.lasting))
    }

    /// Changes its configuration.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::downgrade(&self.server))
    }

    /// Shows whether it does its work.
    pub fn pulse(&self) -> Pulse {
        Pulse(Arc::downgrade(&self.server))
    }

    /// The addresses of the admin API; none if it is off or a Unix socket.
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        &self.admin_addresses
    }

    /// Ends when the admin API was asked to stop the server.
    pub async fn stop_wanted(&self) {
        self.stop_wanted.notified().await;
    }

    /// Ends when another process has taken this one's place: it is to be stopped then.
    pub async fn succeeded(&self) {
        // The sender is the server's own.
        let _ = self.server.succeeded.subscribe().wait_for(Option::is_some).await;
    }

    /// Goes on serving for the `shutdown_delay` of the configuration, in which requests, and who asks whether it is ready,
    /// learn that it is about to stop. At once if it has none, or another process serves already.
    pub async fn linger(&self) {
        // A reload or an upgrade that is under way gives up what it has prepared, and the state with it.
        self.server.stopping.send_replace(true);
        let state = self.server.state.lock().await;
        let delay = state.as_ref().map_or(Duration::ZERO, |state| state.config.global.shutdown_delay);
        drop(state);
        if delay.is_zero() || self.server.succeeded.borrow().is_some() {
            return;
        }
        tracing::info!(?delay, "the server is about to stop, and goes on serving until then");
        self.server.lasting.shutdown.give(Instant::now() + delay);
        tokio::time::sleep(delay).await;
    }

    /// Stops in good order: no new connections, running requests are answered, within the grace period; then
    /// everything ends.
    pub async fn stop(self) {
        // A reload that is under way gives up what it has prepared.
        self.server.stopping.send_replace(true);
        let state = self.server.state.lock().await.take();
        let Some(state) = state else { return };
        let grace_period = state.config.global.grace_period;
        let deadline = Instant::now() + regent_config::timeout(grace_period);
        // Subscribers would stay for longer than anybody waits.
        let hubs = self.server.hubs.close();
        let successor = self.server.succeeded.borrow().clone();
        // Kept until what waits for their disks is written.
        let caches = self.server.lasting.caches.all();
        // Without I/O threads there is nothing to drain.
        let _ = self.stage.send(if successor.is_some() { Stage::Leaving } else { Stage::Draining });
        let mut admin = self.admin;
        if let Some(successor) = successor {
            // The other server waits for them.
            let caches = caches.clone();
            tokio::task::spawn_blocking(move || Caches::close_disks(&caches, HISTORY_WAIT));
            let receiving = self.receiving;
            // The other server receives then.
            tokio::spawn(async move {
                let _ = receiving.await;
                successor.end();
            });
            if let Some(admin) = admin.take() {
                admin.leave(&self.server.admin).await;
            }
        }
        let State {
            addresses, php, native, upkeep, watching, metrics, mut tasks, mut retiring, inlined, ..
        } = state;
        drop((addresses, upkeep, watching));
        let tasks = tokio::spawn(async move { tasks.stop(deadline).await });
        for thread in self.threads {
            if tokio::time::timeout_at(deadline.into(), thread).await.is_err() {
                tracing::warn!(
                    ?grace_period,
                    "requests were cut off: they had not ended within the grace period"
                );
                break;
            }
        }
        let engines = std::iter::once(php).chain(native);
        join_all(engines.map(|engine| engine.supervisor.stop(deadline))).await;
        // It has the same deadline.
        let _ = tasks.await;
        let _ = tokio::task::spawn_blocking(move || Caches::close_disks(&caches, HISTORY_WAIT)).await;
        let written = join_all(hubs.iter().map(|hub| hub.written()));
        if tokio::time::timeout(HISTORY_WAIT, written).await.is_err() {
            tracing::warn!("the history of a Mercure hub was not written to its end: the disk is too slow");
        }
        // Those that still run have a deadline of their own, which may be later.
        let retired = async { while retiring.join_next().await.is_some() {} };
        let _ = tokio::time::timeout_at(deadline.into(), retired).await;
        let unloading = tokio::task::spawn_blocking(move || Inlined::unload(inlined));
        if tokio::time::timeout_at(deadline.into(), unloading).await.is_err() {
            tracing::warn!(
                "the cleanup of native modules was cut off: it had not ended within the grace period"
            );
        }
        self.server.lasting.traces.finish().await;
        if let Some(metrics) = metrics {
            metrics.finish().await;
        }
        if let Some(admin) = admin {
            admin.stop(&self.server.admin).await;
        }
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
