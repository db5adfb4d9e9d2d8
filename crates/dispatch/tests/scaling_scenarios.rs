//! Requests handled by a pool that scales, beside the best pool of a fixed size, on the simulated machine.

use crate::simulator::{BAR, Load, Outcome, Setup, Size, scaled};

const SIZES: [u16; 10] = [2, 4, 6, 9, 13, 20, 30, 45, 70, 100];

#[test]
fn a_pool_that_scales_handles_nearly_as_many_requests_as_the_best_fixed_one() {
    // The fewer requests a scenario has, the more its sum depends on chance: so many rounds of each.
    let scenarios = [
        ("hello world", 1, crate::simulator::hello_world()),
        ("database", 2, crate::simulator::database()),
        ("external API", 3, crate::simulator::external_api()),
        ("computation", 3, crate::simulator::computation()),
        ("hanging server", 20, crate::simulator::hanging_server()),
        ("time-outs", 3, crate::simulator::time_outs()),
        ("step", 3, crate::simulator::step()),
    ];
    println!("scenario        default  scaling    ideal  (of)  scaling ÷ ideal  p99 ÷ p99  most threads");
    let ratios = scenarios.map(|(name, rounds, load)| (name, compare(name, rounds, &load)));
    for (name, ratio) in ratios {
        assert!(ratio >= BAR, "{name}: {ratio:.3}");
    }
}

/// Requests handled by a pool that scales from 4 threads to 100, of those that the best one handles.
fn compare(name: &str, rounds: u64, load: &Load) -> f64 {
    let default = run(Size::Fixed(4), rounds, load);
    let scaling = run(scaled(4, 100), rounds, load);
    let (best, ideal) = best_fixed(rounds, load);
    let ratio = scaling.handled() as f64 / ideal.handled() as f64;
    println!(
        "{name:<14} {:>8} {:>8} {:>8}  {best:>4} {:>15.1}% {:>10.2} {:>13}",
        default.handled(),
        scaling.handled(),
        ideal.handled(),
        ratio * 100.0,
        scaling.percentile(99) as f64 / ideal.percentile(99) as f64,
        scaling.most_threads(),
    );
    ratio
}

/// The smallest of those that handle the most.
fn best_fixed(rounds: u64, load: &Load) -> (u16, Outcome) {
    let runs = SIZES.map(|size| (size, run(Size::Fixed(size), rounds, load)));
    runs.into_iter().rev().max_by_key(|(_, outcome)| outcome.handled()).expect("invariant: there are sizes")
}

fn run(size: Size, rounds: u64, load: &Load) -> Outcome {
    let mut setup = Setup::new(size);
    setup.time_limit = crate::simulator::at_pace(setup.time_limit);
    let runs = (0..rounds).map(|seed| Setup { seed, ..setup.clone() }.run(load));
    runs.reduce(Outcome::and).expect("invariant: there is a round")
}
