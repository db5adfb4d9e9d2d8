//! From a configuration to numbers: threads, pools, sizes.

use crate::StartError;
use crate::gate::GateBounds;
use crate::php::PhpLimits;
use crate::variables::SOFTWARE;
use regent_config::{Config, Global, MaxThreads, PhpGlobal, Worker};
use regent_http::Settings;
use regent_wire::control::{PoolStart, Start, WorkerStart};
use regent_wire::{Geometry, MAX_SLOTS_PER_IO, MAX_THREADS, Scheduling};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

/// Bytes of a body ring: enough that neither side waits for the other at every turn, little enough that thousands
/// of slots are cheap.
const RING: u32 = 64 * 1024;
/// Room in a slot's head for what the server adds to the client's fields: variables of the request, `env`.
const HEAD_EXTRA: usize = 64 * 1024;
/// The name of the classic pool in lists and metrics.
pub(crate) const CLASSIC: &str = "classic";

/// Everything that follows from the configuration before anything is started.
pub(crate) struct Plan {
    pub io_threads: usize,
    pub geometry: Geometry,
    /// What an engine is told, but for its threads.
    pub start: Start,
    /// As many as in `start`, in the same order.
    pub pools: Vec<PoolPlan>,
    pub scheduling: Scheduling,
    pub max_idle: Duration,
    pub settings: Settings,
    pub limits: PhpLimits,
    pub bounds: GateBounds,
}

/// How many threads a pool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolPlan {
    pub name: String,
    /// `None`: the classic pool.
    pub worker: Option<PathBuf>,
    /// Threads at the beginning, and at least.
    pub least: u16,
    /// Threads that scaling may reach.
    pub most: u16,
}

impl PoolPlan {
    /// As metrics name it: FrankenPHP's label of a worker without a name of its own is the file's whole path.
    pub fn label(&self) -> String {
        match &self.worker {
            Some(file) if file.ends_with(&self.name) => file.display().to_string(),
            _ => self.name.clone(),
        }
    }
}

impl Plan {
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let cores = available_parallelism().map_or(1, usize::from);
        let global = &config.global;
        let io_threads = io_threads(cores);
        let pools = pools(&global.php, cores)?;
        let most = most_threads(&global.php, &pools);
        if most > MAX_THREADS {
            return Err(StartError::TooManyThreads { threads: most, most: MAX_THREADS });
        }
        Ok(Self {
            io_threads,
            geometry: geometry(global, io_threads, pools.len(), most),
            start: Start {
                ini: global.php.php_ini.clone(),
                software: SOFTWARE.to_owned(),
                pools: pool_starts(&global.php),
                threads: Vec::new(),
            },
            pools,
            scheduling: match global.php.scheduling {
                regent_config::Scheduling::Spread => Scheduling::Spread,
                regent_config::Scheduling::Pack => Scheduling::Pack,
            },
            max_idle: global.php.max_idle_time,
            settings: Settings {
                read_header: global.timeouts.read_header,
                idle: global.timeouts.idle,
                write: global.timeouts.write,
                max_header_size: global.limits.max_header_size,
            },
            limits: PhpLimits {
                read_body: global.timeouts.read_body,
                max_body_size: global.limits.max_body_size,
            },
            bounds: GateBounds {
                max_wait_time: global.php.max_wait_time,
                max_queue: global.php.max_queue,
                deadline: global.php.deadline,
            },
        })
    }
}

/// One I/O thread is enough for four cores; PHP needs the others.
fn io_threads(cores: usize) -> usize {
    cores.div_ceil(4)
}

fn geometry(global: &Global, io_threads: usize, pools: usize, threads: usize) -> Geometry {
    let head = (global.limits.max_header_size * 2 + HEAD_EXTRA).next_multiple_of(4096);
    Geometry {
        io_threads: io_threads as u32,
        slots_per_io: MAX_SLOTS_PER_IO as u32,
        pools: pools as u32,
        threads: threads as u32,
        head_capacity: head.min(1 << 24) as u32,
        request_capacity: RING,
        response_capacity: RING,
    }
}

/// The classic pool, then one for each worker, in the order of their ids.
fn pools(php: &PhpGlobal, cores: usize) -> Result<Vec<PoolPlan>, StartError> {
    let default = u16::try_from(2 * cores).unwrap_or(u16::MAX);
    let in_workers: u16 =
        php.workers.iter().fold(0, |sum, worker| sum.saturating_add(worker_threads(worker, default)));
    let classic = classic_threads(php, default, in_workers)?;
    let total = limit(php, classic.saturating_add(in_workers));
    let classic_pool = PoolPlan {
        name: CLASSIC.into(),
        worker: None,
        least: classic,
        most: total.saturating_sub(in_workers).max(classic),
    };
    let workers = php.workers.iter().map(|worker| {
        let least = worker_threads(worker, default);
        let beside = classic.saturating_add(in_workers) - least;
        let most = worker.max_threads.unwrap_or(u16::MAX).min(total.saturating_sub(beside)).max(least);
        PoolPlan { name: worker.name.clone(), worker: Some(worker.file.clone()), least, most }
    });
    Ok(std::iter::once(classic_pool).chain(workers).collect())
}

