//! The PHP engine: a process that links libphp and runs PHP threads for the server.
//!
//! The server starts it with the file descriptors of [`regent_wire::control::descriptors`]; nobody calls it by hand.
//! It ends when its threads have drained, and at once when the server goes away.

mod ffi;
mod host;
mod ini;
mod php;
mod threads;
mod warmup;

use anyhow::Result;
use regent_engine_host::{Host, ThreadPool};
use regent_wire::control::Event;
use std::process::ExitCode;
use threads::Scripts;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-php: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Host { engine, start, reporter, orders } = Host::attach()?;
    php::start(&start, &reporter)?;
    ini::warn_of_unknown(&start.ini, &reporter);
    reporter.send(&Event::Started { version: php::version(), opcache: Some(php::opcache()) });
    let scripts = Scripts::new(start.pools, &reporter);
    let threads = ThreadPool::start(engine, start.threads, reporter, scripts);
    threads.follow(orders);
    threads.wait();
    php::stop();
    Ok(())
}
