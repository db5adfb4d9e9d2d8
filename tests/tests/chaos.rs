//! Everything goes wrong at once, and each request that did not itself misbehave, or share a process with one that crashed at
//! that instant, gets its right answer. Fifteen seconds here; `make chaos` goes on for ten minutes. What is checked stands in
//! `src/chaos/oracle.rs`.
#![forbid(unsafe_code)]

use regent_tests::chaos::Clock;
use regent_tests::chaos::events::LogReader;
use regent_tests::chaos::faults::FAULTS;
use regent_tests::chaos::injector::{Injection, Injector, Wishes};
use regent_tests::chaos::load::Load;
use regent_tests::chaos::oracle::{Judgement, judge};
use regent_tests::chaos::profiles::Profiles;
use regent_tests::chaos::question::Versions;
use regent_tests::chaos::report::Run;
use regent_tests::chaos::site::Site;
use regent_tests::chaos::usage::{self, Usage};
use regent_tests::{Server, chaos, php};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Seconds of chaos, the time before and after not counted.
const LENGTH: &str = "REGENT_CHAOS_SECONDS";
const SHORT: f64 = 12.0;
/// From which on it is no short form any more.
const LONG: f64 = 60.0;
/// The order of the faults, to have one again.
const SEED: &str = "REGENT_CHAOS_SEED";
/// Requests a second, if the machine can do several times as many.
const RATE: f64 = 1000.0;
const SHORT_RATE: f64 = 300.0;
/// The part of the machine's capacity that the load may take: the faults take theirs.
const SHARE: f64 = 0.2;
/// Of the time of chaos, the part before the server's memory is looked at. Only there is it upgraded, which would begin the
/// memory anew.
const WARM_UP: f64 = 0.4;
/// Bytes that the server may have more than before, at rest: what the allocator keeps of the busiest moment since, for as many
/// threads as it has. What each fault left behind would come again with each, and there are hundreds.
const MORE_MEMORY: u64 = 24 << 20;
/// Descriptors: threads for blocking work come and go with theirs.
const MORE_DESCRIPTORS: usize = 4;

/// How long, and how fast.
struct Plan {
    length: Duration,
    rate: f64,
    pause: Duration,
    seed: u64,
}

/// What was found out, but for the verdict.
struct Found {
    capacity: f64,
    rate: f64,
    records: Vec<chaos::load::Record>,
    injections: Vec<Injection>,
    log: LogReader,
    usages: Vec<Usage>,
    profiles: Profiles,
    phases: Vec<(Duration, &'static str)>,
    at_rest: (Usage, Usage),
}

#[test]
fn chaos_costs_those_alone_who_ran_in_an_engine_that_died() {
    if php::is_in_processes() {
        println!("SKIPPED: chaos, since this PHP runs in processes: processes.rs");
        return;
    }
    let plan = Plan::of_the_environment();
    println!("chaos for {:?}, {SEED}={}", plan.length, plan.seed);
    usage::adopt_orphans().expect("Linux 3.4");
    let (versions, clock) = (Versions::default(), Clock::start());
    let mut server = Site::confined().bounded_setup(&versions).start();
    let found = run(&plan, &mut server, &versions, clock);
    server.stop();
    let left = until_nothing_is_left();

    let judgement = judge(&found.records, &found.injections, found.log.events());
    let mut complaints = complaints(&found, &judgement, plan.length.as_secs_f64() >= LONG);
    complaints
        .extend(left.iter().map(|(pid, command)| format!("left running after the stop: {pid} {command}")));
    let page = report(&found, &judgement, plan.seed, &complaints);
    println!("the report is in {}", page.display());
    assert!(complaints.is_empty(), "{complaints:#?}");
}

impl Plan {
    fn of_the_environment() -> Self {
        let number = |name| std::env::var(name).ok().map(|text| text.parse::<f64>().expect("a number"));
        let seconds = number(LENGTH).unwrap_or(SHORT);
        let is_long = seconds >= LONG;
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("it is later than 1970");
        Self {
            length: Duration::from_secs_f64(seconds),
            rate: if is_long { RATE } else { SHORT_RATE },
            pause: Duration::from_millis(if is_long { 1000 } else { 150 }),
            seed: number(SEED).map_or(now.as_secs(), |seed| seed as u64),
        }
    }
}

fn run(plan: &Plan, server: &mut Server, versions: &Versions, clock: Clock) -> Found {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let load = Load::new(server.address(), server.tls_address(), versions, clock, runtime.handle().clone());
    load.wait_until_ready();
    let capacity = load.calibrate(Duration::from_secs(1));
    let rate = plan.rate.min(capacity * SHARE);
    println!("{capacity:.0} requests a second are possible, {rate:.0} are sent");

    let (pid, is_over) = (AtomicU32::new(server.pid()), AtomicBool::new(false));
    let mut log = LogReader::new(clock);
    let mut phases = Vec::new();
    let mut records = Vec::new();
    let mut phase = |name, meanwhile: &mut dyn FnMut()| {
        phases.push((clock.now(), name));
        records.extend(load.during(rate, meanwhile).0);
    };
    let admin = server.admin();
    let (usages, profiles, at_rest, injections) = std::thread::scope(|scope| {
        let profiles = scope.spawn(|| Profiles::take(&admin, &clock, &is_over));
        let usages = scope.spawn(|| usage::follow(&pid, &clock, &is_over));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let quiet = plan.length.mul_f64(0.1).min(Duration::from_secs(20));
            phase("quiet", &mut || clock.sleep_until(clock.now() + quiet));
            let mut injector =
                Injector::new(server, Site::confined(), versions, &mut log, clock, &pid, plan.seed);
            let mut chaos = |name, share: f64, upgrades, most_descriptors| {
                let until = clock.now() + plan.length.mul_f64(share);
                phase(name, &mut || injector.inject(Wishes { until, pause: plan.pause, upgrades }));
                Usage::settled(injector.server(), &clock, most_descriptors)
            };
            let warm = chaos("chaos with upgrades", WARM_UP, true, usize::MAX);
            let end =
                chaos("chaos of one process", 1.0 - WARM_UP, false, warm.descriptors + MORE_DESCRIPTORS);
            ((warm, end), injector.into_injections())
        }));
        is_over.store(true, Ordering::Relaxed);
        let usages = usages.join().expect("it only looks");
        let profiles = profiles.join().expect("it only asks");
        let (at_rest, injections) = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (usages, profiles, at_rest, injections)
    });
    Found { capacity, rate, records, injections, log, usages, profiles, phases, at_rest }
}