fn worker_threads(worker: &Worker, default: u16) -> u16 {
    worker.num.unwrap_or_else(|| default.min(worker.max_threads.unwrap_or(default)))
}

fn classic_threads(php: &PhpGlobal, default: u16, in_workers: u16) -> Result<u16, StartError> {
    let total = match (php.num_threads, php.max_threads) {
        (Some(total), _) => total,
        (None, Some(MaxThreads::Fixed(most))) => default.max(in_workers.saturating_add(1)).min(most),
        (None, _) => default.max(in_workers.saturating_add(1)),
    };
    if total <= in_workers {
        return Err(StartError::NoClassicThread { threads: total, workers: in_workers });
    }
    Ok(total - in_workers)
}

/// Threads of all pools together that scaling may reach, when they begin with so many.
fn limit(php: &PhpGlobal, least: u16) -> u16 {
    match (php.max_threads, php.num_threads) {
        (Some(MaxThreads::Fixed(most)), _) => most,
        (None, Some(_)) => least,
        (Some(MaxThreads::Auto), _) | (None, None) => MAX_THREADS as u16,
    }
}

fn most_threads(php: &PhpGlobal, pools: &[PoolPlan]) -> usize {
    let least = pools.iter().fold(0u16, |sum, pool| sum.saturating_add(pool.least));
    usize::from(limit(php, least).max(least))
}

fn pool_starts(php: &PhpGlobal) -> Vec<PoolStart> {
    let classic = PoolStart { name: CLASSIC.into(), max_requests: php.max_requests, worker: None };
    let workers = php.workers.iter().map(|worker| PoolStart {
        name: worker.name.clone(),
        max_requests: php.max_requests,
        worker: Some(WorkerStart {
            file: worker.file.clone(),
            env: worker.env.clone(),
            max_consecutive_failures: worker.max_consecutive_failures,
        }),
    });
    std::iter::once(classic).chain(workers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::Worker;

    fn worker(num: Option<u16>) -> Worker {
        Worker {
            name: "w".into(),
            file: "/w.php".into(),
            num,
            max_threads: None,
            env: Vec::new(),
            max_consecutive_failures: None,
        }
    }

    fn php(num_threads: Option<u16>, workers: &[Option<u16>]) -> PhpGlobal {
        let workers = workers.iter().map(|num| worker(*num)).collect();
        PhpGlobal { num_threads, workers, ..PhpGlobal::default() }
    }

    /// Least and most threads of each pool, on 4 cores.
    fn threads(php: &PhpGlobal) -> Vec<(u16, u16)> {
        pools(php, 4).unwrap().iter().map(|pool| (pool.least, pool.most)).collect()
    }

    #[test]
    fn workers_that_take_all_threads_are_an_error() {
        let error = pools(&php(Some(8), &[None]), 4).unwrap_err().to_string();
        assert!(error.contains("8 threads"), "{error}");
        let few = PhpGlobal { max_threads: Some(MaxThreads::Fixed(3)), ..php(None, &[Some(3)]) };
        assert!(pools(&few, 4).is_err());
    }

    #[test]
    fn without_configuration_there_are_two_threads_a_core_and_more_as_needed() {
        assert_eq!(threads(&php(None, &[])), [(8, 1024)]);
    }

    #[test]
    fn workers_take_their_threads_from_the_total_but_leave_one() {
        assert_eq!(threads(&php(Some(10), &[Some(4)])), [(6, 6), (4, 4)]);
        assert_eq!(threads(&php(None, &[None])), [(1, 1016), (8, 1023)]);
    }

    #[test]
    fn every_pool_may_grow_by_what_the_others_leave() {
        let most = |threads| Some(MaxThreads::Fixed(threads));
        let scaling = PhpGlobal { max_threads: most(20), ..php(Some(10), &[Some(4)]) };
        assert_eq!(threads(&scaling), [(6, 16), (4, 14)]);
        let mut bounded = scaling.clone();
        bounded.workers[0].max_threads = Some(5);
        assert_eq!(threads(&bounded), [(6, 16), (4, 5)]);
        assert_eq!(most_threads(&bounded, &pools(&bounded, 4).unwrap()), 20);
        assert_eq!(threads(&PhpGlobal { max_threads: most(3), ..php(None, &[]) }), [(3, 3)]);
    }

    #[test]
    fn four_cores_share_an_io_thread() {
        assert_eq!([1, 2, 4, 5, 8, 64].map(io_threads), [1, 1, 1, 2, 2, 16]);
    }
}
