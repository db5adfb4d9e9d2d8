//! The global options block.

mod confine;

pub use confine::*;

use super::{
    CacheMemory, Circuit, GlobalTls, HotReload, Limits, LogConfig, LogSelection, MercureHub, MetricsExport,
    NativeGlobal, RetryMethods, ServerLog, Task, Traces, as_octal, as_text,
};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The global options block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Global {
    /// The port of plain HTTP: of an address with `http://` that names none, and of redirects. Default: 80.
    pub http_port: u16,
    pub tls: GlobalTls,
    /// How long a graceful stop waits for running requests; 0: as long as they take. Default: 10 s.
    pub grace_period: Duration,
    /// How long the server goes on serving before that. Default: 0.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub shutdown_delay: Duration,
    /// The server's own log (the `log` global option).
    pub log: LogConfig,
    /// Whose lines it has.
    #[serde(skip_serializing_if = "LogSelection::is_all")]
    pub log_selection: LogSelection,
    /// Other logs of the server, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<ServerLog>,
    /// Where the admin API listens; `None`: nowhere (`admin off`). Default: localhost:2019.
    pub admin: Option<Admin>,
    /// Whether a configuration that was loaded by the admin API is kept for `run --resume`. Default: it is.
    #[serde(skip)]
    pub persistence: Persistence,
    /// What `/regent/ready` asks PHP for; `None`: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthCheck>,
    /// Figures of all requests under Caddy's names; `None`: they are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<HttpMetrics>,
    /// Where all metrics are sent; `None`: they are only there to be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_export: Option<MetricsExport>,
    /// Of all `tracing` directives; `None`: there are none, or the environment has turned them off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// Of all `cache` directives.
    #[serde(skip_serializing_if = "CacheMemory::is_usual")]
    pub cache: CacheMemory,
    /// Bytes of the largest head that any server takes: engines keep room for it.
    #[serde(skip)]
    pub max_header_size: usize,
    pub php: PhpGlobal,
    pub native: NativeGlobal,
    /// All Mercure hubs; a [`HubId`](super::HubId) is an index into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<MercureHub>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hot_reloads: Vec<HotReload>,
}

/// The `health_uri` option: a request to PHP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthCheck {
    pub host: String,
    /// With the query.
    pub path: String,
    pub timeout: Duration,
}

/// The `persist_config` global option.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Persistence {
    #[default]
    On,
    Off,
}

/// The `metrics` global option: which requests are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpMetrics {
    /// By listening address alone.
    #[default]
    Together,
    /// By the hosts that sites name; all others are one (`per_host`).
    PerHost,
    /// By all hosts that clients ask for (`per_host` with `observe_catchall_hosts`).
    PerAnyHost,
}

/// The `admin` global option.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Admin {
    pub listen: AdminListen,
    /// Origins that may call it, as written: `https://host:port`, `host:port` or `host`. Empty: those that follow from
    /// `listen`.
    pub origins: Vec<String>,
    pub origin_check: OriginCheck,
}

/// The admin API's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum AdminListen {
    /// The host as written, without brackets: a name, an IP address, or empty for all of the machine's addresses.
    Tcp { host: String, port: u16 },
    Unix {
        #[serde(serialize_with = "as_text")]
        path: PathBuf,
        /// Permissions of its file. Default: 0600.
        #[serde(serialize_with = "as_octal")]
        mode: u32,
    },
}

/// Which calls of the admin API have to show an allowed origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum OriginCheck {
    /// Those that carry an `Origin`, which browsers add.
    Browsers,
    /// All of them (`enforce_origin`).
    Everyone,
}

