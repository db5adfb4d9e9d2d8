//! How a pool that scales behaves on the simulated machine of two cores: how fast it reacts, how far it goes, and
//! whether it comes to rest.

use crate::simulator::{
    BAR, Boot, Load, MILLIS, MemoryModel, Nanos, Outcome, SECONDS, Setup, Size, Step, Then, scaled,
};
use regent_dispatch::scaling::Decision;

#[test]
fn two_threads_become_a_hundred_within_100_ms_of_a_blocking_load() {
    let outcome =
        Setup::new(scaled(2, 100)).run(&Load::steady(100, 2 * SECONDS, crate::simulator::blocking(100)));
    let reached = outcome.reached(100).expect("100 threads");
    println!("100 threads after {} ms", reached / MILLIS);
    assert!(reached < 100 * MILLIS);
}

#[test]
fn a_hundred_simultaneous_requests_of_100_ms_are_answered_in_400_ms() {
    let load = Load::steady(100, 5 * SECONDS, crate::simulator::blocking(100)).then(Then::Leave);
    let outcome = Setup::new(scaled(2, 100)).run(&load);
    println!("the last one after {} ms", outcome.percentile(100) / MILLIS);
    assert_eq!(outcome.handled(), 100);
    assert!(outcome.percentile(100) < 400 * MILLIS);
}

#[test]
fn a_burst_finds_the_threads_of_the_last_one() {
    // Every two seconds for half a second.
    let users = |now: Nanos| if now % (2 * SECONDS) < SECONDS / 2 { 40.0 } else { 0.0 };
    let outcome =
        Setup::new(scaled(2, 100)).run(&Load::new(20 * SECONDS, users, crate::simulator::blocking(20)));
    assert!(outcome.reached(40).is_some_and(|time| time < 100 * MILLIS));
    assert_eq!(outcome.changes_after(SECONDS), 0, "{:?}", outcome.changes);
    assert!(outcome.most_threads() <= 40 + 6, "{}", outcome.most_threads());
}

#[test]
fn a_load_that_swells_and_ebbs_is_followed() {
    let users = |now: Nanos| {
        let phase = now as f64 / (60 * SECONDS) as f64 * std::f64::consts::TAU;
        (30.0 - 25.0 * phase.cos()).round()
    };
    let load = Load::new(120 * SECONDS, users, crate::simulator::blocking_about(20));
    let outcome = Setup::new(scaled(2, 100)).run(&load);
    let ratio = outcome.handled() as f64 / Setup::new(Size::Fixed(60)).run(&load).handled() as f64;
    println!("{:.1} % of the best, {} changes", ratio * 100.0, outcome.changes.len());
    assert!(ratio >= BAR, "{ratio}");
    assert!(outcome.most_threads() <= 55 + 8, "{}", outcome.most_threads());
    assert!(outcome.threads_at(68 * SECONDS) < 50, "{}", outcome.threads_at(68 * SECONDS));
}

#[test]
fn a_steady_load_leaves_the_pool_nearly_at_rest() {
    for (users, request, think) in [(40, 20, 50), (10, 5, 5), (90, 100, 400)] {
        let requests = crate::simulator::blocking_about(request);
        let load = Load::steady(users, 120 * SECONDS, requests).then(Then::Again(think * MILLIS));
        let outcome = Setup::new(scaled(2, 100)).run(&load);
        let turns = outcome.turns_after(20 * SECONDS);
        let (fewest, most) = outcome.range_after(20 * SECONDS);
        println!("{users} users: {fewest} to {most} threads, {turns} turns in 100 s");
        // Chance makes a peak now and then.
        assert!(turns <= 4, "{turns}");
        assert!(most - fewest <= most / 3, "{fewest} to {most}");
    }
}

#[test]
fn threads_that_hang_are_replaced_by_others() {
    // One request in 400 hangs for longer than the run.
    let outcome = Setup::new(scaled(4, 60)).run(&Load::steady(40, 15 * SECONDS, |random, _| {
        let sleep = if random.u32(0..400) == 0 { 20 * SECONDS } else { 5 * MILLIS };
        vec![Step::Compute(MILLIS / 10), Step::Sleep(sleep)]
    }));
    println!("p99 {} ms, {} threads", outcome.percentile(99) / MILLIS, outcome.most_threads());
    assert!(outcome.percentile(99) < 20 * MILLIS);
    assert!(outcome.most_threads() <= 40 + 6);
}

