//! From a configuration to numbers, before anything is started.

use regent_config::Config;
use regent_engines::{EngineError, EnginePlan, ServerFacts};
use regent_gateway::{SOFTWARE, warmup};
use std::thread::available_parallelism;

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

/// What stays as it is for the life of the process, whatever its configurations say.
pub(crate) fn facts() -> ServerFacts {
    let cores = available_parallelism().map_or(1, usize::from);
    ServerFacts { io_threads: io_threads(cores), cores, software: SOFTWARE }
}

/// One I/O thread is enough for four cores; PHP needs the others.
fn io_threads(cores: usize) -> usize {
    cores.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_cores_share_an_io_thread() {
        assert_eq!([1, 2, 4, 5, 8, 64].map(io_threads), [1, 1, 1, 2, 2, 16]);
    }
}