/// The `frankenphp { … }` / `regent { … }` block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhpGlobal {
    /// Threads at start, in all (classic and worker). `None`: 2 per core, no more than `max_threads`, and at least one
    /// classic thread beside the workers'.
    pub num_threads: Option<u16>,
    /// Threads in all that scaling may reach. `None`: `num_threads` if that is given, otherwise as [`MaxThreads::Auto`].
    /// Never less than `num_threads` or than that of a worker.
    pub max_threads: Option<MaxThreads>,
    /// Processes that the threads are divided among, 1 to 16.
    #[serde(skip_serializing_if = "is_one")]
    pub engines: u16,
    /// A thread that scaling added ends when it was idle for so long; 0: it stays. Default: 5 s.
    pub max_idle_time: Duration,
    /// Longest time a request may wait for a thread; then 503. `None`: no bound. Default: 3 s.
    pub max_wait_time: Option<Duration>,
    /// Requests that may wait for a thread in each pool's queue, and in its lanes; more are answered with 503. `None`: as
    /// many as there are slots, 32,768 for each I/O thread, and 32,768 in lanes.
    pub max_queue: Option<u32>,
    /// Soft real-time limit of requests whose route has none of its own, from the first byte of the head to the
    /// last byte of the answer. `None`: no limit.
    pub deadline: Option<Duration>,
    /// Longest time that a request may be on a thread of PHP, for workers and routes that have no limit of their own; then
    /// 504. `None`: no limit.
    pub request_timeout: Option<Duration>,
    /// A request whose client has left, and that does nothing but wait for so long, is ended, unless its script has said that it
    /// goes on. `None`: none is. Default: 1 min.
    #[serde(skip_serializing_if = "is_usual_departure")]
    pub departed_timeout: Option<Duration>,
    /// Bytes of the fields of a response of PHP or of a native module; one with more is 500. Default: 256 KiB.
    #[serde(skip_serializing_if = "is_usual_response_header")]
    pub max_response_header: usize,
    /// Which requests are run once more when their engine dies, of routes that do not say it themselves.
    #[serde(skip_serializing_if = "RetryMethods::is_empty")]
    pub retry: RetryMethods,
    /// Which requests are told of while they run, and where. `None`: none.
    pub slow_log: Option<SlowLog>,
    /// When requests that kill their engine are refused; `None`: never.
    #[serde(skip_serializing_if = "Circuit::is_usual")]
    pub circuit: Option<Circuit>,
    pub scheduling: Scheduling,
    /// Bounds of the lanes that are declared; other lanes have automatic ones. No name occurs twice.
    pub lanes: Vec<Lane>,
    pub spool: Spool,
    /// A thread is recycled after this many requests; 0: never.
    pub max_requests: u64,
    /// A worker's thread is recycled after a request that leaves so many bytes allocated; 0: never.
    pub max_memory: u64,
    /// A thread is recycled after a request when its script is so old; 0: never.
    pub max_age: Duration,
    /// The engine's program. `None`: the one that the server knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// Overrides of php.ini, in order.
    pub php_ini: Vec<(String, String)>,
    /// Whom engines run as. `None`: as the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<EngineUser>,
    #[serde(skip_serializing_if = "Confine::is_usual")]
    pub confine: Confine,
    /// All workers, of the global block and of `php_server` blocks; a [`WorkerId`] is an index into it.
    pub workers: Vec<Worker>,
    /// Scripts that run beside the pools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
}

/// What is told of requests that run for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlowLog {
    /// Longer than 0; from when a thread takes the request.
    pub after: Duration,
    /// An absolute path. `None`: the server's log.
    #[serde(serialize_with = "as_optional_text")]
    pub file: Option<PathBuf>,
}

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineUser {
    /// As it was written.
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// As it was written; `None`: it is the user's own.
    #[serde(skip)]
    pub group: Option<String>,
    /// The home and the shell of passwd(5); `None`: the user is a number that is not there.
    #[serde(skip)]
    pub home: Option<UserHome>,
    #[serde(skip)]
    pub wish: UserWish,
}

/// Where a user is at home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserHome {
    pub directory: String,
    pub shell: String,
}

/// What a server does that may not run PHP as another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserWish {
    /// The configuration names the user: the server does not start.
    Firm,
    /// The environment does, for every configuration: PHP runs as the server.
    IfPossible,
}

/// The most threads that scaling may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum MaxThreads {
    Fixed(u16),
    /// As many as the memory allows: the cgroup's limit, or that of the machine, and what a thread was seen to take.
    Auto,
}

/// Which of several idle threads gets a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Scheduling {
    /// All get work within seconds, so that each has its connections open and a limit shows up on a quiet day.
    #[default]
    Spread,
    /// The one that was used last, so that those that are not needed become idle for long.
    Pack,
}

/// A bound on a named lane: requests that share it never hold more threads while others wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    pub name: String,
    pub bound: LaneBound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LaneBound {
    /// At least 1.
    Threads(u16),
    /// Of the pool's threads, in percent: 1 to 100.
    Share(u8),
}

