//! The servers that are measured. Each file starts one with a configuration of its own, in the foreground, on a free
//! port of some loopback addresses; nothing of the machine's own services is read or changed.

mod apache;
pub mod configurations;
mod contender;
mod external;
mod fpm;
mod module;
pub mod programs;
mod regent;
mod server;
mod threads;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use self::contender::{Contender, Kind, ServerKind, Tuning};
pub use self::external::External;
use self::fpm::Upstream;
use self::regent::{Mode, Place};
#[cfg(test)]
pub use self::server::PhpInfo;
pub use self::server::{Description, Server};
use self::threads::PhpThreads;
use crate::generator::plan::Connections;
use crate::interrupt::Interrupt;
use crate::probe;
pub use crate::site::Script;
use crate::site::Site;
use crate::supervise::Daemon;

/// What every peer is told to use for bursts of connections; few kernels allow more without being told to.
const LISTEN_BACKLOG: u32 = 4096;

/// Loopback addresses that a server listens on, from 127.0.0.1 on: a client has 28,000 ports for each, which a
/// connection for each request soon uses up, because closed ones stay in TIME_WAIT.
const MOST_ADDRESSES: u8 = 4;

/// What the servers of a comparison have in common.
#[derive(Debug)]
pub struct Plan<'a> {
    pub site: &'a Site,
    pub pool: Pool,
    /// Connections that may be open at once.
    pub most_connections: u32,
    /// How long they live.
    pub connections: Connections,
    /// The program; set when a contender is Regent.
    pub regent: Option<PathBuf>,
    /// The descriptions of other servers.
    pub externals: &'a [External],
    /// A request is ended when it takes longer, as far as the server can: see [`Plan::time_limit_seconds`].
    pub time_limit: Option<Duration>,
    /// What can no longer be answered within this time is refused at once; only Regent can.
    pub deadline: Option<Duration>,
    /// How long a request may wait for a thread.
    pub wait: Wait,
    pub interrupt: &'a Interrupt,
}

/// How long a request may wait for a thread before the server refuses it. Other servers have no bound of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// As the server comes.
    #[default]
    Default,
    /// For cases in which requests have to wait for long, and are answered all the same.
    Unbounded,
}

/// Threads or processes that run PHP, or a native module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    Fixed(u16),
    Scaling { start: u16, most: u16 },
}

/// Starts a server and checks that it is the right one, with the right settings and the right answer of every script.
pub fn start(contender: &Contender, plan: &Plan) -> Result<Server> {
    let parts = match &contender.kind {
        Kind::BuiltIn(ServerKind::Classic) => regent::start(Mode::Classic, contender.tuning, plan),
        Kind::BuiltIn(ServerKind::Worker) => regent::start(Mode::Worker, contender.tuning, plan),
        Kind::BuiltIn(ServerKind::Native) => {
            regent::start(Mode::Native(Place::Engine), contender.tuning, plan)
        }
        Kind::BuiltIn(ServerKind::NativeInline) => {
            regent::start(Mode::Native(Place::Inline), contender.tuning, plan)
        }
        Kind::BuiltIn(ServerKind::Respond) => regent::start(Mode::Respond, contender.tuning, plan),
        Kind::BuiltIn(ServerKind::Fpm) => fpm::start(Upstream::Fresh, contender.tuning, plan),
        Kind::BuiltIn(ServerKind::FpmKept) => fpm::start(Upstream::Kept, contender.tuning, plan),
        Kind::BuiltIn(ServerKind::Apache) => apache::start(contender.tuning, plan),
        Kind::External(identity) => external::start(identity, contender.tuning, plan),
    };
    let label = plan.label(contender);
    let parts = parts.with_context(|| format!("{label} could not be started"))?;
    Server::inspect(contender.clone(), label, parts)
}

impl Plan<'_> {
    /// A contender's name for people.
    fn label(&self, contender: &Contender) -> String {
        let described = self.externals.iter().find(|external| contender.identity() == external.identity());
        described.map_or_else(|| contender.to_string(), |external| external.name().to_owned())
    }

    /// In whole seconds, the unit of all servers, and at least one.
    ///
    /// A thread-safe PHP (Regent, FrankenPHP) ends a script after so long on the clock on the wall
    /// (`max_execution_time`), php-fpm ends the child (`request_terminate_timeout`). mod_php has nothing of the kind:
    /// its `max_execution_time` counts CPU time, and Apache's `TimeOut` the silence of the client.
    fn time_limit_seconds(&self) -> Option<u64> {
        self.time_limit.map(|limit| limit.as_secs().max(1))
    }
}

impl Pool {
    /// Threads at the start.
    fn start(self) -> u16 {
        match self {
            Self::Fixed(threads) => threads,
            Self::Scaling { start, .. } => start,
        }
    }