#[test]
fn computing_requests_get_no_more_than_a_few_threads_beyond_the_cores() {
    let load = Load::steady(50, 20 * SECONDS, crate::simulator::computing(20));
    let outcome = Setup::new(scaled(2, 100)).run(&load);
    assert!(outcome.most_threads() <= 4, "{}", outcome.most_threads());
    assert_best(&outcome, &load);
}

#[test]
fn a_long_computation_does_not_block_the_pool() {
    let load = Load::steady(12, 10 * SECONDS, |random, _| match random.u32(0..500) {
        0 => vec![Step::Compute(2 * SECONDS)],
        _ => vec![Step::Compute(MILLIS / 5), Step::Sleep(2 * MILLIS)],
    });
    let outcome = Setup::new(scaled(2, 100)).run(&load);
    println!("p95 {} ms", outcome.percentile(95) / MILLIS);
    assert!(outcome.percentile(95) < 200 * MILLIS);
}

#[test]
fn ten_endless_computations_do_not_stop_the_pool() {
    // The first ten users never get an answer. The others come half a second later.
    let users = |now: Nanos| if now < SECONDS / 2 { 10.0 } else { 14.0 };
    let load = Load::new(20 * SECONDS, users, |_, now| match now < SECONDS / 2 {
        true => vec![Step::Compute(1_000 * SECONDS)],
        false => vec![Step::Compute(MILLIS / 2)],
    });
    let outcome = Setup::new(scaled(4, 1024)).run(&load.then(Then::Again(20 * MILLIS)));
    println!("{} answers, p99 {} ms", outcome.handled(), outcome.percentile(99) / MILLIS);
    assert!(outcome.handled() > 1_000, "{}", outcome.handled());
    assert!(outcome.percentile(99) < 50 * MILLIS, "{}", outcome.percentile(99) / MILLIS);
    assert!(outcome.most_threads() <= 10 + 4, "{}", outcome.most_threads());
}

#[test]
fn long_computations_alone_get_no_threads_beyond_the_usual() {
    let load = Load::steady(30, 60 * SECONDS, crate::simulator::computing(2_000));
    let outcome = Setup::new(scaled(4, 1024)).run(&load);
    assert_eq!(outcome.most_threads(), 4);
    assert_eq!(outcome.handled(), Setup::new(Size::Fixed(4)).run(&load).handled());
}

#[test]
fn short_and_long_computations_together_are_nearly_as_many_as_in_the_best_pool() {
    let load = Load::steady(20, 30 * SECONDS, |random, _| match random.u32(0..400) {
        0 => vec![Step::Compute(3 * SECONDS)],
        _ => vec![Step::Compute(5 * MILLIS)],
    });
    let load = load.then(Then::Again(50 * MILLIS));
    let outcome = Setup::new(scaled(4, 1024)).run(&load);
    println!("p95 {} ms, {} threads", outcome.percentile(95) / MILLIS, outcome.most_threads());
    assert!(outcome.percentile(95) < 500 * MILLIS);
    assert!(outcome.most_threads() <= 20 + 4);
    assert_best(&outcome, &load);
}

#[test]
fn a_load_that_both_computes_and_waits_gets_what_fills_the_cpu() {
    for (compute, sleep) in [(2, 20), (1, 5), (5, 100)] {
        let load = Load::steady(90, 10 * SECONDS, move |random, _| {
            let work = random.u64(1..=2 * compute * MILLIS);
            vec![Step::Compute(work), Step::Sleep(random.u64(1..=2 * sleep * MILLIS))]
        });
        let outcome = Setup::new(scaled(2, 100)).run(&load);
        let enough = 2 * (compute + sleep) / compute;
        println!("{} threads; the cores' worth is {enough}", outcome.most_threads());
        assert!(u64::from(outcome.most_threads()) <= 2 * enough + 4);
        assert_best(&outcome, &load);
    }
}

#[test]
fn a_pool_that_turns_to_computing_gives_up_the_threads_that_crowd_the_cpu() {
    let load = Load::steady(80, 40 * SECONDS, |_, now| match now < 5 * SECONDS {
        true => vec![Step::Compute(MILLIS / 10), Step::Sleep(50 * MILLIS)],
        false => vec![Step::Compute(20 * MILLIS)],
    });
    let outcome = Setup::new(scaled(2, 100)).run(&load);
    assert!(outcome.threads_at(5 * SECONDS) >= 80);
    assert!(outcome.threads_at(35 * SECONDS) <= 12, "{}", outcome.threads_at(35 * SECONDS));
}