/// Where bodies wait that are larger than a ring of the shared memory, for each request and each direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spool {
    /// Bytes in memory. Default: 1 MiB.
    pub memory: u64,
    /// Bytes in a temporary file, beyond those in memory; 0: no files. Default: 1 GiB.
    pub file: u64,
    /// An absolute path. `None`: the system's directory for temporary files.
    #[serde(serialize_with = "as_optional_text")]
    pub directory: Option<PathBuf>,
}

/// Index into [`PhpGlobal::workers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct WorkerId(pub u16);

/// A worker script: boots once, then handles requests in a loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worker {
    /// Shown in lists and metrics. Default: the file as written.
    pub name: String,
    /// Absolute path of the script.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Threads that run it at start. `None`: 2 per core, no more than `max_threads`.
    pub num: Option<u16>,
    /// Threads that scaling may reach, at least `num`. `None`: as many as [`PhpGlobal::max_threads`] leaves.
    pub max_threads: Option<u16>,
    pub env: Vec<(String, String)>,
    /// Longest time that a request may be on one of its threads; 0: no limit. `None`: that of the whole server.
    pub request_timeout: Option<Duration>,
    /// Boots in a row that end before the loop is reached, after which the engine gives up; `None`: never.
    pub max_consecutive_failures: Option<u32>,
    /// Paths of GET requests, with a query or without, that each thread runs between its boot and the first request of
    /// a client.
    pub warmup: Vec<String>,
    /// Files whose change starts all workers anew, as patterns of [`regent_watch::Pattern`] from the working
    /// directory on.
    pub watch: Vec<String>,
}

const DEPARTED_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_RESPONSE_HEADER: usize = 256 * 1024;

impl Global {
    /// All logs of the server, its own first.
    pub fn server_logs(&self) -> Vec<ServerLog> {
        let (name, config, selection) = ("default".to_owned(), self.log.clone(), self.log_selection.clone());
        std::iter::once(ServerLog { name, config, selection }).chain(self.logs.iter().cloned()).collect()
    }
}

impl Default for Global {
    fn default() -> Self {
        Self {
            http_port: 80,
            tls: GlobalTls::default(),
            grace_period: Duration::from_secs(10),
            shutdown_delay: Duration::ZERO,
            log: LogConfig::default(),
            log_selection: LogSelection::default(),
            logs: Vec::new(),
            admin: Some(Admin::default()),
            cache: CacheMemory::default(),
            health: None,
            persistence: Persistence::On,
            metrics: None,
            metrics_export: None,
            traces: None,
            max_header_size: Limits::default().max_header_size,
            php: PhpGlobal::default(),
            native: NativeGlobal::default(),
            hubs: Vec::new(),
            hot_reloads: Vec::new(),
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        let listen = AdminListen::Tcp { host: "localhost".into(), port: 2019 };
        Self { listen, origins: Vec::new(), origin_check: OriginCheck::Browsers }
    }
}

impl Default for PhpGlobal {
    fn default() -> Self {
        Self {
            num_threads: None,
            max_threads: None,
            engines: 1,
            max_idle_time: Duration::from_secs(5),
            max_wait_time: Some(Duration::from_secs(3)),
            max_queue: None,
            deadline: None,
            request_timeout: None,
            departed_timeout: Some(DEPARTED_TIMEOUT),
            max_response_header: MAX_RESPONSE_HEADER,
            retry: RetryMethods::NONE,
            slow_log: None,
            circuit: Some(Circuit::default()),
            scheduling: Scheduling::default(),
            lanes: Vec::new(),
            spool: Spool::default(),
            max_requests: 0,
            max_memory: 0,
            max_age: Duration::ZERO,
            php_ini: Vec::new(),
            program: None,
            user: None,
            confine: Confine::default(),
            workers: Vec::new(),
            tasks: Vec::new(),
        }
    }
}

impl Default for Spool {
    fn default() -> Self {
        Self { memory: 1 << 20, file: 1 << 30, directory: None }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            name: String::new(),
            file: PathBuf::new(),
            num: None,
            max_threads: None,
            env: Vec::new(),
            request_timeout: None,
            // As in FrankenPHP.
            max_consecutive_failures: Some(6),
            warmup: Vec::new(),
            watch: Vec::new(),
        }
    }
}

fn is_usual_response_header(bytes: &usize) -> bool {
    *bytes == MAX_RESPONSE_HEADER
}

fn is_usual_departure(timeout: &Option<Duration>) -> bool {
    *timeout == Some(DEPARTED_TIMEOUT)
}

fn is_one(number: &u16) -> bool {
    *number == 1
}

pub(super) fn as_optional_text<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}
