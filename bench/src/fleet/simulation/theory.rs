//! The simulation beside what queueing theory knows exactly.

use std::time::Duration;

use super::run;
use crate::fleet::model::{Balancing, Check, Fleet, Load, Policy, Service};
use crate::generator::histogram::Latencies;

const MEAN: Duration = Duration::from_millis(10);

fn waits(nodes: usize, threads: usize, service: Service, policy: Policy, load: f64) -> Latencies {
    let balancing = Balancing { policy, balancers: 1, check: Check::HAPROXY };
    let fleet = Fleet { nodes, threads, service, balancing, way: Duration::ZERO, longest_wait: None };
    let rate = fleet.capacity() * load;
    // As many requests, however many nodes.
    let duration = Duration::from_secs_f64(600_000.0 / rate);
    let load = Load::steady(rate, duration, duration / 10, 42);
    run(&fleet, &load, &[], None, Duration::from_secs(3600)).total.wait
}

fn assert_near(found: Option<f64>, expected: f64, part: f64, what: &str) {
    let found = found.expect("there are requests");
    assert!((found / expected - 1.0).abs() < part, "{what}: {found} instead of {expected}");
}

/// Erlang's C: who has to wait at all, of `c` threads with `a` requests offered.
fn erlang_c(c: usize, a: f64) -> f64 {
    let blocked = (1..=c).fold(1.0, |blocked, threads| a * blocked / (threads as f64 + a * blocked));
    let busy = a / c as f64;
    blocked / (1.0 - busy + busy * blocked)
}

/// M/M/c: waits are exponential for those who have to.
#[test]
fn exponential_times_wait_as_erlang_says() {
    for (threads, load) in [(1, 0.7), (4, 0.8), (16, 0.9)] {
        let waits = waits(1, threads, Service::Exponential(MEAN), Policy::Random, load);
        let part = erlang_c(threads, threads as f64 * load);
        let pace = threads as f64 * (1.0 - load) / MEAN.as_secs_f64();
        let what = format!("{threads} threads, {load}");
        assert_near(waits.mean_ms(), part / pace * 1e3, 0.06, &what);
        for quantile in [0.9, 0.99] {
            let expected = (part / (1.0 - quantile)).ln() / pace * 1e3;
            assert_near(waits.quantile_ms(quantile), expected, 0.08, &format!("{what}, {quantile}"));
        }
    }
}

/// M/G/1: Pollaczek and Khinchine.
#[test]
fn other_times_wait_as_their_variance_says() {
    let cases = [
        (Service::Fixed(MEAN), 0.0),
        (Service::LogNormal { mean: MEAN, deviation: 0.5 }, 0.25),
        (Service::Exponential(MEAN), 1.0),
    ];
    for (service, squared) in cases {
        for load in [0.5_f64, 0.8] {
            let expected = load / (1.0 - load) * (1.0 + squared) / 2.0 * MEAN.as_secs_f64() * 1e3;
            let waits = waits(1, 1, service, Policy::Random, load);
            assert_near(waits.mean_ms(), expected, 0.05, &format!("{service:?}, {load}"));
        }
    }
}

/// M/D/c: about half of M/M/c's wait, by Cosmetatos' correction.
#[test]
fn equal_times_wait_half_as_long() {
    let (threads, load) = (4, 0.8_f64);
    let c = threads as f64;
    let exponential = erlang_c(threads, c * load) / (c * (1.0 - load)) * MEAN.as_secs_f64();
    let corrected = 1.0 + (1.0 - load) * (c - 1.0) * ((4.0 + 5.0 * c).sqrt() - 2.0) / (16.0 * load * c);
    let waits = waits(1, threads, Service::Fixed(MEAN), Policy::Random, load);
    assert_near(waits.mean_ms(), exponential / 2.0 * corrected * 1e3, 0.05, "M/D/4");
}

/// Nodes that are chosen by chance are queues of their own.
#[test]
fn a_fleet_by_chance_waits_like_one_node() {
    let part = erlang_c(4, 4.0 * 0.8);
    let pace = 4.0 * 0.2 / MEAN.as_secs_f64();
    let waits = waits(25, 4, Service::Exponential(MEAN), Policy::Random, 0.8);
    assert_near(waits.mean_ms(), part / pace * 1e3, 0.06, "25 nodes");
}

/// The supermarket model (Mitzenmacher, Vvedenskaya): of many queues, the shorter of two.
#[test]
fn two_by_chance_wait_as_in_the_supermarket() {
    let load = 0.9_f64;
    let in_system: f64 = (1..12).map(|step| load.powf(2f64.powi(step) - 2.0)).sum();
    let waits = waits(100, 1, Service::Exponential(MEAN), Policy::P2c, load);
    assert_near(waits.mean_ms(), (in_system - 1.0) * MEAN.as_secs_f64() * 1e3, 0.08, "two by chance");
}
