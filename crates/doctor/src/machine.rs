//! What is read of the machine: plain data, so that checks can be shown any.

mod application;
mod directories;
mod kernel;
mod keys;
mod modes;
mod ports;

use crate::php::PhpFacts;
use application::application;
use regent_config::{CertificateSource, Config, EngineUser, Environment, Listen, PassedOver, UserWish};
use regent_engines::{EngineError, ThreadCounts};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use application::Application;
pub use directories::{Directory, Purpose, WriteState};
pub use kernel::Kernel;
pub use keys::Key;
pub use ports::{OWN_NAME, Port, PortState};

/// Everything that checks look at beside the configuration. `None`: the machine does not say.
#[derive(Debug)]
pub struct Machine {
    pub now: SystemTime,
    /// Who asks, and so whose rights are looked at.
    pub uid: u32,
    /// In words, why PHP cannot be asked.
    pub php: Result<PhpFacts, String>,
    /// How many threads of PHP the configuration means here.
    pub threads: Result<ThreadCounts, EngineError>,
    /// Bytes that the server and its engines may take: the tightest of machine and control groups.
    pub memory_limit: Option<u64>,
    /// Hard limit of open files; `u64::MAX`: none.
    pub open_files: u64,
    /// Of connections that wait in a socket to be accepted.
    pub somaxconn: Option<u64>,
    /// The chosen mode, such as `madvise`.
    pub transparent_hugepages: Option<String>,
    /// `vm.overcommit_memory`.
    pub overcommit: Option<u64>,
    pub kernel: Kernel,
    /// Programs for mail that have rights of another user or group.
    pub set_id_mailers: Vec<PathBuf>,
    /// The directory of temporary files.
    pub temporary_files: PathBuf,
    pub ports: Vec<Port>,
    pub directories: Vec<Directory>,
    /// Files of certificates, and when each expires, or why that cannot be read.
    pub certificates: Vec<(PathBuf, Result<SystemTime, String>)>,
    /// That are there, and that who asks can see.
    pub keys: Vec<Key>,
    pub applications: Vec<Application>,
    /// Files of other servers' configurations.
    pub passed_over: Vec<PassedOver>,
}

impl Machine {
    /// Reads what concerns this configuration. Takes as long as PHP needs to start; addresses are bound for an instant, and
    /// nothing else is changed. `engine`: the program of the engine for PHP.
    pub fn read(config: &Config, engine: &Path) -> Self {
        let cpus = regent_engines::cpus();
        let php = PhpFacts::ask(engine, &config.global.php);
        let uid = rustix::process::geteuid().as_raw();
        Self {
            now: SystemTime::now(),
            uid,
            directories: directories::read(config, php.as_ref().ok()),
            set_id_mailers: kernel::set_id_mailers(php.as_ref().ok()),
            php,
            threads: ThreadCounts::of(&config.global.php, cpus.ceil() as usize),
            memory_limit: regent_engines::memory().map(|memory| memory.limit),
            open_files: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
            somaxconn: number("/proc/sys/net/core/somaxconn"),
            transparent_hugepages: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
                .ok()
                .and_then(|text| chosen(&text)),
            overcommit: number("/proc/sys/vm/overcommit_memory"),
            kernel: Kernel::read(),
            temporary_files: std::env::temp_dir(),
            ports: tcp_addresses(config).map(Port::read).collect(),
            certificates: certificate_files(config).into_iter().map(expiry).collect(),
            keys: keys::read(config, user_of_php(config, uid)),
            applications: regent_config::roots(config).iter().map(|root| application(root)).collect(),
            passed_over: Environment::of_process()
                .map(|environment| regent_config::passed_over(config, &environment))
                .unwrap_or_default(),
        }
    }
}

/// Whom PHP runs as where this user starts the server; `None`: as the server.
pub fn user_of_php(config: &Config, uid: u32) -> Option<&EngineUser> {
    let user = config.global.php.user.as_ref().filter(|user| user.uid != uid)?;
    (user.wish == UserWish::Firm || uid == 0).then_some(user)
}

fn number(file: &str) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Of `always [madvise] never`, the one in brackets.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn tcp_addresses(config: &Config) -> impl Iterator<Item = SocketAddr> {
    config.servers.iter().filter_map(|server| match &server.listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) | Listen::Descriptor(_) => None,
    })
}

/// Those that a site names. Certificates of CAs renew themselves.
fn certificate_files(config: &Config) -> BTreeSet<PathBuf> {
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    let sources = sites.filter_map(|site| site.tls.as_ref()).map(|tls| &tls.source);
    sources
        .flat_map(|source| match source {
            CertificateSource::Files { pairs, .. } => pairs.as_slice(),
            _ => &[],
        })
        .map(|pair| pair.certificate.clone())
        .collect()
}

fn expiry(file: PathBuf) -> (PathBuf, Result<SystemTime, String>) {
    let expiry = regent_tls::certificate_expiry(&file).map_err(|error| error.to_string());
    (file, expiry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_in_brackets_is_the_chosen_one() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("nothing"), None);
    }
}
