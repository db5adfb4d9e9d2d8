//! A run of many tests: a server for each group, and its tests over one connection or sixteen.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::case::{Case, Group};
use crate::options::Mode;
use crate::report::Report;
use crate::server::{CONNECTIONS, Client, start};
use crate::trial::{Outcome, Trials};
use crate::turns::Turns;

const BETWEEN_NEWS: Duration = Duration::from_secs(10);

/// Runs all groups and adds what comes out to the report.
pub fn run(trials: &Trials<'_>, groups: &[Group], seed: u64, report: &Mutex<Report<'_>>) -> Result<()> {
    let progress = Progress::new(trials.mode, groups);
    groups.iter().try_for_each(|group| run_group(trials, group, seed, report, &progress))
}

fn run_group(
    trials: &Trials<'_>,
    group: &Group,
    seed: u64,
    report: &Mutex<Report<'_>>,
    progress: &Progress,
) -> Result<()> {
    let prepared = trials.php.prepare(&group.settings)?;
    let server = start(trials.mode, trials.place, &prepared);
    let (order, clients) = match trials.mode {
        Mode::Shuffled => (shuffled(&group.cases, seed), CONNECTIONS.min(group.cases.len())),
        Mode::Classic | Mode::Worker => (group.cases.iter().collect(), 1),
    };
    let queue = Mutex::new(order.into_iter());
    let turns = Turns::default();
    let client = || -> Result<()> {
        let mut client = Client::new(server.as_ref());
        while let Some(case) = next(&queue) {
            let turn = turns.take(case.conflicts(trials.place));
            let outcome = trials.run(case, &prepared, &mut client);
            drop(turn);
            let mut report =
                report.lock().map_err(|_| anyhow!("another connection's thread has panicked"))?;
            report.add(&case.path, &outcome)?;
            progress.tell(&report);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        clients.into_iter().try_for_each(|client| {
            client.join().map_err(|_| anyhow!("a connection's thread has panicked"))?
        })
    })
}

/// What no server can be asked.
pub fn skip(skipped: Vec<(PathBuf, String)>, report: &mut Report<'_>) -> Result<()> {
    skipped.into_iter().try_for_each(|(test, reason)| report.add(&test, &Outcome::Skipped(reason)))
}

fn next<'a>(queue: &Mutex<impl Iterator<Item = &'a Case>>) -> Option<&'a Case> {
    queue.lock().expect("no holder panics").next()
}

/// Fisher and Yates's shuffle, with Marsaglia's xorshift: the same order for the same seed.
fn shuffled(cases: &[Case], seed: u64) -> Vec<&Case> {
    let mut order: Vec<_> = cases.iter().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = usize::try_from(state % (last as u64 + 1)).expect("it is an index");
        order.swap(last, other);
    }
    order
}

/// Says now and then how far the run is.
struct Progress {
    mode: Mode,
    tests: usize,
    told: Mutex<Instant>,
}

impl Progress {
    fn new(mode: Mode, groups: &[Group]) -> Self {
        let tests = groups.iter().map(|group| group.cases.len()).sum();
        Self { mode, tests, told: Mutex::new(Instant::now()) }
    }

    #[expect(clippy::disallowed_methods, reason = "how often progress is printed")]
    fn tell(&self, report: &Report<'_>) {
        let mut told = self.told.lock().expect("no holder panics");
        if told.elapsed() > BETWEEN_NEWS {
            *told = Instant::now();
            let (done, differing) = report.progress();
            eprintln!("phpt  {}: {done} of {} tests, {differing} differ", self.mode.name(), self.tests);
        }
    }
}
