//! What the admin listener asks of the server.

use crate::authority::CertificateAuthority;
use crate::cache::{CacheFigures, CachePurge, Purged};
use crate::certificate::Certificate;
use crate::pool::Pool;
use crate::statistics::Statistics;
use crate::task::{Task, TaskOrder};
use crate::thread::{ThreadStack, Threads};
use crate::upstream::Upstream;
use futures_util::future::BoxFuture;
use regent_metrics::AdminRequest;
use regent_profile::Profile;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A running server, as far as the admin listener is concerned.
///
/// The futures run on the listener's runtime and must not block it. A change goes on when the client that asked for it
/// hangs up: its future is polled to the end. A question's is dropped.
pub trait Control: Send + Sync + 'static {
    /// All threads: PHP's, in the order of their indices, then those of native modules.
    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>>;

    /// What a thread of PHP is at, by its number.
    fn stack(&self, index: u16) -> BoxFuture<'_, Result<ThreadStack, Refusal>>;

    /// Which functions the threads of PHP are in, looked at for a while. One at a time.
    fn profile(&self, wish: ProfileWish) -> BoxFuture<'_, Result<Profile, Refusal>>;

    /// All pools: first the one of classic requests, then those of the workers and those of the native services, each in the
    /// order of the configuration.
    fn pools(&self) -> BoxFuture<'_, Result<Vec<Pool>, Refusal>>;

    /// Adds threads to the pool with this [`Pool::name`]: all of them or, with an error, none. Ready when it is decided;
    /// the threads may still be starting.
    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>>;

    /// Takes threads from the pool: all of them or, with an error, none. One that is busy finishes its request first, and
    /// one always stays. Ready when it is decided; busy threads may still be finishing.
    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>>;

    /// Starts all worker scripts anew, without a request being lost or refused. Ready when the new ones serve; requests of
    /// the old ones may still be running.
    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>>;

    /// Loads all native modules anew, without a request being lost or refused. Ready when the new ones serve; requests of the
    /// old ones may still be running. Modules that cannot be loaded are refused, and the old ones go on.
    fn restart_native(&self) -> BoxFuture<'_, Result<Restarted, Refusal>>;

    /// Changes to another configuration, without a request being lost or refused. Ready when requests are answered as it says;
    /// those that came before may still be running. A configuration that is refused changes nothing.
    fn reload(&self, reload: Reload) -> BoxFuture<'_, Result<Reloaded, Refusal>>;

    /// What the text of a Caddyfile means, as JSON. Nothing is changed.
    fn adapt(&self, text: String) -> BoxFuture<'_, Result<Adapted, Refusal>>;

    /// Has another process of the server's program take its place, without a request being lost or refused. Ready when that one
    /// serves; this server then answers what it has begun, and ends. A process that is not ready after `patience` (`None`: as long
    /// as the server thinks right) is ended, and this server goes on.
    fn upgrade(&self, patience: Option<Duration>) -> BoxFuture<'_, Result<Upgraded, Refusal>>;

    /// Whether a request that came now would be served.
    fn readiness(&self) -> BoxFuture<'_, Readiness>;

    /// The metrics in the text format of Prometheus, version 0.0.4.
    fn metrics(&self) -> BoxFuture<'_, String>;

    /// A call was answered: for the metrics.
    fn answered(&self, request: AdminRequest<'_>);

    /// Figures of the last seconds, for the dashboard and `regent top`.
    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>>;

    /// Certificates that are served, and names that are still without; none without TLS.
    fn certificates(&self) -> BoxFuture<'_, Vec<Certificate>>;

    /// The local CA; `None`: there is none.
    fn authority(&self) -> BoxFuture<'_, Option<CertificateAuthority>>;

    /// All upstreams of `reverse_proxy`, in the order of their addresses.
    fn upstreams(&self) -> Vec<Upstream>;

    /// All background scripts, each process by itself, in the order of the configuration.
    fn tasks(&self) -> Vec<Task>;

    /// Tells the processes of a background script, but for those that do what is wanted anyway; how many were told. With an
    /// error none was.
    fn order(&self, task: &str, order: TaskOrder) -> Result<u16, Refusal>;

    /// How the cache stands.
    fn cache(&self) -> CacheFigures;

    /// Forgets stored responses, those too that are asked for now and come later.
    fn purge(&self, purge: CachePurge) -> BoxFuture<'_, Result<Purged, Refusal>>;

    /// The configuration as Caddy's JSON, with all that is secret in it: the document that was loaded, or what the Caddyfile means.
    fn configuration(&self) -> Arc<serde_json::Value>;

    /// Begins to stop in good order, and returns at once. The listener answers until the future that [`crate::serve`] was
    /// given ends.
    fn stop(&self);
}

