//! The rules of the policy one by one, on a few observations each.

use regent_dispatch::scaling::{Cause, Decision, Limits, Observation, Scaler, Threads};
use std::time::Duration;

const SLOW: Duration = ms(300);

#[test]
fn threads_are_added_when_the_head_of_the_queue_has_waited_and_the_others_are_blocked() {
    let decision = scaler().decide(&stalled(0, Threads { busy: 2, ..Threads::default() }));
    assert!(
        matches!(decision, Decision::Add { count: 2.., reason } if matches!(reason.cause, Cause::Stall { .. }))
    );
}

#[test]
fn a_head_that_has_just_come_adds_none() {
    let seen = Observation { oldest_wait: Duration::from_micros(300), ..stalled(0, busy(2)) };
    assert_eq!(scaler().decide(&seen), Decision::Keep);
}

#[test]
fn heads_that_wait_shortly_add_a_thread_when_there_is_always_one() {
    let short = |millis| Observation {
        oldest_wait: Duration::from_micros(300),
        waiting: 1,
        ..stalled(millis, busy(8))
    };
    let mut always = scaler();
    let mut rarely = scaler();
    let mut added = [0, 0];
    for millis in (0..400).step_by(2) {
        added[0] += usize::from(always.decide(&short(millis)) != Decision::Keep);
        let seen = Observation { waiting: u32::from(millis % 8 == 0), ..short(millis) };
        added[1] += usize::from(rarely.decide(&seen) != Decision::Keep);
    }
    assert!(added[0] > 0);
    assert_eq!(added[1], 0);
}

#[test]
fn stuck_threads_are_no_capacity() {
    let threads = Threads { busy: 10, stuck: 10, ..Threads::default() };
    // As many as two CPUs are given in any case.
    assert!(matches!(scaler().decide(&stalled(0, threads)), Decision::Add { count: 4, .. }));

    let computing = Threads { busy: 10, runnable: 10, ..Threads::default() };
    assert_eq!(scaler().decide(&stalled(0, computing)), Decision::Keep);
}

#[test]
fn beside_computations_that_take_far_longer_a_pool_has_as_many_threads_as_without_them() {
    let slow = |busy, slow| Threads { busy, runnable: busy, slow, ..Threads::default() };
    let mut scaler = scaler();
    let Decision::Add { count: 4, reason } = scaler.decide(&stalled(0, slow(6, 6))) else { panic!() };
    assert_eq!(reason.to_string(), "queue head waited 3.0 ms beside 6 slow requests: 6 → 10");
    assert_eq!(scaler.decide(&stalled(1, slow(10, 6))), Decision::Keep, "four are beside the slow ones");
    assert_eq!(scaler.threads_for_lanes(10), 6, "or the slow ones would fill those too");
    assert_eq!(scaler.decide(&seen(2, slow(10, 10))), Decision::Keep, "nobody waits");
}

#[test]
fn who_waits_for_a_lane_is_a_reason_to_grow_where_the_cpu_is_none_not_to() {
    let held_back = |millis, threads| Observation {
        held_back: 7,
        lanes_need: 12,
        waiting: 0,
        ..stalled(millis, threads)
    };
    let blocked = Threads { busy: 3, idle: 1, slow: 3, ..Threads::default() };
    let mut scaler = scaler();
    let added = (0..50).find_map(|millis| match scaler.decide(&held_back(millis, blocked)) {
        Decision::Add { count, .. } => Some(count),
        _ => None,
    });
    assert!(added.is_some_and(|count| count <= 8), "{added:?}");
    assert_eq!(scaler.threads_for_lanes(12), 12);

    let computing = Threads { runnable: 3, ..blocked };
    assert!((0..50).all(|millis| self::scaler().decide(&held_back(millis, computing)) == Decision::Keep));
}

#[test]
fn slow_requests_that_were_held_back_for_long_share_the_cpu_up_to_four_on_each() {
    let mut scaler = scaler();
    let mut threads = Threads { busy: 3, runnable: 3, idle: 1, slow: 3, ..Threads::default() };
    for millis in 0..2_000 {
        let held_back = Observation { held_back: 20, lanes_need: 30, waiting: 0, ..stalled(millis, threads) };
        let seen = Observation { oldest_wait: ms(millis.max(3)), ..held_back };
        let added = match scaler.decide(&seen) {
            Decision::Add { count, .. } => count,
            _ => 0,
        };
        assert!(millis >= 1_000 || added == 0, "after {millis} ms");
        threads.busy += added;
        (threads.runnable, threads.slow) = (threads.busy, threads.busy);
    }
    assert_eq!(threads.busy + threads.idle, 8, "of two cores");
    assert_eq!(scaler.threads_for_lanes(8), 8);
}

