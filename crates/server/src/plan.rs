//! From a configuration to numbers: threads, pools, sizes.

use crate::StartError;
use crate::php::PhpLimits;
use crate::variables::SOFTWARE;
use regent_config::{Config, Global, PhpGlobal, Worker};
use regent_http::Settings;
use regent_wire::control::{PoolStart, Start, WorkerStart};
use regent_wire::{Geometry, MAX_SLOTS_PER_IO, MAX_THREADS};
use std::thread::available_parallelism;

/// Bytes of a body ring: enough that neither side waits for the other at every turn, little enough that thousands
/// of slots are cheap.
const RING: u32 = 64 * 1024;
/// Room in a slot's head for what the server adds to the client's fields: variables of the request, `env`.
const HEAD_EXTRA: usize = 64 * 1024;

/// Everything that follows from the configuration before anything is started.
pub(crate) struct Plan {
    pub io_threads: usize,
    pub geometry: Geometry,
    pub start: Start,
    pub settings: Settings,
    pub limits: PhpLimits,
}

impl Plan {
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let cores = available_parallelism().map_or(1, usize::from);
        let global = &config.global;
        let io_threads = io_threads(cores);
        let pools = pools(&global.php, cores)?;
        let threads: usize = pools.iter().map(|pool| usize::from(pool.threads)).sum();
        if threads > MAX_THREADS {
            return Err(StartError::TooManyThreads { threads, most: MAX_THREADS });
        }
        Ok(Self {
            io_threads,
            geometry: geometry(global, io_threads, pools.len(), threads),
            start: Start { ini: global.php.php_ini.clone(), software: SOFTWARE.to_owned(), pools },
            settings: Settings {
                read_header: global.timeouts.read_header,
                idle: global.timeouts.idle,
                write: global.timeouts.write,
                max_header_size: global.limits.max_header_size,
            },
            limits: PhpLimits {
                read_body: global.timeouts.read_body,
                max_body_size: global.limits.max_body_size,
                max_wait_time: global.php.max_wait_time,
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
fn pools(php: &PhpGlobal, cores: usize) -> Result<Vec<PoolStart>, StartError> {
    let default = u16::try_from(2 * cores).unwrap_or(u16::MAX);
    let workers: Vec<PoolStart> =
        php.workers.iter().map(|worker| worker_pool(worker, php, default)).collect();
    let in_workers: u16 = workers.iter().fold(0, |sum, pool| sum.saturating_add(pool.threads));
    let classic = match php.num_threads {
        Some(total) if total <= in_workers => {
            return Err(StartError::NoClassicThread { num_threads: total, workers: in_workers });
        }
        Some(total) => total - in_workers,
        None => default.saturating_sub(in_workers).max(1),
    };
    let classic =
        PoolStart { name: "classic".into(), threads: classic, max_requests: php.max_requests, worker: None };
    Ok(std::iter::once(classic).chain(workers).collect())
}

fn worker_pool(worker: &Worker, php: &PhpGlobal, default: u16) -> PoolStart {
    PoolStart {
        name: worker.name.clone(),
        threads: worker.num.unwrap_or(default),
        max_requests: php.max_requests,
        worker: Some(WorkerStart {
            file: worker.file.clone(),
            env: worker.env.clone(),
            max_consecutive_failures: worker.max_consecutive_failures,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::Worker;

    fn php(num_threads: Option<u16>, workers: &[Option<u16>]) -> PhpGlobal {
        let worker = |num: &Option<u16>| Worker {
            name: "w".into(),
            file: "/w.php".into(),
            num: *num,
            env: Vec::new(),
            max_consecutive_failures: None,
        };
        PhpGlobal { num_threads, workers: workers.iter().map(worker).collect(), ..PhpGlobal::default() }
    }

    fn threads(php: &PhpGlobal) -> Vec<u16> {
        pools(php, 4).unwrap().iter().map(|pool| pool.threads).collect()
    }

    #[test]
    fn workers_that_take_all_threads_are_an_error() {
        let error = pools(&php(Some(8), &[None]), 4).unwrap_err().to_string();
        assert!(error.contains("num_threads 8"), "{error}");
    }

    #[test]
    fn without_configuration_there_are_two_threads_a_core() {
        assert_eq!(threads(&php(None, &[])), [8]);
    }

    #[test]
    fn workers_take_their_threads_from_the_total_but_leave_one() {
        assert_eq!(threads(&php(Some(10), &[Some(4)])), [6, 4]);
        assert_eq!(threads(&php(None, &[None])), [1, 8]);
    }

    #[test]
    fn four_cores_share_an_io_thread() {
        assert_eq!([1, 2, 4, 5, 8, 64].map(io_threads), [1, 1, 1, 2, 2, 16]);
    }
}
