//! All that there is once for each kind of engine: memory, pools, the way of the I/O threads to it, a supervisor.

use crate::engine_client::{ClientStart, EngineClients};
use crate::error::EngineError;
use crate::plan::{EnginePlan, PoolPlan};
use crate::pools::Pools;
use crate::program::Program;
use crate::setup::{Setup, Sinks, StartUntil, Users};
use crate::supervisor::{Supervisor, SupervisorHandle};
use regent_metrics::Registry;
use regent_wire::{EngineMemory, RegionError};
use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An engine that is about to start, and memory in which requests can be queued until then.
pub struct Engine {
    setup: Setup,
    memory: Arc<EngineMemory>,
    users: Users,
}

/// What the admin API needs of an engine that runs.
pub struct EngineControl {
    pub supervisor: SupervisorHandle,
    pub pools: Arc<Pools>,
    pub plans: Vec<PoolPlan>,
    /// Of all pools together: what one does not have another may.
    pub most_threads: usize,
    pub clients: EngineClients,
}

impl Engine {
    /// Also returns what each I/O thread needs for its client of the engine.
    pub fn new(
        plan: EnginePlan,
        mut program: Program,
        registry: &Arc<Registry>,
        sinks: Sinks,
    ) -> Result<(Self, Vec<ClientStart>), EngineError> {
        let io_threads = plan.geometry.io_threads;
        if let Some(file) = &plan.program {
            program.file.clone_from(file);
        }
        let doorbells = (0..io_threads).map(|_| doorbell()).collect::<Result<Vec<_>, _>>()?;
        let (clients, commands) = EngineClients::new(plan.kind, io_threads);
        let pools = Pools::new(&plan.pools, Arc::clone(registry), &plan.rules);
        let setup = Setup { plan, program, doorbells, pools, queue_signal: Arc::default(), clients, sinks };
        let memory = setup.new_memory()?;
        let (user, users) = mpsc::channel(1);
        let starts = commands.into_iter().enumerate().map(|(index, commands)| ClientStart {
            kind: setup.plan.kind,
            index,
            slots: setup.plan.geometry.slots_per_io as usize,
            memory: Arc::clone(&memory),
            pools: Arc::clone(&setup.pools),
            queue_signal: Arc::clone(&setup.queue_signal),
            doorbell: Arc::clone(&setup.doorbells[index]),
            commands,
            bounds: setup.plan.rules.bounds,
            user: user.clone(),
        });
        let starts = starts.collect();
        Ok((Self { setup, memory, users }, starts))
    }

    /// Starts the first process, which has come so far when this returns.
    pub async fn start(self, until: StartUntil) -> Result<(Supervisor, EngineControl), EngineError> {
        let pools = Arc::clone(&self.setup.pools);
        let (plans, clients) = (self.setup.plan.pools.clone(), self.setup.clients.clone());
        let most_threads = self.setup.plan.most_threads;
        let supervisor = Supervisor::start(self.setup, self.memory, self.users, until).await?;
        let control = EngineControl { supervisor: supervisor.handle(), pools, plans, most_threads, clients };
        Ok((supervisor, control))
    }
}

fn doorbell() -> Result<Arc<OwnedFd>, EngineError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let made = rustix::event::eventfd(0, flags)
        .map_err(|error| RegionError::System { step: "given a doorbell", source: error.into() })?;
    Ok(Arc::new(made))
}
