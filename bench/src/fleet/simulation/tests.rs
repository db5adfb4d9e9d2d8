use super::*;
use crate::fleet::model::{Balancing, Check, Policy, Service};

const SECOND: Duration = Duration::from_secs(1);
const MEAN: Duration = Duration::from_millis(5);

fn fleet(nodes: usize) -> Fleet {
    let balancing = Balancing { policy: Policy::LeastConn, balancers: 2, check: Check::HAPROXY };
    let way = Duration::from_millis(1);
    Fleet { nodes, threads: 4, service: Service::Fixed(MEAN), balancing, way, longest_wait: None }
}

fn load(fleet: &Fleet, part: f64, seconds: u32) -> Load {
    Load::steady(fleet.capacity() * part, SECOND * seconds, Duration::ZERO, 1)
}

fn with(fleet: &Fleet, load: &Load, incidents: &[Incident]) -> Outcome {
    run(fleet, load, incidents, None, SECOND)
}

fn at(seconds: u32, node: usize, what: Fault) -> Incident {
    Incident { at: SECOND * seconds, node, what }
}

#[test]
fn equal_seeds_have_equal_outcomes_and_others_do_not() {
    let fleet = fleet(4);
    let of = |seed| {
        let load = Load { seed, ..load(&fleet, 0.7, 5) };
        let outcome = with(&fleet, &load, &[at(2, 1, Fault::Killed)]);
        (outcome.total.answered, outcome.total.lost, outcome.total.wait.mean_ms())
    };
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

#[test]
fn all_are_answered_after_way_and_service_where_nothing_happens() {
    let fleet = fleet(4);
    let outcome = with(&fleet, &load(&fleet, 0.3, 10), &[]);
    assert_eq!((outcome.total.lost, outcome.total.refused), (0, 0));
    let rate = outcome.total.answered as f64 / 10.0;
    assert!((rate / (fleet.capacity() * 0.3) - 1.0).abs() < 0.03, "{rate}");
    let least = outcome.total.latency.quantile_ms(0.0).expect("there are some");
    assert!((least - 6.0).abs() < 0.01, "{least}");
}

#[test]
fn a_node_that_is_killed_loses_what_it_had_and_no_more() {
    let fleet = fleet(8);
    let outcome = with(&fleet, &load(&fleet, 0.8, 10), &[at(5, 2, Fault::Killed)]);
    let lost: Vec<u64> = outcome.bins.iter().map(|bin| bin.lost).collect();
    assert!((2..=8).contains(&outcome.total.lost), "{lost:?}");
    assert!(outcome.bins[..5].iter().all(|bin| bin.lost == 0));
    let after = outcome.bins[8].answered as f64;
    assert!((after / (fleet.capacity() * 0.8) - 1.0).abs() < 0.1, "the others have its part: {after}");
}

#[test]
fn a_machine_that_is_lost_costs_some_a_time_out() {
    let fleet = fleet(4);
    let outcome = with(&fleet, &load(&fleet, 0.5, 10), &[at(5, 2, Fault::Lost)]);
    let late = outcome.total.latency.count_above(fleet.balancing.check.connect_timeout);
    // Nobody sends there after two checks.
    assert!(late > 10 && (late as f64) < fleet.capacity() * 0.5 * 2.0, "{late}");
    assert!(outcome.total.lost <= 8, "{}", outcome.total.lost);
}

#[test]
fn what_a_frozen_node_has_taken_is_answered_when_it_goes_on() {
    let fleet = fleet(4);
    let frozen = Fault::Frozen(SECOND * 3);
    let outcome = with(&fleet, &load(&fleet, 0.5, 10), &[at(4, 1, frozen)]);
    assert_eq!(outcome.total.lost, 0);
    let longest = outcome.total.latency.max_ms().expect("there are some");
    assert!((2900.0..3200.0).contains(&longest), "{longest}");
    let again = Load { seed: 9, ..load(&fleet, 0.5, 10) };
    let short = with(&fleet, &again, &[at(4, 1, Fault::Frozen(Duration::from_millis(300)))]);
    let end = short.bins[9].wait.quantile_ms(0.99).expect("there are some");
    assert!(end < 5.0, "before a check was in vain nobody has missed it: {end}");
}

#[test]
fn a_rolling_restart_loses_nothing() {
    let fleet = fleet(4);
    let each = |node: usize| at(1 + 2 * node as u32, node, Fault::Restarted(SECOND));
    let incidents: Vec<_> = (0..4).map(each).collect();
    let outcome = with(&fleet, &load(&fleet, 0.5, 12), &incidents);
    assert_eq!((outcome.total.lost, outcome.total.refused), (0, 0));
    assert!(outcome.total.latency.max_ms().is_some_and(|most| most < 100.0));
}

#[test]
fn without_any_node_all_is_lost() {
    let fleet = fleet(1);
    let outcome = with(&fleet, &load(&fleet, 0.5, 6), &[at(2, 0, Fault::Killed)]);
    assert_eq!(outcome.bins[5].answered, 0);
    assert!(outcome.bins[5].lost > 100);
}

#[test]
fn what_would_wait_too_long_is_refused_and_the_rest_does_not() {
    let longest = Duration::from_millis(50);
    let fleet = Fleet { longest_wait: Some(longest), ..fleet(2) };
    let outcome = with(&fleet, &load(&fleet, 2.0, 5), &[]);
    let part = outcome.total.refused as f64 / (outcome.total.refused + outcome.total.answered) as f64;
    assert!((part - 0.5).abs() < 0.05, "{part}");
    assert!(outcome.total.wait.max_ms().is_some_and(|most| most < 60.0));
}

#[test]
fn more_load_brings_more_nodes_and_less_takes_them_away() {
    let fleet = Fleet { longest_wait: Some(SECOND), ..fleet(4) };
    let rate = fleet.capacity();
    let load = Load {
        rates: vec![(Duration::ZERO, rate * 0.4), (SECOND * 120, rate * 1.2), (SECOND * 600, rate * 0.4)],
        duration: SECOND * 1800,
        ..load(&fleet, 0.4, 1)
    };
    let autoscaling = Autoscaling::packaged(20);
    let outcome = run(&fleet, &load, &[], Some(&autoscaling), SECOND * 15);
    let nodes: Vec<usize> = outcome.bins.iter().map(|bin| bin.nodes).filter(|nodes| *nodes > 0).collect();
    let most = nodes.iter().max().copied().unwrap_or_default();
    // As many as 70 % of busy threads ask for at least; a wait asks for more than it needs.
    assert!((7..=20).contains(&most), "{nodes:?}");
    assert_eq!(nodes.last(), Some(&4), "{nodes:?}");
    let settled = &outcome.bins[400 / 15];
    assert!(settled.wait.mean_ms().is_some_and(|wait| wait < 5.0));
    assert_eq!(settled.refused + settled.lost, 0);
}
