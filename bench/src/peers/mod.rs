//! The servers that are measured. Each file starts one with a configuration of its own, in the foreground, on a free
//! port of 127.0.0.1; nothing of the machine's own services is read or changed.

mod apache;
mod fpm;
pub mod programs;
mod regent;

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use self::fpm::Upstream;
use crate::interrupt::Interrupt;
use crate::probe;
use crate::procfs;
use crate::site::{BODY, INFO_PATH, Site};
use crate::supervise::Daemon;

/// What every peer is told to use, so that a burst of connections is never refused.
const LISTEN_BACKLOG: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// Regent, a fresh PHP request for each HTTP request
    Classic,
    /// Regent, a worker script that handles requests in a loop
    Worker,
    /// The distribution's nginx and php-fpm over a Unix socket
    Fpm,
    /// The same with connections that nginx keeps to php-fpm: more throughput, but starving clients
    FpmKept,
    /// The distribution's Apache, prefork, with mod_php
    Apache,
}

impl ServerKind {
    pub fn is_regent(self) -> bool {
        matches!(self, Self::Classic | Self::Worker)
    }

    pub fn is_fpm(self) -> bool {
        matches!(self, Self::Fpm | Self::FpmKept)
    }

    /// How the server introduces itself in the `Server` header; `None` where it need not.
    fn banner(self) -> Option<&'static str> {
        match self {
            Self::Classic | Self::Worker => None,
            Self::Fpm | Self::FpmKept => Some("nginx"),
            Self::Apache => Some("Apache"),
        }
    }

    /// `PHP_SAPI` of the PHP that must answer; `None` where any will do.
    fn sapi(self) -> Option<&'static str> {
        match self {
            Self::Classic | Self::Worker => None,
            Self::Fpm | Self::FpmKept => Some("fpm-fcgi"),
            Self::Apache => Some("apache2handler"),
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Classic => "Regent classic",
            Self::Worker => "Regent worker",
            Self::Fpm => "nginx + php-fpm",
            Self::FpmKept => "nginx + php-fpm, kept",
            Self::Apache => "Apache + mod_php",
        })
    }
}

/// What the servers of a run have in common.
#[derive(Debug)]
pub struct Plan<'a> {
    pub site: &'a Site,
    /// PHP threads of Regent and children of php-fpm.
    pub threads: u16,
    pub most_connections: u32,
    /// Set when a chosen server is Regent.
    pub regent: Option<PathBuf>,
    pub interrupt: &'a Interrupt,
}

/// A running server that was found to be the intended one.
#[derive(Debug)]
pub struct Server {
    pub kind: ServerKind,
    pub port: u16,
    /// The URL path that is measured.
    pub path: &'static str,
    /// Bytes on the wire of the right answer.
    pub answer_bytes: u64,
    php: PhpInfo,
    parts: Parts,
}

/// A server for the published results.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub server: ServerKind,
    /// Name and version of each program.
    pub software: Vec<String>,
    pub php: PhpInfo,
    pub answer_bytes: u64,
    pub configuration: Vec<ConfigurationFile>,
}

/// What the PHP behind a server says of itself (info.php of the site).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpInfo {
    pub php: String,
    pub sapi: String,
    pub thread_safe: bool,
    pub opcache: bool,
    pub jit: bool,
    pub validate_timestamps: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ConfigurationFile {
    pub name: String,
    pub text: String,
}

/// What starting a server yields, before it is checked.
#[derive(Debug)]
struct Parts {
    port: u16,
    path: &'static str,
    daemons: Vec<Daemon>,
    software: Vec<String>,
    configuration: Vec<ConfigurationFile>,
}

/// Starts a server and checks that it is the right one, with the right body and settings.
pub fn start(kind: ServerKind, plan: &Plan) -> Result<Server> {
    let parts = match kind {
        ServerKind::Classic | ServerKind::Worker => regent::start(kind, plan),
        ServerKind::Fpm => fpm::start(Upstream::Fresh, plan),
        ServerKind::FpmKept => fpm::start(Upstream::Kept, plan),
        ServerKind::Apache => apache::start(plan),
    }
    .with_context(|| format!("{kind} could not be started"))?;
    let php = ask_php(kind, &parts).with_context(|| format!("{kind} is not as intended"))?;
    let mut server = Server { kind, port: parts.port, path: parts.path, answer_bytes: 0, php, parts };
    server.answer_bytes = server.check()?;
    Ok(server)
}

