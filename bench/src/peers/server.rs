//! A running server that was found to be the intended one.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::{ConfigurationFile, Contender, Parts, addresses};
use crate::probe;
use crate::procfs;
use crate::site::Script;
use crate::supervise::Daemon;

/// Ends with this value.
#[derive(Debug)]
pub struct Server {
    contender: Contender,
    label: String,
    php: Option<PhpInfo>,
    hello_bytes: u64,
    parts: Parts,
}

/// A server for the published results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub server: Contender,
    /// For legends and tables.
    pub label: String,
    /// Name and version of each program.
    pub software: Vec<String>,
    /// `None` of a server that answers without PHP.
    pub php: Option<PhpInfo>,
    /// Of an answer of the hello script, on the wire.
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

impl Server {
    /// Checks the programs that were started, their PHP if they have one, and the answer of every script.
    pub(super) fn inspect(contender: Contender, label: String, mut parts: Parts) -> Result<Self> {
        let (php, hello_bytes) =
            inspect(&mut parts).with_context(|| format!("{label} is not as intended"))?;
        Ok(Self { contender, label, php, hello_bytes, parts })
    }

    pub fn contender(&self) -> &Contender {
        &self.contender
    }

    /// For legends and messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Checks that the programs run, that the listener is theirs, and that the answer is right; returns the size of
    /// the answer of the hello script on the wire.
    pub fn check(&mut self) -> Result<u64> {
        check(&mut self.parts).with_context(|| format!("{} is not as intended", self.label))
    }

    /// The size of the right answer of the hello script on the wire, when the server was started.
    pub fn hello_bytes(&self) -> u64 {
        self.hello_bytes
    }

    /// The first of the addresses.
    pub fn address(&self) -> SocketAddr {
        addresses(self.parts.port, 1)[0]
    }

    /// At most `most` of the loopback addresses that the server listens on, at least one. Each has a listen queue of
    /// its own.
    pub fn addresses(&self, most: u16) -> Vec<SocketAddr> {
        let number = u8::try_from(most).unwrap_or(u8::MAX).clamp(1, self.parts.addresses);
        addresses(self.parts.port, number)
    }

    /// The path to request for a script, to which a query may be added; an error when the server lacks the script.
    pub fn target(&self, script: Script) -> Result<String> {
        self.parts
            .paths
            .of(script)
            .with_context(|| format!("{} has no script {script}: its description names no path", self.label))
    }

    /// Process ids of the programs: everything else of the server is in their groups or descends from them.
    pub fn leaders(&self) -> Vec<i32> {
        self.parts.daemons.iter().map(Daemon::leader).collect()
    }

    /// Counts the threads or processes that run PHP now, for a thread that watches the server; `None` where that
    /// cannot be seen from outside.
    pub fn php_thread_counter(&self) -> impl Fn() -> Option<u32> + Send + 'static {
        let daemon = self.parts.daemons.last().expect("invariant: a server is at least one program");
        let (leader, threads) = (daemon.leader(), self.parts.php_threads.clone());
        move || threads.as_ref().map(|threads| threads.count(leader))
    }

    pub fn describe(&self) -> Description {
        Description {
            server: self.contender.clone(),
            label: self.label.clone(),
            software: self.parts.software.clone(),
            php: self.php.clone(),
            answer_bytes: self.hello_bytes,
            configuration: self.parts.configuration.clone(),
        }
    }
}

fn inspect(parts: &mut Parts) -> Result<(Option<PhpInfo>, u64)> {
    let php = match ask_php(parts) {
        Ok(php) => php,
        // A program that has ended meanwhile says more than the connection that it refused.
        Err(error) => return check_alive(parts).and(Err(error)),
    };
    for script in Script::ALL {
        check_script(parts, script)?;
    }
    Ok((php, check(parts)?))
}

fn check(parts: &mut Parts) -> Result<u64> {
    check_alive(parts)?;
    check_listener(parts)?;
    check_script(parts, Script::Hello)
}

fn check_alive(parts: &mut Parts) -> Result<()> {
    parts.daemons.iter_mut().try_for_each(Daemon::check_alive)
}

fn check_listener(parts: &Parts) -> Result<()> {
    let leaders: Vec<i32> = parts.daemons.iter().map(Daemon::leader).collect();
    ensure!(
        procfs::listener_belongs_to(parts.port, &procfs::family(&leaders)),
        "port {} is held by another program; run again",
        parts.port
    );
    Ok(())
}

/// Asks for a script; returns the size of the answer on the wire, 0 when the server lacks the script.
fn check_script(parts: &Parts, script: Script) -> Result<u64> {
    let Some(path) = parts.paths.of(script) else { return Ok(0) };
    let trial = script.trial();
    let target = format!("{path}{}", trial.query);
    let address = addresses(parts.port, 1)[0];
    let answer = match &trial.body {
        Some(body) => probe::post(address, &target, body)?,
        None => probe::get(address, &target)?,
    };
    ensure!(answer.status == 200, "{target} answers {}: {}", answer.status, start_of(&answer.body));
    ensure!(answer.body == trial.answer, "{target} has the wrong body: {}", start_of(&answer.body));
    if let Some(banner) = &parts.banner {
        ensure!(answer.server.starts_with(banner), "the Server header is {:?}", answer.server);
    }
    Ok(answer.wire_bytes)
}

fn ask_php(parts: &Parts) -> Result<Option<PhpInfo>> {
    let Some(path) = &parts.paths.info else { return Ok(None) };
    let answer = probe::get(addresses(parts.port, 1)[0], path)?;
    let info: PhpInfo = serde_json::from_str(&answer.body)
        .with_context(|| format!("{path} answers {}: {}", answer.status, start_of(&answer.body)))?;
    ensure!(info.opcache, "its opcache is off; its php.ini must load it (zend_extension = opcache)");
    ensure!(!info.jit, "its JIT is on, which no other server of this run has");
    match &parts.sapi {
        Some(sapi) if info.sapi != *sapi => bail!("its PHP is {:?} instead of {sapi:?}", info.sapi),
        _ => Ok(Some(info)),
    }
}

fn start_of(body: &str) -> String {
    body.chars().take(300).collect()
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
}