    /// Threads at most.
    fn most(self) -> u16 {
        match self {
            Self::Fixed(threads) => threads,
            Self::Scaling { most, .. } => most,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationFile {
    pub name: String,
    pub text: String,
}

/// What starting a server yields, before it is checked.
#[derive(Debug)]
struct Parts {
    port: u16,
    /// It listens on this many loopback addresses.
    addresses: u8,
    paths: Paths,
    /// The last one runs PHP or the module; the one in front of it comes first.
    daemons: Vec<Daemon>,
    php_threads: Option<PhpThreads>,
    banner: Option<String>,
    sapi: Option<String>,
    software: Vec<String>,
    configuration: Vec<ConfigurationFile>,
}

/// URL paths of the scripts; `None` for those that a server does not have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
    hello: String,
    /// Only a server without PHP has none.
    info: Option<String>,
    sleep: Option<String>,
    slow: Option<String>,
    large: Option<String>,
    upload: Option<String>,
    /// The directory of the static files.
    #[serde(rename = "static")]
    files: Option<String>,
}

impl Paths {
    fn of(&self, script: Script) -> Option<String> {
        match script {
            Script::Hello => Some(self.hello.clone()),
            Script::Sleep => self.sleep.clone(),
            Script::Slow => self.slow.clone(),
            Script::Large => self.large.clone(),
            Script::Upload => self.upload.clone(),
            Script::Static(file) => Some(format!("{}/{}", self.files.as_ref()?, file.name())),
        }
    }

    /// Of a server that has nothing but 128 periods.
    fn hello_alone(path: String) -> Self {
        Self { hello: path, info: None, sleep: None, slow: None, large: None, upload: None, files: None }
    }

    /// Those of the site's own scripts.
    fn classic() -> Self {
        use crate::site::{
            HELLO_PATH, INFO_PATH, LARGE_PATH, SLEEP_PATH, SLOW_PATH, STATIC_PATH, UPLOAD_PATH,
        };
        Self {
            hello: HELLO_PATH.to_owned(),
            info: Some(INFO_PATH.to_owned()),
            sleep: Some(SLEEP_PATH.to_owned()),
            slow: Some(SLOW_PATH.to_owned()),
            large: Some(LARGE_PATH.to_owned()),
            upload: Some(UPLOAD_PATH.to_owned()),
            files: Some(STATIC_PATH.to_owned()),
        }
    }
}

/// The first `number` of the addresses that servers listen on.
fn addresses(port: u16, number: u8) -> Vec<SocketAddr> {
    (1..=number).map(|last| SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port))).collect()
}

/// A port on the first `number` addresses that nobody listens on, below those that the kernel gives to whoever asks for any: only
/// who wants just this one can take it.
pub fn free_port(number: u8) -> Result<u16> {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Benchmarks that run at the same time start at different places.
    let start = std::process::id() % COUNT * 2_003;
    (0..COUNT)
        .map(|_| FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| addresses(*port, number).iter().all(|address| TcpListener::bind(address).is_ok()))
        .with_context(|| format!("no port is free on all of {number} loopback addresses"))
}

/// Whether something accepts connections on the first `number` addresses.
fn is_listening(port: u16, number: u8) -> bool {
    addresses(port, number).into_iter().all(probe::accepts)
}

/// Writes a configuration file and keeps its text for the results.
fn configure(site: &Site, directory: &Path, name: &str, text: &str) -> Result<(PathBuf, ConfigurationFile)> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok((path, ConfigurationFile { name: name.to_owned(), text: site.anonymize(text) }))
}

/// Regent or FrankenPHP, with a configuration.
///
/// `settings` are directories for `PHP_INI_SCAN_DIR`. They are read after the one that the PHP was compiled with: there a
/// distribution's PHP has its extensions, opcache among them.
pub fn run_command(program: &Path, config: &Path, settings: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("run").arg("--config").arg(config);
    // PHP takes its own directory where a name is empty.
    command.env("PHP_INI_SCAN_DIR", format!(":{settings}"));
    command
}

/// The unprivileged user that the peers' workers run as, when the bench runs as root.
pub fn worker_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("www-data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_kept_without_the_work_directory() {
        let site = Site::create().expect("a directory");
        let text = format!("root {};", site.document_root().display());
        let (path, kept) = configure(&site, site.path(), "x.conf", &text).expect("written");
        assert_eq!(fs::read_to_string(path).expect("it exists"), text);
        assert_eq!((kept.name.as_str(), kept.text.as_str()), ("x.conf", "root WORK/site;"));
    }

    /// WordPress' installer answered 500 with the distribution's PHP: no extension was loaded.
    #[test]
    fn php_reads_its_own_settings_before_those_of_a_run() {
        let command = run_command(Path::new("regent"), Path::new("Caddyfile"), "/w/php.d:/w/server/php.d");
        let scanned =
            command.get_envs().find(|(name, _)| *name == "PHP_INI_SCAN_DIR").and_then(|(_, value)| value);
        let directories: Vec<_> = std::env::split_paths(scanned.expect("it is set")).collect();
        assert_eq!(directories, ["", "/w/php.d", "/w/server/php.d"].map(PathBuf::from));
    }

    #[test]
    fn the_addresses_are_on_loopback() {
        let addresses = addresses(80, 4);
        assert_eq!(addresses.len(), 4);
        assert!(addresses.iter().all(|address| address.ip().is_loopback()), "{addresses:?}");
    }
}
