//! The pools of native services: one for each, in the order of their ids.

use super::PoolPlan;
use crate::kind::EngineKind;
use regent_config::{NativeGlobal, NativeService};
use regent_wire::MAX_THREADS;
use regent_wire::control::{ModuleStart, PoolStart};

/// A service that says nothing begins with a thread for each core and grows as PHP's pools do; one that says how many
/// threads it has, has no more.
pub(super) fn pools(services: &[NativeService], cores: usize) -> Vec<PoolPlan> {
    let default = u16::try_from(cores).unwrap_or(u16::MAX);
    let all: usize = services.iter().map(|service| usize::from(least(service, default))).sum();
    let pool = |service: &NativeService| {
        let least = least(service, default);
        let room = MAX_THREADS.saturating_sub(all - usize::from(least));
        let wanted = service.max_threads.or(service.threads).unwrap_or(u16::MAX);
        PoolPlan {
            name: service.name.clone(),
            kind: EngineKind::Native,
            worker: None,
            least,
            most: wanted.min(u16::try_from(room).unwrap_or(u16::MAX)).max(least),
            request_timeout: None,
            max_connections: service.max_connections,
        }
    };
    services.iter().map(pool).collect()
}

/// Threads of all services together.
pub(super) fn most_threads(pools: &[PoolPlan]) -> usize {
    let sum = |threads: fn(&PoolPlan) -> u16| pools.iter().map(|pool| usize::from(threads(pool))).sum();
    let (least, most): (usize, usize) = (sum(|pool| pool.least), sum(|pool| pool.most));
    most.min(MAX_THREADS).max(least)
}

pub(super) fn pool_starts(services: &[NativeService]) -> Vec<PoolStart> {
    let start = |service: &NativeService| PoolStart {
        name: service.name.clone(),
        max_requests: 0,
        max_memory: 0,
        max_age_ms: 0,
        worker: None,
    };
    services.iter().map(start).collect()
}

/// First what only others depend on, then what each service runs.
pub(super) fn module_starts(native: &NativeGlobal) -> Vec<ModuleStart> {
    let only_loaded = native.modules.iter().map(|module| ModuleStart {
        file: module.file.clone(),
        config: module.config.clone(),
        pool: None,
    });
    let services = native.services.iter().zip(0..).map(|(service, pool)| ModuleStart {
        file: service.file.clone(),
        config: service.config.clone(),
        pool: Some(pool),
    });
    only_loaded.chain(services).collect()
}

fn least(service: &NativeService, default: u16) -> u16 {
    service.threads.unwrap_or_else(|| default.min(service.max_threads.unwrap_or(default)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::Inline;

    fn service(threads: Option<u16>, max_threads: Option<u16>) -> NativeService {
        NativeService {
            name: "hello".into(),
            file: "/lib/libhello.so".into(),
            config: Vec::new(),
            threads,
            max_threads,
            max_connections: None,
            inline: Inline::default(),
        }
    }

    /// Least and most threads of each pool, on 4 cores.
    fn threads(services: &[NativeService]) -> Vec<(u16, u16)> {
        pools(services, 4).iter().map(|pool| (pool.least, pool.most)).collect()
    }

    #[test]
    fn a_service_begins_with_a_thread_a_core_and_grows_as_needed() {
        assert_eq!(threads(&[service(None, None)]), [(4, 1024)]);
        assert_eq!(threads(&[service(None, Some(2))]), [(2, 2)]);
        assert_eq!(threads(&[service(Some(3), None)]), [(3, 3)]);
        assert_eq!(threads(&[service(Some(3), Some(9))]), [(3, 9)]);
    }

    #[test]
    fn services_leave_each_other_what_they_begin_with() {
        let services = [service(Some(1000), None), service(None, None)];
        assert_eq!(threads(&services), [(1000, 1000), (4, 24)]);
        assert_eq!(most_threads(&pools(&services, 4)), 1024);
        let too_many = [service(Some(1000), None), service(Some(1000), None)];
        assert_eq!(most_threads(&pools(&too_many, 4)), 2000, "which is refused");
    }
}
