//! What all generations of an engine have in common.

use crate::engine_client::EngineClients;
use crate::plan::EnginePlan;
use crate::pools::Pools;
use crate::program::Program;
use crate::queue_signal::QueueSignal;
use regent_wire::control::{Published, Purging, REFUSED};
use regent_wire::{EngineMemory, Region, RegionError};
use rustix::fd::OwnedFd;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The plan of an engine, and what its processes share.
pub(crate) struct Setup {
    pub plan: EnginePlan,
    pub program: Program,
    /// By I/O thread.
    pub doorbells: Vec<Arc<OwnedFd>>,
    pub pools: Arc<Pools>,
    pub queue_signal: Arc<QueueSignal>,
    pub clients: EngineClients,
    pub sinks: Sinks,
}

/// Where what scripts want of the server goes, beside the answers to their requests.
#[derive(Clone)]
pub struct Sinks {
    pub updates: UpdateSink,
    pub purges: PurgeSink,
}

/// Takes the updates that scripts publish. It must not block.
#[derive(Clone)]
pub struct UpdateSink(pub Arc<dyn Fn(Published) + Send + Sync>);

/// Takes the purges that scripts want, and wait for. It must not block.
#[derive(Clone)]
pub struct PurgeSink(pub Arc<dyn Fn(Purging, Answer) + Send + Sync>);

/// To a script that waits. Dropped, it is a refusal.
pub struct Answer {
    memory: Arc<EngineMemory>,
    thread: usize,
    number: u32,
    answer: u64,
}

/// Ends when no client of the engine is left on any I/O thread: all requests to it have ended, and no other can come.
pub(crate) type Users = mpsc::Receiver<Infallible>;

/// How far an engine has to come to count as started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartUntil {
    /// PHP runs, or the modules are loaded. Requests wait while workers boot.
    Running,
    /// Every thread takes requests: all workers have booted. An engine that needs longer than 30 s for that counts as started
    /// all the same; one whose workers do not boot does not start.
    Ready,
}

impl Answer {
    pub(crate) fn new(memory: &Arc<EngineMemory>, thread: u16, number: u32) -> Self {
        Self { memory: Arc::clone(memory), thread: thread.into(), number, answer: REFUSED }
    }

    pub fn give(mut self, answer: u64) {
        self.answer = answer;
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.memory.region().answer(self.thread, self.number, self.answer);
    }
}

impl Setup {
    /// Memory of a process, in which requests can be queued before it runs.
    pub fn new_memory(&self) -> Result<Arc<EngineMemory>, RegionError> {
        let region = Region::create(self.plan.geometry)?;
        for pool in 0..self.plan.geometry.pools as usize {
            region.tune(pool, self.plan.scheduling, 1, 0);
        }
        Ok(Arc::new(EngineMemory::new(region)))
    }
}
