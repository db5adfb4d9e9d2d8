//! All that there is once for each kind of engine: memory, pools, the way of the I/O threads to it, a supervisor.

use crate::StartError;
use crate::link::{LinkHandles, LinkStart};
use crate::plan::{PoolPlan, StackPlan};
use crate::pools::Pools;
use crate::pressure::Pressure;
use crate::supervisor::{self, EngineError, Handle, Recipe, Supervisor};
use regent_config::PhpGlobal;
use regent_metrics::Registry;
use regent_wire::{Backend, RegionError};
use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Memory in which requests can be queued, before there is an engine.
pub(crate) struct Stack {
    plan: StackPlan,
    backend: Arc<Backend>,
    /// By I/O thread.
    doorbells: Vec<Arc<OwnedFd>>,
    pools: Arc<Pools>,
    pressure: Arc<Pressure>,
}

/// What the admin API needs of a stack that runs.
pub(crate) struct StackControl {
    pub supervisor: Handle,
    pub pools: Arc<Pools>,
    pub plans: Vec<PoolPlan>,
    pub links: LinkHandles,
}

impl Stack {
    /// `rules`: bounds and lanes, which all engines have in common.
    pub fn new(plan: StackPlan, registry: &Arc<Registry>, rules: &PhpGlobal) -> Result<Self, StartError> {
        let io_threads = plan.geometry.io_threads;
        Ok(Self {
            backend: supervisor::new_backend(plan.geometry, plan.scheduling).map_err(EngineError::Memory)?,
            doorbells: (0..io_threads).map(|_| doorbell()).collect::<Result<_, _>>()?,
            pools: Pools::new(&plan.pools, Arc::clone(registry), rules),
            pressure: Arc::default(),
            plan,
        })
    }

    pub fn pools(&self) -> Arc<Pools> {
        Arc::clone(&self.pools)
    }

    /// What an I/O thread needs for its link.
    pub fn link(&self, io_thread: usize) -> LinkStart {
        LinkStart {
            kind: self.plan.kind,
            index: io_thread,
            slots: self.plan.geometry.slots_per_io as usize,
            backend: Arc::clone(&self.backend),
            pressure: Arc::clone(&self.pressure),
            doorbell: Arc::clone(&self.doorbells[io_thread]),
        }
    }

    /// Starts the first engine; it runs when this returns.
    pub async fn start(
        self,
        program: PathBuf,
        links: LinkHandles,
    ) -> Result<(Supervisor, StackControl), EngineError> {
        let recipe = Recipe {
            kind: self.plan.kind,
            program,
            geometry: self.plan.geometry,
            start: self.plan.start,
            plans: self.plan.pools.clone(),
            pools: Arc::clone(&self.pools),
            scheduling: self.plan.scheduling,
            max_idle: self.plan.max_idle,
            pressure: self.pressure,
            doorbells: self.doorbells,
            links: links.clone(),
        };
        let supervisor = Supervisor::start(recipe, self.backend).await?;
        let control = StackControl {
            supervisor: supervisor.handle(),
            pools: self.pools,
            plans: self.plan.pools,
            links,
        };
        Ok((supervisor, control))
    }
}

fn doorbell() -> Result<Arc<OwnedFd>, EngineError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let made = rustix::event::eventfd(0, flags)
        .map_err(|error| RegionError::System { step: "given a doorbell", source: error.into() })?;
    Ok(Arc::new(made))
}
