//! From a configuration to numbers, before anything is started.

use regent_config::Config;
use regent_engines::{EngineError, EnginePlan, ServerFacts};
use regent_gateway::{SOFTWARE, warmup};
use std::thread::available_parallelism;

/// I/O threads of a server without engines: what they have for themselves, pools of connections to upstreams above all, is worth
/// the less the more they are.
const MOST_ALONE: usize = 8;

/// Everything that follows from the configuration before anything is started.
pub(crate) struct Plan {
    pub php: EnginePlan,
    /// `None`: there are no native services.
    pub native: Option<EnginePlan>,
}

impl Plan {
    pub fn new(config: &Config, facts: ServerFacts) -> Result<Self, EngineError> {
        let global = &config.global;
        Ok(Self {
            php: EnginePlan::php(global, facts, warmup::requests)?,
            native: EnginePlan::native(global, facts)?,
        })
    }
}

/// What stays as it is for the life of the process, whatever configurations come after this one.
pub(crate) fn facts(config: &Config) -> ServerFacts {
    let cores = available_parallelism().map_or(1, usize::from);
    let io_threads = if config.runs_code() { beside_engines(cores) } else { without_engines(cores) };
    ServerFacts { io_threads, cores, software: SOFTWARE }
}

/// One I/O thread is enough for four cores; PHP needs the others.
fn beside_engines(cores: usize) -> usize {
    cores.div_ceil(4)
}

/// Nobody else needs the cores; but not fewer than beside engines, which a later configuration may have.
fn without_engines(cores: usize) -> usize {
    cores.min(MOST_ALONE).max(beside_engines(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_cores_share_an_io_thread() {
        assert_eq!([1, 2, 4, 5, 8, 64].map(beside_engines), [1, 1, 1, 2, 2, 16]);
    }

    #[test]
    fn without_engines_each_core_has_an_io_thread_up_to_a_bound() {
        assert_eq!([1, 2, 4, 8, 9, 32, 64].map(without_engines), [1, 2, 4, 8, 8, 8, 16]);
    }
}
