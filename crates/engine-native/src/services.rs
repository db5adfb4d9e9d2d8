//! What the threads do: each answers the requests of its pool by the module of its service.

use crate::exchange::{CopiedHead, SlotExchange};
use regent_engine_host::{Afterwards, EngineLoad, Job, Readiness, SchedPolicy};
use regent_module_loader::{Modules, ServiceId};
use regent_wire::EngineThread;
use regent_wire::control::PoolStart;
use std::sync::{Arc, Weak};

pub struct Services {
    /// By pool.
    services: Vec<Service>,
    /// A thread holds them while it runs, so that they are cleaned up when all have ended.
    modules: Weak<Modules>,
    load: Arc<EngineLoad>,
}

struct Service {
    name: String,
    /// `None`: the server has named no module for this pool, which gets no thread.
    id: Option<ServiceId>,
}

impl Services {
    pub fn new(pools: Vec<PoolStart>, modules: &Arc<Modules>) -> Self {
        let service = |pool: PoolStart| Service { id: modules.service(&pool.name), name: pool.name };
        Self {
            services: pools.into_iter().map(service).collect(),
            modules: Arc::downgrade(modules),
            load: EngineLoad::new(),
        }
    }
}

impl Job for Services {
    fn name(&self, pool: u16) -> Option<&str> {
        let service = self.services.get(usize::from(pool))?;
        service.id.map(|_| service.name.as_str())
    }

    fn run(&self, mut thread: EngineThread, mut readiness: Readiness) -> Afterwards {
        let service = self.services.get(thread.pool()).and_then(|service| service.id);
        let (Some(modules), Some(service)) = (self.modules.upgrade(), service) else {
            return Afterwards::End;
        };
        let mut scratch = modules.scratch();
        let mut sched_policy = SchedPolicy::new(Arc::clone(&self.load));
        let mut head = CopiedHead::default();
        readiness.announce();
        loop {
            let waiting_behind = thread.waiting().saturating_sub(1);
            let Some(request) = thread.next_request() else { return Afterwards::End };
            head.copy(&request);
            sched_policy.begin(waiting_behind, thread.started());
            modules.answer(service, &head.read(), &mut SlotExchange::new(&mut thread), &mut scratch);
            sched_policy.end(thread.release());
        }
    }
}
