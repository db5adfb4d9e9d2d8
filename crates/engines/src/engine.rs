//! All that there is once for each kind of engine: memory, pools, the way of the I/O threads to it, a supervisor.

use crate::engine_client::{ClientStart, EngineClients};
use crate::error::EngineError;
use crate::plan::{EnginePlan, PoolPlan};
use crate::pools::Pools;
use crate::setup::Setup;
use crate::supervisor::{Supervisor, SupervisorHandle};
use regent_config::PhpGlobal;
use regent_metrics::Registry;
use regent_wire::{EngineMemory, RegionError};
use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// An engine that is about to start, and memory in which requests can be queued until then.
pub struct Engine {
    setup: Setup,
    memory: Arc<EngineMemory>,
}

/// What the admin API needs of an engine that runs.
pub struct EngineControl {
    pub supervisor: SupervisorHandle,
    pub pools: Arc<Pools>,
    pub plans: Vec<PoolPlan>,
    pub clients: EngineClients,
}

impl Engine {
    /// `rules`: bounds and lanes, which all engines have in common. Also returns what each I/O thread needs for its client
    /// of the engine.
    pub fn new(
        plan: EnginePlan,
        program: PathBuf,
        registry: &Arc<Registry>,
        rules: &PhpGlobal,
    ) -> Result<(Self, Vec<ClientStart>), EngineError> {
        let io_threads = plan.geometry.io_threads;
        let doorbells = (0..io_threads).map(|_| doorbell()).collect::<Result<Vec<_>, _>>()?;
        let (clients, commands) = EngineClients::new(plan.kind, io_threads);
        let pools = Pools::new(&plan.pools, Arc::clone(registry), rules);
        let setup = Setup { plan, program, doorbells, pools, queue_signal: Arc::default(), clients };
        let memory = setup.new_memory()?;
        let starts = commands.into_iter().enumerate().map(|(index, commands)| ClientStart {
            kind: setup.plan.kind,
            index,
            slots: setup.plan.geometry.slots_per_io as usize,
            memory: Arc::clone(&memory),
            pools: Arc::clone(&setup.pools),
            queue_signal: Arc::clone(&setup.queue_signal),
            doorbell: Arc::clone(&setup.doorbells[index]),
            commands,
        });
        let starts = starts.collect();
        Ok((Self { setup, memory }, starts))
    }

    /// Starts the first process; it runs when this returns.
    pub async fn start(self) -> Result<(Supervisor, EngineControl), EngineError> {
        let pools = Arc::clone(&self.setup.pools);
        let (plans, clients) = (self.setup.plan.pools.clone(), self.setup.clients.clone());
        let supervisor = Supervisor::start(self.setup, self.memory).await?;
        let control = EngineControl { supervisor: supervisor.handle(), pools, plans, clients };
        Ok((supervisor, control))
    }
}

fn doorbell() -> Result<Arc<OwnedFd>, EngineError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let made = rustix::event::eventfd(0, flags)
        .map_err(|error| RegionError::System { step: "given a doorbell", source: error.into() })?;
    Ok(Arc::new(made))
}
