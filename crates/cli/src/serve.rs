//! Runs a server until it is told to stop.

use crate::log;
use anyhow::{Context, Result};
use regent_config::Config;
use regent_server::{Options, Running};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Names the engine's program when it is not beside this one.
const ENGINE_VARIABLE: &str = "REGENT_ENGINE";
const ENGINE_PROGRAM: &str = "regent-php";

/// Serves until SIGINT or SIGTERM: then drains; a second one stops at once.
pub fn serve(config: Config) -> Result<()> {
    log::start(&config.global.log)?;
    raise_descriptor_limit();
    let options = Options { engine: engine_program()? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stops = Stops::new()?;
        let running = tokio::select! {
            running = regent_server::start(config, options) => running?,
            () = stops.next() => return Ok(()),
        };
        announce(&running);
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

fn announce(running: &Running) {
    for address in running.addresses() {
        tracing::info!(address = %address, "serving {}", url(address));
    }
    if let Some(address) = running.admin_addresses().first() {
        tracing::info!(address = %address, "the dashboard and the admin API are at {}", url(address));
    }
}

/// As a browser on this machine reaches it.
fn url(address: &SocketAddr) -> String {
    let host = if address.ip().is_unspecified() { "localhost".to_owned() } else { address.ip().to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    format!("http://{host}:{}", address.port())
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

fn engine_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(ENGINE_VARIABLE) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().context("finding this program's own path")?;
    Ok(own.with_file_name(ENGINE_PROGRAM))
}
