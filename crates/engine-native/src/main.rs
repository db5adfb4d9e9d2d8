//! The engine for compiled modules: a process that loads them and runs their handlers for the server.
//!
//! The server starts it with the file descriptors of [`regent_wire::control::descriptors`]; nobody calls it by hand.
//! It ends when its threads have drained, and at once when the server goes away. A module that crashes takes this
//! process with it, and nothing else: the server starts the next.
#![forbid(unsafe_code)]

mod exchange;
mod services;

use anyhow::Result;
use regent_engine_host::{Host, Reporter, ThreadPool};
use regent_module_loader::{LogSink, ModulePlan, Modules, Plan};
use regent_wire::control::{Event, Start, Started};
use services::Services;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    regent_engine_host::allow_huge_pages();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-native: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Host { engine, start, reporter, orders } = Host::attach(Vec::new)?;
    let modules = match Modules::load(plan(&start), log_sink(&reporter)) {
        Ok(modules) => Arc::new(modules),
        Err(error) => {
            reporter.send(&Event::Failed { message: error.to_string() });
            return Err(error.into());
        }
    };
    let version = format!("native modules: {}", modules.description());
    reporter.send(&Event::Started(Started { version, opcache: None, library: None }));
    let threads = ThreadPool::start(engine, start.threads, reporter, Services::new(start.pools, &modules));
    threads.follow(orders);
    threads.wait();
    // The threads have let go of them: this cleans them up.
    drop(modules);
    Ok(())
}

/// A service is called as its pool.
fn plan(start: &Start) -> Plan {
    let modules = start.modules.iter().map(|module| ModulePlan {
        file: module.file.clone(),
        config: module.config.clone(),
        service: module
            .pool
            .and_then(|pool| start.pools.get(usize::from(pool)))
            .map(|pool| pool.name.clone()),
    });
    Plan { modules: modules.collect() }
}

/// Lines of modules go to the server's log.
fn log_sink(reporter: &Arc<Reporter>) -> LogSink {
    let reporter = Arc::clone(reporter);
    Arc::new(move |level, message| {
        reporter.log(level as u8, message.as_bytes(), b"");
    })
}