/// What scripts have started ends by itself a moment later.
fn until_nothing_is_left() -> Vec<(u32, String)> {
    let mut left = Vec::new();
    for _ in 0..100 {
        left = usage::descendants();
        if left.is_empty() {
            break;
        }
        regent_tests::pause(Duration::from_millis(50));
    }
    left
}

fn complaints(found: &Found, judgement: &Judgement, is_long: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for place in judgement.lost() {
        complaints.push(format!("a request was lost: {:?}", found.records[place]));
    }
    for death in judgement.unexplained() {
        complaints.push(format!("an engine died of nothing that was done to it: {death:?}"));
    }
    for (place, injection) in found.injections.iter().enumerate() {
        if let Some(reason) = judgement.complaint(place, &found.injections) {
            let Injection { fault, from, .. } = injection;
            complaints.push(format!("{} at {from:?} was not as it should be: {reason}", FAULTS[*fault].name));
        }
    }
    let injected = |fault: &usize| found.injections.iter().any(|injection| injection.fault == *fault);
    let missing: Vec<&str> =
        (0..FAULTS.len()).filter(|fault| !injected(fault)).map(|fault| FAULTS[fault].name).collect();
    let may_be_missing = if is_long { usize::from(!Site::confined().has_user()) } else { FAULTS.len() - 10 };
    if missing.len() > may_be_missing {
        complaints.push(format!("faults that were never injected: {missing:?}"));
    }
    complaints.extend(found.profiles.wrong.iter().map(|answer| format!("no profile: {answer}")));
    if found.profiles.taken == 0 || found.profiles.samples == 0 {
        complaints.push(format!("no profile shows anything: {:?}", found.profiles));
    }
    complaints.extend(growth(&found.at_rest.0, &found.at_rest.1));
    complaints
}

fn growth(before: &Usage, after: &Usage) -> Vec<String> {
    assert_eq!(before.pid, after.pid, "it was one process");
    let mut complaints = Vec::new();
    if after.resident > before.resident + MORE_MEMORY {
        complaints.push(format!("the server's memory grows: {before:?}, {after:?}"));
    }
    if after.descriptors > before.descriptors + MORE_DESCRIPTORS {
        complaints.push(format!("the server keeps descriptors: {before:?}, {after:?}"));
    }
    complaints
}

fn report(found: &Found, judgement: &Judgement, seed: u64, complaints: &[String]) -> PathBuf {
    let run = Run {
        records: &found.records,
        injections: &found.injections,
        judgement,
        usages: &found.usages,
        troubles: found.log.troubles(),
        phases: &found.phases,
        capacity: found.capacity,
        rate: found.rate,
        seed,
        at_rest: found.at_rest,
        complaints,
    };
    println!("{}\n{:?}\n{:?}", run.markdown(), found.phases, found.profiles);
    run.write(&chaos::report::directory()).expect("the target directory can be written to")
}
