//! What the page has simulations of.

use std::time::Duration;

use anyhow::Result;

use super::Options;
use super::model::{Autoscaling, Balancing, Fault, Fleet, Incident, Load, Policy, Service};
use super::simulation::{self, Outcome};
use crate::interrupt::Interrupt;

pub const POLICIES: [Policy; 4] = [Policy::Random, Policy::RoundRobin, Policy::P2c, Policy::LeastConn];
/// Numbers of nodes, each with its part of the load.
const SIZES: [usize; 6] = [1, 4, 10, 25, 50, 100];
/// Parts of the capacity.
const LOADS: [f64; 8] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
/// Of the time, until the queues are as they will be.
const WARM_UP: f64 = 0.1;
/// Until something happens to a node.
const BEFORE: Duration = Duration::from_secs(2);
/// From then on.
const AFTER: Duration = Duration::from_secs(6);
/// What a fault is looked at with, of the whole fleet: enough for its tail.
const OF_FAULTS: f64 = 0.1;

pub struct Scenarios {
    pub policies: Vec<Choice>,
    pub loads: Vec<Choice>,
    pub sizes: Vec<Choice>,
    pub faults: Vec<Happening>,
    pub growth: Growth,
}

/// A fleet under a steady load.
pub struct Choice {
    pub policy: Policy,
    pub balancers: usize,
    pub nodes: usize,
    /// Part of the capacity.
    pub load: f64,
    pub outcome: Outcome,
}

pub struct Happening {
    pub what: String,
    /// Of the fleet that it happened to.
    pub rate: f64,
    pub outcome: Outcome,
}

/// A rising load and an autoscaler.
pub struct Growth {
    pub fleet: Fleet,
    pub rates: Vec<(Duration, f64)>,
    pub bin: Duration,
    pub outcome: Outcome,
}

pub fn run(options: &Options, interrupt: &Interrupt) -> Result<Scenarios> {
    let fleet = options.fleet();
    let load = f64::from(options.rate) / fleet.capacity();
    let steady = |policy, balancers, nodes, load| -> Result<Choice> {
        interrupt.check()?;
        eprintln!("simulating {nodes} nodes at {:.0} %, {policy}, {balancers} balancers", load * 100.0);
        Ok(choice(options, policy, balancers, nodes, load))
    };
    let (own, balancers) = (fleet.balancing.policy, fleet.balancing.balancers);
    let mut policies = Vec::new();
    for number in [1, balancers] {
        for policy in POLICIES {
            policies.push(steady(policy, number, fleet.nodes, load)?);
        }
    }
    let mut loads = Vec::new();
    for policy in POLICIES {
        for part in LOADS {
            loads.push(steady(policy, balancers, fleet.nodes, part)?);
        }
    }
    let sizes = SIZES.iter().map(|nodes| steady(own, balancers, *nodes, load)).collect::<Result<_>>()?;
    let faults = happenings(options, interrupt)?;
    interrupt.check()?;
    Ok(Scenarios { policies, loads, sizes, faults, growth: growth(options) })
}

fn choice(options: &Options, policy: Policy, balancers: usize, nodes: usize, load: f64) -> Choice {
    let usual = options.fleet();
    let balancing = Balancing { policy, balancers, ..usual.balancing };
    let fleet = Fleet { nodes, balancing, ..usual };
    let rate = fleet.capacity() * load;
    let duration = Duration::from_secs_f64(f64::from(options.requests) / rate);
    let load_of_time = Load::steady(rate, duration, duration.mul_f64(WARM_UP), options.seed);
    let outcome = simulation::run(&fleet, &load_of_time, &[], None, duration);
    Choice { policy, balancers, nodes, load, outcome }
}

/// Of a tenth of the nodes with a tenth of the load, where as much happens to each.
fn happenings(options: &Options, interrupt: &Interrupt) -> Result<Vec<Happening>> {
    let usual = options.fleet();
    let nodes = ((usual.nodes as f64 * OF_FAULTS) as usize).max(4);
    let rate = f64::from(options.rate) * nodes as f64 / usual.nodes as f64;
    let fleet = Fleet { nodes, ..usual };
    let one = |what| vec![Incident { at: BEFORE, node: 0, what }];
    let rolling = |at_once: usize, down: Duration| -> Vec<Incident> {
        let begin = |node: usize| BEFORE + (down + Duration::from_millis(500)) * (node / at_once) as u32;
        (0..nodes).map(|node| Incident { at: begin(node), node, what: Fault::Restarted(down) }).collect()
    };
    let down = Duration::from_millis(500);
    let cases = [
        ("nothing".to_owned(), Vec::new()),
        (format!("1 of {nodes} is killed"), one(Fault::Killed)),
        (format!("the machine of 1 of {nodes} is lost"), one(Fault::Lost)),
        (format!("1 of {nodes} stands still for 3 s"), one(Fault::Frozen(Duration::from_secs(3)))),
        (format!("all {nodes} are restarted, one after the other"), rolling(1, down)),
        (format!("all {nodes} are restarted, two at a time"), rolling(2, down)),
    ];
    let mut happenings = Vec::new();
    for (what, incidents) in cases {
        interrupt.check()?;
        eprintln!("simulating: {what}");
        let last = incidents.iter().map(|incident| incident.at).max().unwrap_or(BEFORE);
        let load = Load::steady(rate, last + AFTER, Duration::ZERO, options.seed);
        let outcome = simulation::run(&fleet, &load, &incidents, None, Duration::from_secs(1));
        happenings.push(Happening { what, rate, outcome });
    }
    Ok(happenings)
}

/// Pods of four threads whose requests take 10 ms: 400 a second each. In two minutes the load becomes five times as large.
fn growth(options: &Options) -> Growth {
    eprintln!("simulating an autoscaler");
    let minute = Duration::from_secs(60);
    let fleet = Fleet {
        nodes: 4,
        threads: 4,
        service: Service::LogNormal { mean: Duration::from_millis(10), deviation: 1.0 },
        longest_wait: Some(Duration::from_secs(2)),
        ..options.fleet()
    };
    let usual = fleet.capacity() * 0.5;
    let rising =
        (0..8).map(|step| (3 * minute + minute / 4 * step, usual * (1.0 + f64::from(step + 1) / 2.0)));
    let rates: Vec<_> =
        std::iter::once((Duration::ZERO, usual)).chain(rising).chain([(20 * minute, usual)]).collect();
    let load =
        Load { rates: rates.clone(), ..Load::steady(usual, 40 * minute, Duration::ZERO, options.seed) };
    let bin = Duration::from_secs(15);
    let outcome = simulation::run(&fleet, &load, &[], Some(&Autoscaling::packaged(40)), bin);
    Growth { fleet, rates, bin, outcome }
}
