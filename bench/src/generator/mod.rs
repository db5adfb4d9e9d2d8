//! The load generator: sends the requests of a [`plan::Plan`] and says what came of them.
//!
//! It is written for what the benchmarks ask and other generators do not do at once: open loops whose latency counts
//! from the scheduled moment, ramps of users, tens of thousands of connections, and answers that are checked to the
//! last byte. It is cheap, because it shares its machine with the servers under test: one thread, sockets that are
//! registered with epoll once, and no allocation for a request.

pub mod command;
pub mod histogram;
pub mod outcome;
pub mod plan;
pub mod process;

mod chunked;
mod connection;
mod deadlines;
mod descriptors;
mod engine;
mod exchange;
mod poller;
mod raw_log;
mod request;
mod response;
mod schedule;
mod table;
mod tally;
mod target;
mod turns;

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Result, ensure};

use crate::interrupt::Interrupt;
use engine::Engine;
use outcome::Outcome;
use plan::Plan;

/// Runs the plan in this thread, to its end. Writes a line for each request to `raw_log`.
///
/// Requests that fail are part of the outcome. An error is: a plan that makes no sense or whose targets are not
/// loopback addresses, a limit of open files that is too low for it, a raw log that cannot be written, an interrupt.
pub fn run(plan: &Plan, raw_log: Option<&Path>, interrupt: &Interrupt) -> Result<Outcome> {
    ensure!(!plan.targets.is_empty(), "the plan has no targets");
    for target in &plan.targets {
        ensure!(
            target.ip().is_loopback(),
            "{target} is not a loopback address: this tool loads only its own machine"
        );
    }
    ensure!(!plan.timeout.is_zero(), "a time-out of 0 leaves no time for an answer");
    let engine = Engine::new(plan, raw_log, interrupt)?;
    descriptors::provide(engine.most_connections())?;
    engine.run()
}
