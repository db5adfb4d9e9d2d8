//! What all generations of an engine have in common.

use crate::engine_client::EngineClients;
use crate::plan::EnginePlan;
use crate::pools::Pools;
use crate::queue_signal::QueueSignal;
use regent_wire::control::Published;
use regent_wire::{EngineMemory, Region, RegionError};
use rustix::fd::OwnedFd;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The plan of an engine, and what its processes share.
pub(crate) struct Setup {
    pub plan: EnginePlan,
    pub program: PathBuf,
    /// By I/O thread.
    pub doorbells: Vec<Arc<OwnedFd>>,
    pub pools: Arc<Pools>,
    pub queue_signal: Arc<QueueSignal>,
    pub clients: EngineClients,
    pub updates: UpdateSink,
}

/// Takes the updates that scripts publish. It must not block.
#[derive(Clone)]
pub struct UpdateSink(pub Arc<dyn Fn(Published) + Send + Sync>);

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
