//! A pool of PHP threads on a simulated machine, under a simulated load: the same seed gives the same run.
//!
//! Not modelled: the server's own threads and the load generator, which take their share of the CPU in reality.

mod load;
mod machine;
mod outcome;
mod pool;

pub use load::*;
pub use machine::{MILLIS, Nanos, SECONDS};
pub use outcome::Outcome;

use pool::Pool;
use regent_dispatch::scaling::Limits;
use std::time::Duration;

/// The share of the requests of the best pool of a fixed size that a pool which scales must handle.
pub const BAR: f64 = 0.97;

#[derive(Debug, Clone, Copy)]
pub enum Size {
    Fixed(u16),
    Scaled(Limits),
}

#[derive(Debug, Clone, Copy)]
pub struct Boot {
    pub compute: Nanos,
    pub sleep: Nanos,
}

#[derive(Debug, Clone, Copy)]
pub struct MemoryModel {
    pub limit: u64,
    pub base: u64,
    pub per_thread: u64,
}

#[derive(Debug, Clone)]
pub struct Setup {
    pub cores: f32,
    pub boot: Boot,
    pub size: Size,
    /// A request that sleeps is ended after this time.
    pub time_limit: Nanos,
    /// A request that sleeps holds its thread stuck after this time.
    pub stuck_after: Nanos,
    pub memory: Option<MemoryModel>,
    /// The operator's changes: from when on how many threads are the least.
    pub by_hand: Vec<(Nanos, u16)>,
    pub seed: u64,
}

impl Setup {
    pub fn new(size: Size) -> Self {
        Self {
            cores: 2.0,
            boot: Boot { compute: MILLIS, sleep: 0 },
            size,
            time_limit: 30 * SECONDS,
            stuck_after: SECONDS,
            memory: None,
            by_hand: Vec::new(),
            seed: 0,
        }
    }

    pub fn run(&self, load: &Load) -> Outcome {
        Pool::new(self, load).run()
    }
}

pub fn scaled(least: u16, most: u16) -> Size {
    Size::Scaled(Limits { least, most, max_idle: Duration::from_secs(5) })
}
