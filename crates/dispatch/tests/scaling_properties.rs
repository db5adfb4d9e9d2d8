//! What holds for the policy whatever it is shown.

use proptest::collection::vec;
use proptest::prelude::*;
use regent_dispatch::scaling::{Decision, Limits, Memory, Observation, Scaler, Threads};
use std::time::Duration;

proptest! {
    #[test]
    fn no_decision_leaves_the_limits(limits in limits(), observations in vec(anything(), 1..40)) {
        let mut scaler = Scaler::new(limits);
        for seen in &observations {
            holds(limits, seen, scaler.decide(seen))?;
        }
    }

    /// Time goes on here, and figures are such as a pool may have, so that every rule has its turn.
    #[test]
    fn no_decision_leaves_the_limits_in_the_course_of_time(
        limits in limits(),
        steps in vec((1..5_000u64, plausible()), 1..200),
    ) {
        let mut scaler = Scaler::new(limits);
        let mut now = Duration::ZERO;
        for (millis, seen) in steps {
            now += Duration::from_millis(millis);
            let seen = Observation { now, ..seen };
            holds(limits, &seen, scaler.decide(&seen))?;
        }
    }

    #[test]
    fn a_pool_without_a_possible_cpu_is_kept(limits in limits(), seen in anything(), cores in impossible_cores()) {
        let seen = Observation { cores, ..seen };
        prop_assert_eq!(Scaler::new(limits).decide(&seen), Decision::Keep);
    }

    #[test]
    fn a_pool_is_kept_when_time_runs_backwards(
        limits in limits(),
        first in anything(),
        then in anything(),
        times in (0..1_000u64, 1_000..2_000u64),
    ) {
        let mut scaler = Scaler::new(limits);
        scaler.decide(&Observation { now: Duration::from_millis(times.1), cores: 2.0, ..first });
        let earlier = Observation { now: Duration::from_millis(times.0), cores: 2.0, ..then };
        prop_assert_eq!(scaler.decide(&earlier), Decision::Keep);
    }
}

fn holds(limits: Limits, seen: &Observation, decision: Decision) -> Result<(), TestCaseError> {
    let threads = seen.threads;
    let total = u32::from(threads.booting) + u32::from(threads.idle) + u32::from(threads.busy);
    match decision {
        Decision::Keep => {}
        Decision::Add { count, reason } => {
            prop_assert!(count > 0 && total + u32::from(count) <= limits.most.into());
            prop_assert_eq!((reason.from, reason.to), (total, total + u32::from(count)));
            prop_assert!(seen.memory.is_none_or(|memory| has_room(&memory, count)));
        }
        Decision::Remove { count, reason } => {
            let least = limits.least.min(limits.most);
            prop_assert!(count > 0 && total >= u32::from(least) + u32::from(count));
            prop_assert_eq!((reason.from, reason.to), (total, total - u32::from(count)));
        }
    }
    Ok(())
}

fn has_room(memory: &Memory, threads: u16) -> bool {
    let more = u128::from(threads) * u128::from(memory.per_thread);
    u128::from(memory.used) + more <= u128::from(memory.limit)
}

fn limits() -> impl Strategy<Value = Limits> {
    let bound = || prop_oneof![0..20u16, any::<u16>()];
    (bound(), bound(), duration()).prop_map(|(least, most, max_idle)| Limits { least, most, max_idle })
}

fn anything() -> impl Strategy<Value = Observation> {
    let waits = ([any::<u32>(), any::<u32>(), any::<u32>()], duration(), any::<u64>());
    let cpu = (any::<f32>(), any::<u16>());
    (duration(), waits, threads(any::<u16>()), duration(), cpu, memory(any::<u64>())).prop_map(
        |(now, waits, threads, boot_time, cpu, memory)| {
            observation(now, waits, threads, boot_time, cpu, memory)
        },
    )
}

fn plausible() -> impl Strategy<Value = Observation> {
    let few = || prop_oneof![Just(0), 0..300u32];
    let waits = ([few(), few(), few()], (0..20u64).prop_map(Duration::from_millis), 0..100_000u64);
    let cpu = (0.1..64f32, 0..8u16);
    let boot_time = (0..400u64).prop_map(Duration::from_millis);
    (Just(Duration::ZERO), waits, threads(0..40u16), boot_time, cpu, memory(0..1_000u64)).prop_map(
        |(now, waits, threads, boot_time, cpu, memory)| {
            observation(now, waits, threads, boot_time, cpu, memory)
        },
    )
}

fn observation(
    now: Duration,
    ([waiting, held_back, lanes_need], oldest_wait, started): ([u32; 3], Duration, u64),
    threads: Threads,
    boot_time: Duration,
    (cores, runnable_elsewhere): (f32, u16),
    memory: Option<Memory>,
) -> Observation {
    Observation {
        now,
        waiting,
        held_back,
        lanes_need,
        oldest_wait,
        started,
        threads,
        boot_time,
        cores,
        runnable_elsewhere,
        memory,
    }
}

fn threads(count: impl Strategy<Value = u16> + Clone) -> impl Strategy<Value = Threads> {
    vec(count, 7).prop_map(|counts| Threads {
        booting: counts[0],
        booting_runnable: counts[1],
        idle: counts[2],
        busy: counts[3],
        runnable: counts[4],
        stuck: counts[5],
        slow: counts[6],
    })
}

fn memory(bytes: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = Option<Memory>> {
    let some = vec(bytes, 3);
    proptest::option::of(some.prop_map(|sizes| Memory {
        limit: sizes[0],
        used: sizes[1],
        per_thread: sizes[2],
    }))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..10_000u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_nanos),
    ]
}

fn impossible_cores() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(0.0),
        Just(-0.0),
        Just(-2.0),
        Just(f32::MAX),
    ]
}