#[test]
fn slow_boots_that_wait_are_made_side_by_side() {
    let mut setup = Setup::new(scaled(2, 60));
    setup.boot = Boot { compute: 2 * MILLIS, sleep: 300 * MILLIS };
    let outcome = setup.run(&Load::steady(60, 2 * SECONDS, crate::simulator::blocking(50)));
    assert!(outcome.reached(60).is_some_and(|time| time < 300 * MILLIS), "{:?}", outcome.reached(60));
}

#[test]
fn slow_boots_that_compute_do_not_crowd_the_cpu() {
    let mut setup = Setup::new(scaled(2, 60));
    setup.boot = Boot { compute: 100 * MILLIS, sleep: 0 };
    let outcome = setup.run(&Load::steady(60, 5 * SECONDS, crate::simulator::blocking(50)));
    println!("at most {} boots at once", outcome.most_booting);
    assert!(outcome.most_booting <= 2 * 4, "{}", outcome.most_booting);
    assert!(outcome.reached(60).is_some_and(|time| time < 4 * SECONDS));
}

#[test]
fn after_a_stall_slow_boots_are_ordered_ahead_of_need() {
    let mut setup = Setup::new(scaled(2, 100));
    setup.boot = Boot { compute: 100 * MILLIS, sleep: 200 * MILLIS };
    let users = |now: Nanos| 4.0 + now as f64 / SECONDS as f64;
    let load = Load::new(40 * SECONDS, users, crate::simulator::blocking_about(50));
    let outcome = setup.run(&load);
    let ratio = outcome.handled() as f64 / Setup::new(Size::Fixed(60)).run(&load).handled() as f64;
    println!("{:.1} % of the best, p99 {} ms", ratio * 100.0, outcome.percentile(99) / MILLIS);
    assert!(ratio >= BAR);
    assert!(outcome.percentile(99) < 80 * MILLIS);
    assert!(outcome.most_threads() <= 44 + 7);
}

#[test]
fn the_memory_limit_is_not_reached() {
    const MIB: u64 = 1 << 20;
    let mut setup = Setup::new(scaled(2, 100));
    setup.memory = Some(MemoryModel { limit: 512 * MIB, base: 100 * MIB, per_thread: 20 * MIB });
    let outcome = setup.run(&Load::steady(100, 3 * SECONDS, crate::simulator::blocking(100)));
    assert!(outcome.most_memory <= 480 * MIB, "{}", outcome.most_memory / MIB);
    assert_eq!(outcome.most_threads(), 19);
}

#[test]
fn an_idle_pool_shrinks_to_its_least_and_gives_the_memory_back() {
    let users = |now: Nanos| if now < 3 * SECONDS { 80.0 } else { 0.0 };
    let outcome =
        Setup::new(scaled(2, 100)).run(&Load::new(30 * SECONDS, users, crate::simulator::blocking(20)));
    assert!(outcome.threads_at(3 * SECONDS) >= 80);
    assert!(outcome.threads_at(7 * SECONDS) >= 80, "it shrank before its time");
    assert_eq!(outcome.threads_at(20 * SECONDS), 2);
    let down = outcome.changes.iter().filter(|change| matches!(change.decision, Decision::Remove { .. }));
    assert!(down.count() > 5, "it shrank at one stroke");
}

#[test]
fn what_the_operator_sets_is_kept() {
    let mut setup = Setup::new(scaled(2, 100));
    setup.by_hand = vec![(2 * SECONDS, 20), (20 * SECONDS, 5)];
    let outcome = setup.run(&Load::steady(1, 40 * SECONDS, crate::simulator::blocking(20)));
    assert_eq!(outcome.threads_at(2 * SECONDS - 1), 2);
    assert_eq!(outcome.threads_at(3 * SECONDS), 20);
    assert_eq!(outcome.threads_at(19 * SECONDS), 20);
    assert_eq!(outcome.threads_at(39 * SECONDS), 5);
}

/// Holds the outcome against the best pool of a fixed size.
fn assert_best(outcome: &Outcome, load: &Load) {
    let sizes = [2, 3, 4, 6, 9, 13, 20, 25, 30, 40, 50, 65, 80, 100];
    let best = sizes.map(|size| Setup::new(Size::Fixed(size)).run(load).handled()).into_iter().max();
    let ratio = outcome.handled() as f64 / best.expect("invariant: there are sizes") as f64;
    println!("{:.1} % of the best", ratio * 100.0);
    assert!(ratio >= BAR, "{ratio}");
}