/// What became of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Threads that were added or taken.
    pub changed: u16,
    /// Threads that the pool has now, without those that are leaving.
    pub total: u16,
}

/// What was restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// Threads that run worker scripts, or native modules; those of the whole engine where there are no workers, and 0
    /// without native services.
    pub restarted: u32,
}

/// What is to be profiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileWish {
    /// [`Pool::name`]; `None`: all pools of PHP.
    pub pool: Option<String>,
    /// Only requests whose path begins so.
    pub path: String,
    pub duration: Duration,
    /// Looks a second.
    pub hertz: u32,
}

/// A configuration that is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reload {
    pub source: Source,
    pub force: Force,
    /// What [`Control::configuration`] has to be; `None`: whatever it is.
    pub replaces: Option<Arc<serde_json::Value>>,
    /// How long to wait for the requests that began before; `None`: not at all.
    pub wait: Option<Duration>,
}

/// What a Caddyfile means, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adapted {
    pub result: serde_json::Value,
    /// For people, with file and line.
    pub warnings: Vec<String>,
}

/// Where a configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Where the one that the server was started with was.
    Own,
    /// In this file of the server's machine, which is absolute. `None`: its name says the language.
    File(PathBuf, Option<Language>),
    Text(Language, String),
}

/// What a configuration is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Caddyfile,
    /// Caddy's own.
    Json,
}

impl Language {
    /// As `--adapter` and `adapter=` have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caddyfile => "caddyfile",
            Self::Json => "json",
        }
    }
}

/// Whether a configuration is loaded that is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// What a configuration has brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Whether it was another one than the current one, or loaded by force.
    pub changed: bool,
    /// What has changed in it and stays as it was until the process is started anew, for people.
    pub warnings: Vec<String>,
    /// What has become of the requests that began before; `None`: nobody has waited for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
}

/// The requests that had begun before a configuration was changed, when somebody has waited for their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// Nothing uses what the configuration before was about.
    Ended,
    /// Some still run.
    Running,
}

/// Who serves now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// The ID of the new process.
    pub process: u32,
}

/// Why a question was not answered, or a change not made: nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The pool is gone: the configuration has been replaced in the meantime. 404.
    #[error("there is no pool `{0}` any more; `GET /regent/queue` lists those that there are")]
    UnknownPool(String),
    /// 404.
    #[error("there is no thread {0} of PHP; `GET /regent/threads` lists those that there are")]
    UnknownThread(u16),
    /// 404.
    #[error(
        "the pool `{0}` runs no PHP, so there is nothing to profile; leave `worker` out to profile all of PHP"
    )]
    NoPhp(String),
    /// 409.
    #[error("a profile is being taken already, for somebody else; wait until it is done")]
    ProfileUnderWay,
    /// 409.
    #[error("{}", too_many(*threads, *most))]
    TooMany { threads: u16, most: u16 },
    /// 409.
    #[error(
        "the pool has {threads} {}: at most {} can be removed, since one always stays",
        if *threads == 1 { "thread" } else { "threads" },
        threads.saturating_sub(1)
    )]
    TooFew { threads: u16 },
    /// The text says which there are. 404.
    #[error("{0}")]
    UnknownTask(String),
    /// The text says what to do. 409.
    #[error("{0}")]
    TaskRuns(String),
    /// The configuration is wrong, or something that it needs cannot be had; the text says what, and where. 400.
    #[error("{0}")]
    Configuration(String),
    /// The configuration is another one by now. 412.
    #[error("the configuration has changed since it was read: read it again")]
    Replaced,
    /// The server cannot do it now; the text says why, and what to do. 503.
    #[error("{0}")]
    Unavailable(String),
}

/// Whether requests are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// The text says why not.
    NotReady(String),
}

fn too_many(threads: u16, most: u16) -> String {
    match most.saturating_sub(threads) {
        0 => format!(
            "the pool has {threads} threads, as many as it may: raise `max_threads` in the configuration"
        ),
        more => format!(
            "the pool has {threads} threads and may have {most}: add at most {more}, or raise `max_threads` in the \
             configuration"
        ),
    }
}
