//! What whoever takes a profile has to know.

use crate::Reporter;
use regent_wire::Engine;
use regent_wire::control::ProfileOrder;
use std::sync::Arc;

/// A profile that is to be taken.
pub struct Profiling {
    pub order: ProfileOrder,
    pub engine: Arc<Engine>,
    /// Where it goes.
    pub reporter: Arc<Reporter>,
    /// Those that run at the moment.
    pub threads: Box<dyn Fn() -> Vec<RunningThread> + Send>,
}

/// A thread of this engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningThread {
    /// Its number in the shared memory.
    pub index: u16,
    pub pool: u16,
    /// The number of its process.
    pub process: i32,
}
