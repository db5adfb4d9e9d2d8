//! Instructions of one request: the difference between a run with many of them and one with few.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Result;

use crate::profile::{Function, Profile};
use crate::scenario::{Figure, Process, Scenario};
use crate::server::{self, Run};
use crate::site::Site;

const FEW: u32 = 200;
/// A thousand more, so that what a second of the clock costs here and there does not show.
const MANY: u32 = 1_200;
const ATTEMPTS: u32 = 3;

/// Everything that was counted.
#[derive(Debug, Default)]
pub struct Measured {
    costs: BTreeMap<Figure, Cost>,
    php_version: String,
}

/// What one request costs one process.
#[derive(Debug, Default)]
pub struct Cost {
    /// Instructions in each repetition, in rising order; at least one.
    instructions: Vec<u64>,
    /// Of the last repetition, the most expensive first.
    pub functions: Vec<FunctionCost>,
}

/// What one request costs in one function.
#[derive(Debug, PartialEq)]
pub struct FunctionCost {
    pub name: String,
    pub instructions: f64,
    pub calls: f64,
}

impl Measured {
    pub fn add(&mut self, other: Self) {
        self.costs.extend(other.costs);
        self.php_version = other.php_version;
    }

    /// Adds counts of figures that have been counted before.
    pub fn count_again(&mut self, other: Self) {
        for (figure, cost) in other.costs {
            let known = self.costs.entry(figure).or_default();
            cost.instructions.into_iter().for_each(|instructions| known.count(instructions));
            known.functions = cost.functions;
        }
    }

    pub fn costs(&self) -> &BTreeMap<Figure, Cost> {
        &self.costs
    }

    /// The figures to be compared, in instructions for each request.
    pub fn smallest(&self) -> BTreeMap<Figure, u64> {
        self.costs.iter().map(|(figure, cost)| (*figure, cost.smallest())).collect()
    }

    /// The figures to be stored, in instructions for each request.
    pub fn largest(&self) -> BTreeMap<Figure, u64> {
        self.costs.iter().map(|(figure, cost)| (*figure, cost.largest())).collect()
    }

    /// As PHP says it: `8.4.1`.
    pub fn php_version(&self) -> &str {
        &self.php_version
    }
}

impl Cost {
    /// The smallest count: what is judged, since a loss is in each count.
    pub fn smallest(&self) -> u64 {
        *self.instructions.first().expect("invariant: a cost is made with its first count")
    }

    /// The largest count: what is stored, on an idle machine.
    pub fn largest(&self) -> u64 {
        *self.instructions.last().expect("invariant: a cost is made with its first count")
    }

    /// The smallest and the largest count, when there are several.
    pub fn spread(&self) -> Option<(u64, u64)> {
        match self.instructions.as_slice() {
            [first, .., last] => Some((*first, *last)),
            _ => None,
        }
    }

    fn count(&mut self, instructions: u64) {
        self.instructions.push(instructions);
        self.instructions.sort_unstable();
    }
}

/// Counts a scenario `repeat` times.
pub fn scenario(site: &Site, regent: &Path, scenario: Scenario, repeat: u32) -> Result<Measured> {
    site.settle();
    let mut measured = Measured::default();
    for _ in 0..repeat {
        let few = run(site, regent, scenario, FEW)?;
        let many = run(site, regent, scenario, MANY)?;
        for &process in scenario.processes() {
            let (few, many) = (profile(&few, process), profile(&many, process));
            let cost = measured.costs.entry(Figure { process, scenario }).or_default();
            cost.count(per_request(few.total(), many.total()).round() as u64);
            cost.functions = function_costs(few.functions(), many.functions());
        }
        measured.php_version = many.php_version;
    }
    Ok(measured)
}

/// One run, and another if it fails: under callgrind a server is fifty times slower, and what it takes for a hung engine
/// on a busy machine may be a slow one.
fn run(site: &Site, regent: &Path, scenario: Scenario, requests: u32) -> Result<Run> {
    for attempt in 1..ATTEMPTS {
        match server::run(site, regent, scenario, requests) {
            Ok(run) => return Ok(run),
            Err(error) => eprintln!("attempt {attempt} of {ATTEMPTS} failed: {error:#}"),
        }
    }
    server::run(site, regent, scenario, requests)
}

fn profile(run: &Run, process: Process) -> &Profile {
    match process {
        Process::Server => &run.server,
        Process::Engine => &run.engine,
    }
}

fn function_costs(few: &HashMap<String, Function>, many: &HashMap<String, Function>) -> Vec<FunctionCost> {
    let cost = |(name, of_many): (&String, &Function)| {
        let of_few = few.get(name).copied().unwrap_or_default();
        FunctionCost {
            name: name.clone(),
            instructions: per_request(of_few.instructions, of_many.instructions),
            calls: per_request(of_few.calls, of_many.calls),
        }
    };
    let mut costs: Vec<_> = many.iter().map(cost).collect();
    costs.sort_by(|a, b| b.instructions.total_cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
    costs
}

/// Negative for what start-up happened to do less of in the longer run.
fn per_request(few: u64, many: u64) -> f64 {
    (many as f64 - few as f64) / f64::from(MANY - FEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_knows_its_smallest_and_largest_count() {
        let mut cost = Cost::default();
        cost.count(30);
        assert_eq!((cost.smallest(), cost.largest(), cost.spread()), (30, 30, None));
        cost.count(10);
        cost.count(20);
        assert_eq!((cost.smallest(), cost.largest(), cost.spread()), (10, 30, Some((10, 30))));
    }

    #[test]
    fn a_second_count_joins_the_first() {
        let figure = Figure { process: Process::Server, scenario: Scenario::File };
        let counted = |instructions| {
            let mut cost = Cost::default();
            cost.count(instructions);
            Measured { costs: BTreeMap::from([(figure, cost)]), php_version: String::new() }
        };
        let mut measured = counted(30);
        measured.count_again(counted(20));
        assert_eq!((measured.smallest()[&figure], measured.largest()[&figure]), (20, 30));
    }

    #[test]
    fn what_start_up_costs_cancels() {
        let function = |instructions, calls| Function { instructions, calls };
        let few = HashMap::from([("parse".into(), function(70_000, 300)), ("start".into(), function(5, 1))]);
        let many = HashMap::from([
            ("parse".into(), function(370_000, 2_300)),
            ("start".into(), function(5, 1)),
            ("late".into(), function(500_000, 1_000)),
        ]);
        let cost = |name: &str, instructions, calls| FunctionCost { name: name.into(), instructions, calls };
        assert_eq!(
            function_costs(&few, &many),
            [cost("late", 500.0, 1.0), cost("parse", 300.0, 2.0), cost("start", 0.0, 0.0)]
        );
    }
}