#[test]
fn cpus_that_other_pools_use_do_not_count() {
    let half_blocked = Threads { busy: 8, runnable: 2, ..Threads::default() };
    let mut alone = scaler();
    let mut beside = scaler();
    let mut last = [Decision::Keep; 2];
    for millis in 0..200 {
        let seen = stalled(millis, half_blocked);
        last[0] = alone.decide(&Observation { cores: 4.0, ..seen });
        last[1] = beside.decide(&Observation { cores: 4.0, runnable_elsewhere: 2, ..seen });
    }
    assert!(matches!(last[0], Decision::Add { .. }));
    assert_eq!(last[1], Decision::Keep);
}

#[test]
fn after_a_stall_a_reserve_is_ordered_if_boots_are_slow() {
    for (boot_time, expected) in [(SLOW, 2), (ms(1), 0)] {
        let mut scaler = scaler();
        scaler.decide(&Observation { boot_time, ..stalled(0, busy(8)) });
        let added = match scaler.decide(&Observation { boot_time, ..seen(1_000, busy(8)) }) {
            Decision::Add { count, reason } if reason.cause == Cause::Reserve => count,
            _ => 0,
        };
        assert_eq!(added, expected);
    }
}

#[test]
fn without_a_stall_there_is_no_reserve() {
    let seen = Observation { boot_time: SLOW, ..seen(0, busy(8)) };
    assert_eq!(scaler().decide(&seen), Decision::Keep);
}

#[test]
fn a_backlog_that_drains_before_a_boot_is_over_adds_threads_only_if_it_stays() {
    let mut scaler = scaler();
    // One request starts in each millisecond, so that 20 are gone in 20 ms.
    let short = |millis: u64| Observation {
        boot_time: SLOW,
        started: millis,
        waiting: 20,
        ..stalled(millis, busy(8))
    };
    scaler.decide(&Observation { waiting: 0, ..short(0) });
    let mut meets = |millis| is_for_the_stall(scaler.decide(&short(millis)));
    assert!(!(100..140).any(&mut meets));
    assert!(meets(160));
}

#[test]
fn what_was_idle_before_the_first_look_is_not_known() {
    let mut scaler = scaler();
    let idle = |second: u64| seen(second * 1_000, Threads { idle: 20, ..Threads::default() });
    assert_eq!(scaler.decide(&idle(1_000)), Decision::Keep);
    assert_eq!(scaler.decide(&idle(1_004)), Decision::Keep);
    assert!(matches!(scaler.decide(&idle(1_006)), Decision::Remove { .. }));
}

#[test]
fn a_pool_outside_its_limits_is_brought_back() {
    let Decision::Add { count: 2, reason } = scaler().decide(&seen(0, Threads::default())) else { panic!() };
    assert_eq!(reason.to_string(), "below the minimum: 0 → 2");
    let Decision::Remove { count: 5, reason } = scaler().decide(&seen(0, busy(105))) else { panic!() };
    assert_eq!(reason.to_string(), "above the maximum: 105 → 100");
}

#[test]
fn what_boots_already_is_not_ordered_again() {
    let threads = Threads { booting: 5, busy: 2, ..Threads::default() };
    assert_eq!(scaler().decide(&stalled(0, threads)), Decision::Keep);
}

fn is_for_the_stall(decision: Decision) -> bool {
    matches!(decision, Decision::Add { reason, .. } if matches!(reason.cause, Cause::Stall { .. }))
}

fn scaler() -> Scaler {
    Scaler::new(Limits { least: 2, most: 100, max_idle: Duration::from_secs(5) })
}

fn busy(busy: u16) -> Threads {
    Threads { busy, ..Threads::default() }
}

/// Five requests wait.
fn stalled(millis: u64, threads: Threads) -> Observation {
    Observation { waiting: 5, oldest_wait: ms(3), ..seen(millis, threads) }
}

fn seen(millis: u64, threads: Threads) -> Observation {
    Observation {
        now: ms(millis),
        waiting: 0,
        held_back: 0,
        lanes_need: 0,
        oldest_wait: Duration::ZERO,
        started: 0,
        threads,
        boot_time: ms(1),
        cores: 2.0,
        runnable_elsewhere: 0,
        memory: None,
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