impl Server {
    /// Checks that the programs run, that the listener is theirs, and that the answer is right; returns the size of
    /// the answer on the wire.
    pub fn check(&mut self) -> Result<u64> {
        self.check_answer().with_context(|| format!("{} is not as intended", self.kind))
    }

    /// Process ids of the programs: everything else of the server is in their groups or descends from them.
    pub fn leaders(&self) -> Vec<i32> {
        self.parts.daemons.iter().map(Daemon::leader).collect()
    }

    pub fn describe(&self) -> Description {
        Description {
            server: self.kind,
            software: self.parts.software.clone(),
            php: self.php.clone(),
            answer_bytes: self.answer_bytes,
            configuration: self.parts.configuration.clone(),
        }
    }

    fn check_answer(&mut self) -> Result<u64> {
        for daemon in &mut self.parts.daemons {
            daemon.check_alive()?;
        }
        let family = procfs::family(&self.leaders());
        ensure!(
            procfs::listener_belongs_to(self.port, &family),
            "port {} is held by another program; run again",
            self.port
        );
        let answer = probe::get(self.port, self.path)?;
        ensure!(answer.status == 200, "{} answers {}: {}", self.path, answer.status, start_of(&answer.body));
        ensure!(answer.body == BODY, "{} has the wrong body: {}", self.path, start_of(&answer.body));
        if let Some(banner) = self.kind.banner() {
            ensure!(answer.server.starts_with(banner), "the Server header is {:?}", answer.server);
        }
        Ok(answer.wire_bytes)
    }
}

fn ask_php(kind: ServerKind, parts: &Parts) -> Result<PhpInfo> {
    let answer = probe::get(parts.port, INFO_PATH)?;
    let info: PhpInfo = serde_json::from_str(&answer.body)
        .with_context(|| format!("{INFO_PATH} answers {}: {}", answer.status, start_of(&answer.body)))?;
    ensure!(info.opcache, "its opcache is off; its php.ini must load it (zend_extension = opcache)");
    ensure!(!info.jit, "its JIT is on, which no other server of this run has");
    match kind.sapi() {
        Some(sapi) if info.sapi != sapi => bail!("its PHP is {:?} instead of {sapi:?}", info.sapi),
        _ => Ok(info),
    }
}

fn start_of(body: &str) -> String {
    body.chars().take(300).collect()
}

/// A port that was free a moment ago; the check of the listener's owner notices a thief.
fn free_port() -> Result<u16> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free on 127.0.0.1")?;
    Ok(socket.local_addr()?.port())
}

/// Writes a configuration file and keeps its text for the results.
fn configure(site: &Site, directory: &Path, name: &str, text: &str) -> Result<(PathBuf, ConfigurationFile)> {
    let path = directory.join(name);
    fs::write(&path, text)?;
    Ok((path, ConfigurationFile { name: name.to_owned(), text: site.anonymize(text) }))
}

/// The unprivileged user that the peers' workers run as, when the bench runs as root.
fn worker_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("www-data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_php_is_read() {
        let json = r#"{"php":"8.2.35","sapi":"fpm-fcgi","thread_safe":false,"opcache":true,"jit":false,
                       "validate_timestamps":true}"#;
        let info: PhpInfo = serde_json::from_str(json).expect("valid");
        assert_eq!((info.php.as_str(), info.opcache), ("8.2.35", true));
    }

    #[test]
    fn configuration_is_kept_without_the_work_directory() {
        let site = Site::create().expect("a directory");
        let text = format!("root {};", site.document_root().display());
        let (path, kept) = configure(&site, site.path(), "x.conf", &text).expect("written");
        assert_eq!(fs::read_to_string(path).expect("it exists"), text);
        assert_eq!((kept.name.as_str(), kept.text.as_str()), ("x.conf", "root WORK/site;"));
    }
}
