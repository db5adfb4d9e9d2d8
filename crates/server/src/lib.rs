//! The server: everything put together.
//!
//! [`start`] turns a [`Config`] into a [`Running`] server: listening sockets and I/O threads ([`acceptor`]), the
//! engine's process and its replacements ([`supervisor`]), and the way of a request between them ([`service`],
//! [`php`]).
#![forbid(unsafe_code)]

mod acceptor;
mod admin;
mod answer;
mod control;
mod gate;
mod io_thread;
mod logged;
mod machine;
mod php;
mod plan;
mod pools;
mod pressure;
mod process;
mod response;
mod roster;
mod service;
mod spool;
mod supervisor;
mod upload;
mod variables;

use acceptor::{Dealer, IoStart, Stage};
use admin::{AdminListener, AdminTask};
use control::ServerControl;
use plan::Plan;
use pools::Pools;
use pressure::Pressure;
use regent_config::{Config, Listen, Server};
use regent_handlers::{BuildError, Sites};
use regent_wire::RegionError;
use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use spool::Spools;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use supervisor::{Recipe, Supervisor};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;

pub use admin::AdminError;
pub use spool::SpoolError;
pub use supervisor::EngineError;

/// What does not come from the configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine's program.
    pub engine: PathBuf,
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("listening on {address}: {cause}{hint}", hint = hint(.cause))]
    Listen { address: String, cause: io::Error },
    #[error("Unix sockets are not built yet as listening addresses: {0}")]
    UnixSocket(PathBuf),
    #[error(transparent)]
    Routes(#[from] BuildError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the configuration asks for {threads} PHP threads; {most} are the most")]
    TooManyThreads { threads: usize, most: usize },
    #[error(
        "{threads} threads leave none for classic requests beside the {workers} of the workers; set `num_threads` and \
         `max_threads` to {} or more, or give the workers fewer with `num`", .workers + 1
    )]
    NoClassicThread { threads: u16, workers: u16 },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("starting an I/O thread: {0}")]
    Thread(io::Error),
}

/// A server that runs. Stop it with [`Running::stop`]; dropped, its engines are killed.
pub struct Running {
    addresses: Vec<SocketAddr>,
    stage: watch::Sender<Stage>,
    threads: Vec<oneshot::Receiver<()>>,
    supervisor: Supervisor,
    admin: Option<AdminTask>,
    admin_addresses: Vec<SocketAddr>,
    stop_wanted: Arc<Notify>,
    grace_period: Duration,
}

/// Starts a server; it serves when this returns. Must be called within a tokio runtime.
pub async fn start(config: Config, options: Options) -> Result<Running, StartError> {
    let plan = Plan::new(&config)?;
    let spools = Spools::open(&config.global.php.spool)?;
    let listeners = config.servers.iter().map(listen).collect::<Result<Vec<_>, _>>()?;
    let admin = config.global.admin.as_ref().map(AdminListener::bind).transpose()?;
    let addresses = listeners.iter().filter_map(|sockets| sockets[0].local_addr().ok()).collect();
    let sites = config
        .servers
        .iter()
        .map(|server| Sites::build(server, &config.global.php.workers).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;

    let backend = supervisor::new_backend(plan.geometry, plan.scheduling).map_err(EngineError::Memory)?;
    let doorbells = (0..plan.io_threads).map(|_| doorbell()).collect::<Result<Vec<_>, _>>()?;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..plan.io_threads).map(|_| mpsc::unbounded_channel()).unzip();
    let (stage, stages) = watch::channel(Stage::Running);
    let pressure = Arc::new(Pressure::default());
    let pools = Pools::new(&plan.pools, &config.global.php);

    let mut accept = Some(Dealer { listeners, threads: senders.clone() });
    let mut threads = Vec::new();
    for (index, (commands, doorbell)) in receivers.into_iter().zip(&doorbells).enumerate() {
        threads.push(spawn_io_thread(IoStart {
            index,
            slots: plan.geometry.slots_per_io as usize,
            backend: Arc::clone(&backend),
            doorbell: Arc::clone(doorbell),
            sites: sites.clone(),
            settings: plan.settings,
            limits: plan.limits,
            bounds: plan.bounds,
            pools: Arc::clone(&pools),
            spools: Arc::clone(&spools),
            pressure: Arc::clone(&pressure),
            commands,
            stage: stages.clone(),
            accept: accept.take(),
        })?);
    }
    let recipe = Recipe {
        program: options.engine,
        geometry: plan.geometry,
        start: plan.start,
        plans: plan.pools.clone(),
        pools: Arc::clone(&pools),
        scheduling: plan.scheduling,
        max_idle: plan.max_idle,
        pressure,
        doorbells,
        io_threads: senders.clone(),
    };
    let supervisor = Supervisor::start(recipe, backend).await?;
    tokio::spawn(tick(Arc::downgrade(&pools)));
    let stop_wanted = Arc::new(Notify::new());
    let admin_addresses = admin.as_ref().map_or_else(Vec::new, AdminListener::addresses);
    let control = Arc::new(ServerControl {
        supervisor: supervisor.handle(),
        pools,
        plans: plan.pools,
        io_threads: senders,
        configuration: Arc::new(serde_json::to_value(&config).unwrap_or_default()),
        stop: Arc::clone(&stop_wanted),
    });
    Ok(Running {
        addresses,
        stage,
        threads,
        supervisor,
        admin: admin.map(|admin| admin.serve(control)),
        admin_addresses,
        stop_wanted,
        grace_period: config.global.grace_period,
    })
}

impl Running {
    /// The addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
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
        for thread in self.threads {
            if tokio::time::timeout_at(deadline.into(), thread).await.is_err() {
                tracing::warn!("requests were cut off: they had not ended within the grace period");
                break;
            }
        }
        self.supervisor.stop(deadline).await;
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
    }
}

/// Moves what the metrics call recent along with time, until the server is gone.
async fn tick(pools: Weak<Pools>) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let Some(pools) = pools.upgrade() else { return };
        pools.registry.tick(Instant::now());
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

/// The sockets that share the server's address, at least one.
fn listen(server: &Server) -> Result<Vec<TcpListener>, StartError> {
    match &server.listen {
        Listen::Tcp(address) => regent_http::listen(*address)
            .map_err(|cause| StartError::Listen { address: address.to_string(), cause }),
        Listen::Unix(path) => Err(StartError::UnixSocket(path.clone())),
    }
}

fn doorbell() -> Result<Arc<OwnedFd>, EngineError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let made = rustix::event::eventfd(0, flags)
        .map_err(|error| RegionError::System { step: "given a doorbell", source: error.into() })?;
    Ok(Arc::new(made))
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it, or choose another port",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for root: choose a higher one",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}
