//! What Regent is fuzzed with: for each input that a stranger can choose (a client, an engine, a module, who writes a
//! configuration) a function that takes any bytes and panics when something is true that must never be.
//!
//! `libfuzzer/` runs them with coverage, `tests/replay.rs` with the seeds and a few thousand mutations of them.

#![forbid(unsafe_code)]

mod corpus;
mod input;
mod mutate;
pub mod targets;

pub use corpus::Corpus;
pub use mutate::Mutator;

/// A function to be fuzzed, and its name.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Panics on a finding.
    pub run: fn(&[u8]),
}

impl Target {
    pub fn named(name: &str) -> Option<Self> {
        targets::ALL.iter().find(|target| target.name == name).copied()
    }
}
