//! From a configuration to numbers: the threads, pools and sizes of each engine.

pub(crate) mod confinement;
mod native;
mod php;

use crate::error::EngineError;
use crate::kind::EngineKind;
use crate::rules::{AdmissionBounds, QueueRules};
use regent_config::{EngineUser, Global, PhpGlobal, Worker, timeout};
use regent_metrics::Serves;
use regent_wire::control::{ModuleStart, PoolStart, Start};
use regent_wire::{Geometry, MAX_PROCESSES, MAX_SLOTS_PER_IO, MAX_THREADS, Scheduling};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Bytes of a body ring: enough that neither side waits for the other at every turn, little enough that thousands
/// of slots are cheap.
const RING: u32 = 64 * 1024;
/// Room in a slot's head for what the server adds to the client's fields: variables of the request, `env`.
const HEAD_EXTRA: usize = 64 * 1024;
/// Bytes of a response's head beside its fields, with some to spare.
const FRAME_EXTRA: usize = 1024;

/// Numbers for threads that take the places of others that do not come back, until the next generation serves.
const SPARE_THREADS: usize = 16;

/// What does not come from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct ServerFacts {
    pub io_threads: usize,
    /// CPUs that the server may use.
    pub cores: usize,
    /// `SERVER_SOFTWARE`.
    pub software: &'static str,
}

/// What follows for the engines of one kind. Two configurations with equal plans can have the same engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EnginePlan {
    pub(crate) kind: EngineKind,
    pub(crate) geometry: Geometry,
    /// Threads that there may be, of all pools together.
    pub(crate) most_threads: usize,
    /// Processes that the threads are divided among.
    pub(crate) processes: u16,
    /// What a process is told, but for its threads.
    pub(crate) start: Start,
    /// As many as in `start`, in the same order.
    pub(crate) pools: Vec<PoolPlan>,
    pub(crate) scheduling: Scheduling,
    pub(crate) max_idle: Duration,
    /// Where slow requests are told of, if not in the server's log.
    pub(crate) slow_log: Option<PathBuf>,
    pub(crate) rules: QueueRules,
    /// Its program, if the configuration names one.
    pub(crate) program: Option<PathBuf>,
    /// Whom its processes run as; `None`: as the server.
    pub(crate) user: Option<EngineUser>,
}

/// Whom a pool serves, and how many threads it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPlan {
    /// Unique among the pools of all engines.
    pub name: String,
    pub kind: EngineKind,
    /// The worker's script; `None`: the classic pool, or that of a native service.
    pub worker: Option<PathBuf>,
    /// Threads at the beginning, and at least.
    pub least: u16,
    /// Threads that scaling may reach.
    pub most: u16,
    /// How long each of its requests may run, unless its route says something else.
    pub request_timeout: Option<Duration>,
    /// Requests that it may have at once, from their head to the last byte of their answer.
    pub max_connections: Option<u32>,
}

impl PoolPlan {
    /// Whether its threads run code that was loaded once.
    pub fn keeps_code(&self) -> bool {
        self.kind == EngineKind::Native || self.worker.is_some()
    }

    /// As metrics distinguish it.
    pub fn serves(&self) -> Serves {
        match (self.kind, &self.worker) {
            (EngineKind::Native, _) => Serves::Service,
            (EngineKind::Php, Some(file)) => Serves::Worker(file.clone()),
            (EngineKind::Php, None) => Serves::Classic,
        }
    }

    /// As metrics name it: FrankenPHP's label of a worker without a name of its own is the file's whole path.
    pub fn label(&self) -> String {
        let Some(file) = &self.worker else { return self.name.clone() };
        // The second one of a file.
        let (name, number) = match self.name.rsplit_once('#') {
            Some((name, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (name, &self.name[name.len()..])
            }
            _ => (self.name.as_str(), ""),
        };
        if ends_as_written(file, name) { format!("{}{number}", file.display()) } else { self.name.clone() }
    }
}

/// Whether the path is what was written, from some directory on: `./worker.php` and `../app/worker.php` are `/srv/app/worker.php`.
fn ends_as_written(path: &Path, written: &str) -> bool {
    let mut names = Vec::new();
    for component in Path::new(written).components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    !names.is_empty() && path.ends_with(PathBuf::from_iter(names))
}

impl EnginePlan {
    /// `warmup`: the requests of a worker's warm-up, each as the variables of `$_SERVER`.
    pub fn php(
        global: &Global,
        facts: ServerFacts,
        warmup: impl Fn(&Worker) -> Vec<Vec<(String, String)>>,
    ) -> Result<Self, EngineError> {
        let pools = php::pools(&global.php, facts.cores)?;
        let most = php::most_threads(&global.php, &pools);
        let starts = php::pool_starts(&global.php, warmup);
        Self::new(EngineKind::Php, global, facts, Parts { starts, modules: Vec::new(), pools, most })
    }

    /// `None`: there are no native services.
    pub fn native(global: &Global, facts: ServerFacts) -> Result<Option<Self>, EngineError> {
        if global.native.services.is_empty() {
            return Ok(None);
        }
        let pools = native::pools(&global.native.services, facts.cores);
        let most = native::most_threads(&pools);
        let starts = native::pool_starts(&global.native.services);
        let parts = Parts { starts, modules: native::module_starts(&global.native), pools, most };
        Self::new(EngineKind::Native, global, facts, parts).map(Some)
    }

