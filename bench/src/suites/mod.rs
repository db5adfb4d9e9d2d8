//! The suites. Each is a procedure that measures its cases and a page that tells what came of them; see
//! `bench/README.md` for what each asks.

pub mod burst;
pub mod files;
pub mod fixed;
pub mod isolation;
pub mod neighbours;
pub mod overload;
pub mod scaling;
pub mod sweep;
pub mod tables;

pub use self::tables::FLOOR;

use anyhow::Result;

use crate::arguments::SuiteOptions;
use crate::bench::Bench;
use crate::peers::Contender;
use crate::report::page::Page;
use crate::site::{Script, StaticFile};

/// A question, and how it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    Sweep,
    Fixed,
    Scaling,
    Burst,
    Overload,
    Isolation,
    Neighbours,
    Files,
}

impl Suite {
    /// In the order of the tour.
    pub const ALL: [Self; 8] = [
        Self::Sweep,
        Self::Fixed,
        Self::Files,
        Self::Overload,
        Self::Isolation,
        Self::Neighbours,
        Self::Scaling,
        Self::Burst,
    ];

    /// Of the command and of the directory of the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Fixed => "fixed",
            Self::Scaling => "scaling",
            Self::Burst => "burst",
            Self::Overload => "overload",
            Self::Isolation => "isolation",
            Self::Neighbours => "neighbours",
            Self::Files => "files",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Sweep => "Concurrency sweep",
            Self::Fixed => "Tail latency at fixed connections",
            Self::Scaling => "Autoscaling scenarios",
            Self::Burst => "Growth of a pool, and back",
            Self::Overload => "Overload and recovery",
            Self::Isolation => "Isolation of a fast route from a slow one",
            Self::Neighbours => "Beside programs that want the CPU",
            Self::Files => "Static files, large answers, uploads",
        }
    }

    /// The servers that are measured unless others are chosen.
    pub fn contenders(self) -> Vec<Contender> {
        let names: &[&str] = match self {
            Self::Sweep => &["native", "classic", "worker", "fpm", "apache", "fpm:default", "apache:default"],
            Self::Fixed => &["respond", "native", "classic", "worker", "fpm"],
            Self::Overload | Self::Isolation | Self::Neighbours | Self::Scaling | Self::Burst => {
                &["classic", "worker", "fpm"]
            }
            Self::Files => &["classic", "fpm", "apache"],
        };
        names
            .iter()
            .map(|name| name.parse().expect("invariant: it names a server that is built in"))
            .collect()
    }

    /// What it asks of a server: one that lacks any of it cannot be measured.
    pub fn scripts(self) -> &'static [Script] {
        match self {
            Self::Sweep | Self::Fixed => &[Script::Hello],
            Self::Scaling | Self::Burst | Self::Overload | Self::Neighbours => &[Script::Sleep],
            Self::Isolation => &[Script::Sleep, Script::Slow],
            Self::Files => &[Script::Static(StaticFile::Small), Script::Large, Script::Upload],
        }
    }

    pub fn run(self, bench: &mut Bench, selection: &Selection) -> Result<Page> {
        match self {
            Self::Sweep => sweep::run(bench, selection),
            Self::Fixed => fixed::run(bench, selection),
            Self::Scaling => scaling::run(bench, selection),
            Self::Burst => burst::run(bench, selection),
            Self::Overload => overload::run(bench, selection),
            Self::Isolation => isolation::run(bench, selection),
            Self::Neighbours => neighbours::run(bench, selection),
            Self::Files => files::run(bench, selection),
        }
    }
}

/// How much of a suite is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A look, for the tour of all suites.
    Tour,
    /// Fewer points and shorter loads than the original; the default of a suite run by itself.
    Short,
    /// The original sizes.
    Full,
}

/// What every suite is told.
#[derive(Clone, Debug)]
pub struct Selection {
    pub contenders: Vec<Contender>,
    pub length: Length,
    pub rounds: u32,
    /// Processes of the load generator at each point of the sweep; `None`: as many as its users take.
    pub generators: Option<u32>,
    /// Names of scenarios; empty: all.
    pub scenarios: Vec<String>,
}

impl Selection {
    pub fn new(contenders: Vec<Contender>, options: &SuiteOptions, length: Length) -> Self {
        Self {
            contenders,
            length,
            rounds: options.rounds(length),
            generators: options.generators,
            scenarios: options.scenarios.clone(),
        }
    }
}

/// A B C D in odd rounds, D C B A in even ones: whatever drifts hits all servers alike.
pub fn in_turn<T>(items: &[T], round: u32) -> Vec<&T> {
    if round % 2 == 1 { items.iter().collect() } else { items.iter().rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_turns_with_each_round() {
        assert_eq!(in_turn(&[1, 2, 3], 1), [&1, &2, &3]);
        assert_eq!(in_turn(&[1, 2, 3], 2), [&3, &2, &1]);
    }

    #[test]
    fn every_suite_can_measure_the_servers_that_it_is_about() {
        for suite in Suite::ALL {
            for contender in suite.contenders() {
                assert!(suite.scripts().iter().all(|script| contender.has(*script)), "{contender}");
            }
        }
    }
}
