//! What all generations of an engine have in common.

use crate::engine_client::EngineClients;
use crate::plan::EnginePlan;
use crate::pools::Pools;
use crate::queue_signal::QueueSignal;
use regent_wire::{EngineMemory, Region, RegionError};
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// The plan of an engine, and what its processes share.
pub(crate) struct Setup {
    pub plan: EnginePlan,
    pub program: PathBuf,
    /// By I/O thread.
    pub doorbells: Vec<Arc<OwnedFd>>,
    pub pools: Arc<Pools>,
    pub queue_signal: Arc<QueueSignal>,
    pub clients: EngineClients,
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
