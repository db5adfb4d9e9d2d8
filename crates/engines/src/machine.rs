//! What the scaling policy has to know of the machine: CPUs, memory, and what threads do at an instant. All of it is
//! read from the system at each call. Measured: CPUs and memory take about 60 µs together.

mod cgroup;
mod cpu_time;
mod cpus;
mod memory;
mod thread_states;

pub use cpu_time::cpu_time;
pub use cpus::cpus;
pub use memory::{Memory, anonymous, memory, resident};
pub use thread_states::{Halt, ThreadStates, Wait, halt, wait};
