//! The pools of PHP: how many threads classic requests and each worker have.

use super::PoolPlan;
use crate::error::EngineError;
use crate::kind::EngineKind;
use regent_config::{MaxThreads, PhpGlobal, Worker};
use regent_wire::MAX_THREADS;
use regent_wire::control::{PoolStart, WorkerStart};

/// The name of the classic pool in lists and metrics.
const CLASSIC: &str = "classic";

/// The classic pool, then one for each worker, in the order of their ids.
pub(super) fn pools(php: &PhpGlobal, cores: usize) -> Result<Vec<PoolPlan>, EngineError> {
    let default = u16::try_from(2 * cores).unwrap_or(u16::MAX);
    let in_workers: u16 =
        php.workers.iter().fold(0, |sum, worker| sum.saturating_add(worker_threads(worker, default)));
    let classic = classic_threads(php, default, in_workers)?;
    let total = limit(php, classic.saturating_add(in_workers));
    let classic_pool = PoolPlan {
        name: CLASSIC.into(),
        kind: EngineKind::Php,
        worker: None,
        least: classic,
        most: total.saturating_sub(in_workers).max(classic),
        request_timeout: php.request_timeout,
        max_connections: None,
    };
    let workers = php.workers.iter().map(|worker| {
        let least = worker_threads(worker, default);
        let beside = classic.saturating_add(in_workers) - least;
        let most = worker.max_threads.unwrap_or(u16::MAX).min(total.saturating_sub(beside)).max(least);
        PoolPlan {
            name: worker.name.clone(),
            kind: EngineKind::Php,
            worker: Some(worker.file.clone()),
            least,
            most,
            request_timeout: worker
                .request_timeout
                .map_or(php.request_timeout, |limit| (!limit.is_zero()).then_some(limit)),
            max_connections: None,
        }
    });
    Ok(std::iter::once(classic_pool).chain(workers).collect())
}

fn worker_threads(worker: &Worker, default: u16) -> u16 {
    worker.num.unwrap_or_else(|| default.min(worker.max_threads.unwrap_or(default)))
}

fn classic_threads(php: &PhpGlobal, default: u16, in_workers: u16) -> Result<u16, EngineError> {
    let total = match (php.num_threads, php.max_threads) {
        (Some(total), _) => total,
        (None, Some(MaxThreads::Fixed(most))) => default.max(in_workers.saturating_add(1)).min(most),
        (None, _) => default.max(in_workers.saturating_add(1)),
    };
    if total <= in_workers {
        return Err(EngineError::NoClassicThread { threads: total, workers: in_workers });
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

pub(super) fn most_threads(php: &PhpGlobal, pools: &[PoolPlan]) -> usize {
    let least = pools.iter().fold(0u16, |sum, pool| sum.saturating_add(pool.least));
    usize::from(limit(php, least).max(least))
}

pub(super) fn pool_starts(
    php: &PhpGlobal,
    warmup: impl Fn(&Worker) -> Vec<Vec<(String, String)>>,
) -> Vec<PoolStart> {
    let max_age_ms = u64::try_from(php.max_age.as_millis()).unwrap_or(u64::MAX);
    let classic = PoolStart {
        name: CLASSIC.into(),
        max_requests: php.max_requests,
        // PHP itself gives back what a script has allocated.
        max_memory: 0,
        max_age_ms,
        worker: None,
    };
    let workers = php.workers.iter().map(|worker| PoolStart {
        name: worker.name.clone(),
        max_requests: php.max_requests,
        max_memory: php.max_memory,
        max_age_ms,
        worker: Some(WorkerStart {
            file: worker.file.clone(),
            env: worker.env.clone(),
            max_consecutive_failures: worker.max_consecutive_failures,
            warmup: warmup(worker),
        }),
    });
    std::iter::once(classic).chain(workers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ThreadCounts;
    use regent_config::Worker;
    use std::time::Duration;

    fn worker(num: Option<u16>) -> Worker {
        Worker {
            name: "w".into(),
            file: "/w.php".into(),
            num,
            max_threads: None,
            env: Vec::new(),
            request_timeout: None,
            max_consecutive_failures: None,
            warmup: Vec::new(),
            watch: Vec::new(),
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
    fn a_worker_may_have_a_limit_of_its_own_or_none() {
        let second = Duration::from_secs(1);
        let limits = |all: Option<Duration>, own: Option<Duration>| {
            let mut php = PhpGlobal { request_timeout: all, ..php(None, &[Some(1)]) };
            php.workers[0].request_timeout = own;
            pools(&php, 4).unwrap().iter().map(|pool| pool.request_timeout).collect::<Vec<_>>()
        };
        assert_eq!(limits(None, None), [None, None]);
        assert_eq!(limits(Some(second), None), [Some(second), Some(second)]);
        assert_eq!(limits(Some(second), Some(2 * second)), [Some(second), Some(2 * second)]);
        assert_eq!(limits(Some(second), Some(Duration::ZERO)), [Some(second), None]);
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
    fn threads_of_all_pools_are_counted_together() {
        let counts =
            |php: &PhpGlobal| ThreadCounts::of(php, 4).map(|counts| (counts.least, counts.most)).unwrap();
        assert_eq!(counts(&php(Some(10), &[Some(4)])), (10, 10));
        assert_eq!(counts(&php(None, &[None])), (9, 1024));
        assert!(ThreadCounts::of(&php(Some(8), &[None]), 4).is_err());
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
}
