//! The policies at work in a simulated pool: deterministic, on a clock of its own.

mod overload;
mod pool;
mod starvation;
