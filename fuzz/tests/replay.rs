//! Every target with its seeds and with mutations of them, the same in each run: short enough for all tests.

use regent_fuzz::{Corpus, Mutator, Target, targets};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations of a target. A slow machine stops earlier, at `LONGEST`.
const MUTATIONS: usize = 4000;
const LONGEST: Duration = Duration::from_secs(10);

macro_rules! replays {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replays!(
    connection,
    http3,
    routes,
    config,
    caddyfile,
    frames,
    memory,
    matchers,
    module_answer,
    module_header,
    url_path,
    ranges,
    access_log,
    exposition,
    control,
);

fn replay(name: &str) {
    let target = Target::named(name).unwrap();
    let corpus = Corpus::of(name).unwrap();
    corpus.seeds.iter().for_each(|seed| run(target, seed));
    let started = Instant::now();
    // clock: a slow machine tries fewer mutations; what is asserted holds for any number.
    let in_time = |_: &Vec<u8>| started.elapsed() < LONGEST;
    let done =
        Mutator::new(&corpus).take(MUTATIONS).take_while(in_time).map(|input| run(target, &input)).count();
    println!("{name}: {} seeds, {done} mutations", corpus.seeds.len());
}

/// Leaves the input of a finding where `regent-fuzz` can read it.
fn run(target: Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = directory.join(format!("finding-{}", target.name));
        fs::write(&file, input).unwrap();
        eprintln!("finding: {}\n{}", file.display(), String::from_utf8_lossy(input));
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_target_is_replayed_and_has_a_binary() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let binaries = fs::read_dir(here.join("libfuzzer/src/bin")).unwrap();
    let binaries: BTreeSet<_> = binaries
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let targets: BTreeSet<_> = targets::ALL.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(targets, REPLAYED.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(targets, binaries);
}
