//! Runs a server until it is told to stop.

use crate::addresses::{self, Scheme, Served};
use crate::log::{self, Log};
use anyhow::{Context, Result};
use regent_config::{Config, Listen};
use regent_server::{AccessLogs, EngineKind, Options, Running};
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Set to 1, it leaves the server open to debuggers, profilers and core dumps, and so to scripts.
const DUMPABLE: &str = "REGENT_DUMPABLE";

/// Serves until SIGINT or SIGTERM: then drains; a second one stops at once.
pub fn serve(config: Config) -> Result<()> {
    let log = log::start(&config.global.log)?;
    let served: Vec<_> = config.servers.iter().map(Served::new).collect();
    raise_descriptor_limit();
    close_memory();
    let options = Options { php: program(EngineKind::Php)?, native: program(EngineKind::Native)? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stops = Stops::new()?;
        let rotations = Rotations::new()?;
        let running = tokio::select! {
            running = regent_server::start(config, options) => running?,
            () = stops.next() => return Ok(()),
        };
        announce(&running, &served);
        tokio::spawn(follow(rotations, log, running.access_logs()));
        tokio::select! {
            () = stops.next() => {}
            () = running.stop_wanted() => tracing::info!("the admin API was asked to stop the server"),
        }
        tracing::info!("stopping: running requests are answered first; a second signal stops at once");
        tokio::select! {
            () = running.stop() => tracing::info!("stopped"),
            () = stops.next() => tracing::warn!("stopped at once"),
        }
        Ok(())
    })
}

/// The signals that stop a server.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("handling SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("handling SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signals that say that log files have been renamed: what nginx and php-fpm take for it, and the one that nearly
/// every other daemon does. So a terminal that hangs up does not end the server either.
struct Rotations {
    user: Signal,
    hangup: Signal,
}

impl Rotations {
    fn new() -> Result<Self> {
        Ok(Self {
            user: signal(SignalKind::user_defined1()).context("handling SIGUSR1")?,
            hangup: signal(SignalKind::hangup()).context("handling SIGHUP")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.user.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Opens the log files again after each rotation.
async fn follow(mut rotations: Rotations, log: Log, access_logs: AccessLogs) {
    loop {
        rotations.next().await;
        log.reopen();
        access_logs.reopen();
        tracing::info!("opening the log files again");
    }
}

fn announce(running: &Running, served: &[Served]) {
    for (address, served) in running.addresses().iter().zip(served) {
        match address {
            Listen::Tcp(address) => {
                tracing::info!(address = %address, "serving {}", served.urls(address).join(", "));
            }
            Listen::Unix(socket) => tracing::info!("serving the Unix socket {}", socket.path.display()),
        }
    }
    if let Some(address) = running.admin_addresses().first() {
        let url = addresses::local_url(Scheme::Http, address);
        tracing::info!(address = %address, "the dashboard and the admin API are at {url}");
    }
}

/// Each connection is a descriptor; the soft limit of most systems is 1,024.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// Keeps scripts, which run as the same user, from this process's memory and descriptors (`/proc/PID/mem`, ptrace(2)),
/// unless a developer wants to have a look. The kernel writes no core dump of such a process either.
fn close_memory() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if std::env::var_os(DUMPABLE).is_some_and(|value| value == "1") {
        tracing::warn!("{DUMPABLE}=1: scripts can read and change the memory of this process");
    } else if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "scripts can read and change the memory of this process");
    }
}

/// Beside this program, unless the environment names another.
fn program(engine: EngineKind) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(engine.variable()) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().context("finding this program's own path")?;
    Ok(own.with_file_name(engine.program()))
}
