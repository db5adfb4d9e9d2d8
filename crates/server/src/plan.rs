//! From a configuration to numbers: threads, pools, sizes.

mod native;
mod php;
mod warmup;

use crate::StartError;
use crate::gate::GateBounds;
use crate::kind::EngineKind;
use crate::upload::{BodyLimits, Patience};
use crate::variables::SOFTWARE;
use regent_config::{Config, Global};
use regent_http::Settings;
use regent_metrics::Serves;
use regent_wire::control::{ModuleStart, PoolStart, Start};
use regent_wire::{Geometry, MAX_SLOTS_PER_IO, MAX_THREADS, Scheduling};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

/// Bytes of a body ring: enough that neither side waits for the other at every turn, little enough that thousands
/// of slots are cheap.
const RING: u32 = 64 * 1024;
/// Room in a slot's head for what the server adds to the client's fields: variables of the request, `env`.
const HEAD_EXTRA: usize = 64 * 1024;

/// Stands for a time-out that the configuration switches off with 0: long, and far from any overflow of a clock.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Everything that follows from the configuration before anything is started.
pub(crate) struct Plan {
    pub io_threads: usize,
    pub php: StackPlan,
    /// `None`: there are no native services.
    pub native: Option<StackPlan>,
    pub settings: Settings,
    pub bodies: BodyLimits,
    pub bounds: GateBounds,
}

/// A time-out of the configuration.
pub(crate) fn timeout(configured: Duration) -> Duration {
    if configured.is_zero() { NEVER } else { configured }
}

/// What follows for the engines of one kind.
#[derive(Clone)]
pub(crate) struct StackPlan {
    pub kind: EngineKind,
    pub geometry: Geometry,
    /// What an engine is told, but for its threads.
    pub start: Start,
    /// As many as in `start`, in the same order.
    pub pools: Vec<PoolPlan>,
    pub scheduling: Scheduling,
    pub max_idle: Duration,
}

/// Whom a pool serves, and how many threads it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolPlan {
    /// Unique among the pools of all engines.
    pub name: String,
    pub kind: EngineKind,
    /// The worker's script; `None`: the classic pool, or that of a native service.
    pub worker: Option<PathBuf>,
    /// Threads at the beginning, and at least.
    pub least: u16,
    /// Threads that scaling may reach.
    pub most: u16,
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
        Ok(Self {
            io_threads,
            php: php_stack(global, io_threads, cores)?,
            native: native_stack(global, io_threads, cores)?,
            settings: Settings {
                read_header: timeout(global.timeouts.read_header),
                idle: timeout(global.timeouts.idle),
                write: timeout(global.timeouts.write),
                max_header_size: global.limits.max_header_size,
            },
            bodies: body_limits(global),
            bounds: GateBounds {
                max_wait_time: global.php.max_wait_time,
                max_queue: global.php.max_queue,
                deadline: global.php.deadline,
            },
        })
    }
}

fn body_limits(global: &Global) -> BodyLimits {
    let patience =
        Patience { silence: timeout(global.timeouts.read_body), rate: global.limits.min_body_rate };
    BodyLimits { patience, size: global.limits.max_body_size }
}

fn php_stack(global: &Global, io_threads: usize, cores: usize) -> Result<StackPlan, StartError> {
    let pools = php::pools(&global.php, cores)?;
    let most = php::most_threads(&global.php, &pools);
    let parts = Parts { starts: php::pool_starts(&global.php), modules: Vec::new(), pools, most };
    stack(EngineKind::Php, global, io_threads, parts)
}

fn native_stack(global: &Global, io_threads: usize, cores: usize) -> Result<Option<StackPlan>, StartError> {
    if global.native.services.is_empty() {
        return Ok(None);
    }
    let pools = native::pools(&global.native.services, cores);
    let most = native::most_threads(&pools);
    let starts = native::pool_starts(&global.native.services);
    let parts = Parts { starts, modules: native::module_starts(&global.native), pools, most };
    stack(EngineKind::Native, global, io_threads, parts).map(Some)
}

/// What differs between the kinds of engines.
struct Parts {
    starts: Vec<PoolStart>,
    modules: Vec<ModuleStart>,
    pools: Vec<PoolPlan>,
    /// Threads of all pools together.
    most: usize,
}

fn stack(
    kind: EngineKind,
    global: &Global,
    io_threads: usize,
    parts: Parts,
) -> Result<StackPlan, StartError> {
    let Parts { starts, modules, pools, most } = parts;
    if most > MAX_THREADS {
        return Err(StartError::TooManyThreads { kind, threads: most, most: MAX_THREADS });
    }
    Ok(StackPlan {
        kind,
        geometry: geometry(global, io_threads, pools.len(), most),
        start: Start {
            ini: global.php.php_ini.clone(),
            software: SOFTWARE.to_owned(),
            pools: starts,
            modules,
            threads: Vec::new(),
        },
        pools,
        scheduling: match global.php.scheduling {
            regent_config::Scheduling::Spread => Scheduling::Spread,
            regent_config::Scheduling::Pack => Scheduling::Pack,
        },
        max_idle: timeout(global.php.max_idle_time),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_cores_share_an_io_thread() {
        assert_eq!([1, 2, 4, 5, 8, 64].map(io_threads), [1, 1, 1, 2, 2, 16]);
    }
}
