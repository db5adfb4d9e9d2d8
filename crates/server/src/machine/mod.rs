//! What the scaling policy has to know of the machine: CPUs, memory, and what threads do at an instant. All of it is
//! read from the system at each call. Measured: CPUs and memory take about 60 µs together.

mod cgroup;
mod cpus;
mod memory;
mod thread_states;

pub(crate) use cpus::cpus;
pub(crate) use memory::{Memory, memory, resident};
pub(crate) use thread_states::{Halt, ThreadStates, Wait, halt, wait};