    fn new(kind: EngineKind, global: &Global, facts: ServerFacts, parts: Parts) -> Result<Self, EngineError> {
        let Parts { starts, modules, pools, most } = parts;
        if most > MAX_THREADS {
            return Err(EngineError::TooManyThreads { kind, threads: most, most: MAX_THREADS });
        }
        Ok(Self {
            kind,
            geometry: geometry(
                global,
                facts.io_threads,
                pools.len(),
                (most + SPARE_THREADS).min(MAX_THREADS),
            ),
            most_threads: most,
            processes: match kind {
                EngineKind::Php => processes(global.php.engines, &pools),
                EngineKind::Native => 1,
            },
            start: Start {
                ini: global.php.written_php_ini(),
                software: facts.software.to_owned(),
                pools: starts,
                modules,
                slow_after_ms: match kind {
                    EngineKind::Php => {
                        global.php.slow_log.as_ref().map_or(0, |slow_log| milliseconds(slow_log.after))
                    }
                    EngineKind::Native => 0,
                },
                departed_after_ms: match (kind, global.php.departed_timeout) {
                    (EngineKind::Php, Some(after)) => milliseconds(after),
                    (EngineKind::Php, None) | (EngineKind::Native, _) => 0,
                },
                process: 0,
                threads: Vec::new(),
                confinement: confinement::of(&global.php.confine),
            },
            pools,
            scheduling: match global.php.scheduling {
                regent_config::Scheduling::Spread => Scheduling::Spread,
                regent_config::Scheduling::Pack => Scheduling::Pack,
            },
            max_idle: timeout(global.php.max_idle_time),
            slow_log: global.php.slow_log.as_ref().and_then(|slow_log| slow_log.file.clone()),
            rules: rules(&global.php),
            program: global.php.program.clone().filter(|_| kind == EngineKind::Php),
            user: global.php.user.clone(),
        })
    }
}

/// Threads of PHP that a configuration means, in all pools together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCounts {
    /// At the beginning, and at least.
    pub least: usize,
    /// That scaling may reach, if memory lets it.
    pub most: usize,
}

impl ThreadCounts {
    /// On a machine with so many CPUs.
    ///
    /// # Errors
    /// If the numbers of the configuration contradict each other.
    pub fn of(global: &PhpGlobal, cores: usize) -> Result<Self, EngineError> {
        let pools = php::pools(global, cores)?;
        let least = pools.iter().map(|pool| usize::from(pool.least)).sum();
        Ok(Self { least, most: php::most_threads(global, &pools) })
    }
}

/// What differs between the kinds of engines.
struct Parts {
    starts: Vec<PoolStart>,
    modules: Vec<ModuleStart>,
    pools: Vec<PoolPlan>,
    /// Threads of all pools together.
    most: usize,
}

/// One without a thread at the beginning would never say that it is ready.
fn processes(wanted: u16, pools: &[PoolPlan]) -> u16 {
    let threads: usize = pools.iter().map(|pool| usize::from(pool.least)).sum();
    wanted.min(u16::try_from(threads).unwrap_or(u16::MAX)).clamp(1, MAX_PROCESSES as u16)
}

/// At least one: 0 means never.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn rules(php: &PhpGlobal) -> QueueRules {
    let bounds = AdmissionBounds {
        max_wait_time: php.max_wait_time,
        max_queue: php.max_queue,
        deadline: php.deadline,
        retry: php.retry,
    };
    QueueRules { bounds, lanes: php.lanes.clone(), circuit: php.circuit }
}

fn geometry(global: &Global, io_threads: usize, pools: usize, threads: usize) -> Geometry {
    let head = (global.max_header_size * 2 + HEAD_EXTRA).next_multiple_of(4096);
    Geometry {
        io_threads: io_threads as u32,
        slots_per_io: MAX_SLOTS_PER_IO as u32,
        pools: pools as u32,
        threads: threads as u32,
        head_capacity: head.min(1 << 24) as u32,
        request_capacity: RING,
        response_capacity: RING,
        frame_capacity: (global.php.max_response_header + FRAME_EXTRA) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_a_relative_path_was_named_by_that_in_metrics() {
        let label = |name: &str| {
            let worker = Some(PathBuf::from("/srv/app/public/worker.php"));
            let (kind, request_timeout, max_connections) = (EngineKind::Php, None, None);
            PoolPlan { name: name.into(), kind, worker, least: 1, most: 1, request_timeout, max_connections }
                .label()
        };
        for written in [
            "worker.php",
            "./worker.php",
            "public/worker.php",
            "../app/public/worker.php",
            "./lib/../worker.php",
            "/srv/app/public/worker.php",
        ] {
            assert_eq!(label(written), "/srv/app/public/worker.php", "{written}");
        }
        assert_eq!(label("./worker.php#2"), "/srv/app/public/worker.php#2");
        for named in ["api", "shop#1x", ".", ""] {
            assert_eq!(label(named), named);
        }
    }
}
