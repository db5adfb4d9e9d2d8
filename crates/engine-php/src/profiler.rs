//! The profiler: looks at all busy threads again and again, and counts the stacks that it sees. The threads notice nothing
//! of it but the processor time that it takes.

mod names;
mod report;
mod tally;

use crate::ffi::{self, Sample};
use names::Names;
use regent_engine_host::Reporter;
use regent_wire::control::{ProfileEnd, ProfileOrder};
use regent_wire::{Engine, ThreadState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tally::Tally;

/// Looks a second, at most.
const MOST_HERTZ: u32 = 1000;

/// The pools of the threads that run, by the threads' numbers.
pub type PoolsOfThreads = Arc<Mutex<HashMap<u16, u16>>>;

/// Takes a profile at a time.
#[derive(Default)]
pub struct Profiler {
    /// Of the profile that is under way: tells it to end.
    given_up: Mutex<Arc<AtomicBool>>,
}

impl Profiler {
    /// Begins a profile, and gives up the one before.
    pub fn begin(
        &self,
        order: ProfileOrder,
        engine: &Arc<Engine>,
        threads: &PoolsOfThreads,
        reporter: &Arc<Reporter>,
    ) {
        let given_up = Arc::new(AtomicBool::new(false));
        let before = std::mem::replace(
            &mut *self.given_up.lock().unwrap_or_else(PoisonError::into_inner),
            Arc::clone(&given_up),
        );
        before.store(true, Ordering::Relaxed);
        let (engine, threads) = (Arc::clone(engine), Arc::clone(threads));
        let reporter = Arc::clone(reporter);
        let take = move || {
            let number = order.number;
            let mut profile = Profile::new(order, engine, threads);
            let end = profile.take(&given_up);
            if !given_up.load(Ordering::Relaxed) {
                report::send(number, profile.names, profile.tally, end, &reporter);
            }
        };
        // Without a thread for it whoever ordered the profile is told so by the silence.
        drop(thread::Builder::new().name("profiler".into()).spawn(take));
    }
}

/// A profile that is being taken.
struct Profile {
    order: ProfileOrder,
    engine: Arc<Engine>,
    threads: PoolsOfThreads,
    sample: Box<Sample>,
    names: Names,
    tally: Tally,
    /// What the threads had spent on a CPU at the last look.
    cpu: HashMap<u16, i64>,
}

impl Profile {
    fn new(order: ProfileOrder, engine: Arc<Engine>, threads: PoolsOfThreads) -> Self {
        Self {
            order,
            engine,
            threads,
            sample: Box::new(Sample::EMPTY),
            names: Names::default(),
            tally: Tally::default(),
            cpu: HashMap::new(),
        }
    }

    fn take(&mut self, given_up: &AtomicBool) -> ProfileEnd {
        let step = Duration::from_secs(1) / self.order.hertz.clamp(1, MOST_HERTZ);
        let begun = Instant::now();
        let end = begun + Duration::from_millis(self.order.duration_ms);
        let mut looks = 0;
        let mut next = begun;
        while !given_up.load(Ordering::Relaxed) {
            self.look();
            looks += 1;
            // Looks that are late are left out: two at once would show the same.
            next = (next + uneven(step, looks)).max(Instant::now());
            if next >= end {
                break;
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        ProfileEnd { duration_ms: begun.elapsed().as_millis() as u64, looks, lost: self.tally.lost() }
    }

    fn look(&mut self) {
        self.names.begin_look();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.cpu.retain(|thread, _| threads.contains_key(thread));
        for (thread, pool) in threads {
            if self.order.pool.is_none_or(|wanted| wanted == pool) {
                self.look_at(thread);
            }
        }
    }

    fn look_at(&mut self, thread: u16) {
        let is_busy = self.engine.region().thread_view(thread.into()).state == ThreadState::Busy;
        // SAFETY: law 5: a struct of ours, for the time of the call; what the thread does meanwhile is its own.
        let found = unsafe { ffi::regent_php_sample(thread.into(), is_busy.into(), &raw mut *self.sample) };
        if found == 0 {
            return;
        }
        let spent = self.sample.cpu - self.cpu.insert(thread, self.sample.cpu).unwrap_or(self.sample.cpu);
        let path = path_of(self.sample.uri());
        if self.sample.functions().is_empty() || !path.starts_with(&*self.order.path) {
            return;
        }
        let path = self.names.path(&path);
        let functions = self.sample.functions().iter().rev().map(|function| self.names.function(function));
        self.tally.count(path, functions.collect(), Duration::from_nanos(spent.try_into().unwrap_or(0)));
    }
}

/// Between three quarters and five quarters of a step: what happens at regular times is seen as often as it is there.
fn uneven(step: Duration, look: u64) -> Duration {
    // The golden ratio spreads the multiples evenly over the range (Weyl's equidistribution).
    let part = (look as f64 * 0.618_033_988_749_895).fract();
    step.mul_f64(0.75 + part / 2.0)
}

/// Without the query.
fn path_of(uri: &[u8]) -> String {
    let end = uri.iter().position(|byte| *byte == b'?').unwrap_or(uri.len());
    String::from_utf8_lossy(&uri[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_at_uneven_times_that_add_up() {
        let step = Duration::from_millis(10);
        let steps: Vec<_> = (0..1000).map(|look| uneven(step, look)).collect();
        assert!(steps.iter().all(|step| (7500..=12500).contains(&step.as_micros())));
        let sum: Duration = steps.iter().sum();
        assert!((9_900..=10_100).contains(&sum.as_millis()), "{sum:?}");
        assert_ne!(steps[1], steps[2]);
    }

    #[test]
    fn a_path_ends_at_the_query() {
        assert_eq!(path_of(b"/a/b?c=/d"), "/a/b");
        assert_eq!(path_of(b"/\xFF"), "/\u{FFFD}");
        assert_eq!(path_of(b""), "");
    }
}
