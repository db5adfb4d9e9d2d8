//! The profiler: looks at all busy threads again and again, and counts the stacks that it sees. The threads notice nothing
//! of it but the processor time that it takes. Where they are processes, it is in the one that runs no PHP, and the kernel
//! reads their memory for it: one that dies takes no sample along.

mod names;
mod report;
mod tally;

use crate::ffi::{self, Sample};
use names::Names;
use regent_engine_host::{Profiling, RunningThread};
use regent_wire::ThreadState;
use regent_wire::control::{Event, ProfileEnd};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tally::Tally;

/// Looks a second, at most.
const MOST_HERTZ: u32 = 1000;

/// Takes a profile at a time.
#[derive(Default)]
pub struct Profiler {
    /// Of the profile that is under way: tells it to end.
    given_up: Mutex<Arc<AtomicBool>>,
}

impl Profiler {
    /// Begins a profile, and gives up the one before.
    pub fn begin(&self, profiling: Profiling) {
        let given_up = Arc::new(AtomicBool::new(false));
        let before = std::mem::replace(
            &mut *self.given_up.lock().unwrap_or_else(PoisonError::into_inner),
            Arc::clone(&given_up),
        );
        before.store(true, Ordering::Relaxed);
        let take = move || {
            let mut profile = Profile::new(profiling);
            let end = profile.take(&given_up);
            if !given_up.load(Ordering::Relaxed) {
                profile.report(end);
            }
        };
        // Without a thread for it whoever ordered the profile is told so by the silence.
        drop(thread::Builder::new().name("profiler".into()).spawn(take));
    }
}

/// A profile that is being taken.
struct Profile {
    of: Profiling,
    sample: Box<Sample>,
    names: Names,
    tally: Tally,
    /// What the threads had spent on a CPU at the last look, by their numbers and processes.
    cpu: HashMap<(u16, i32), i64>,
    /// Some thread could be looked at.
    has_seen: bool,
}

/// The kernel does not let the engine look at its threads.
struct NotPermitted;

/// The profile that was ordered cannot be taken.
const NOT_PERMITTED: &str = "the kernel does not let the engine read the memory of its own PHP processes \
    (process_vm_readv): see the setting kernel.yama.ptrace_scope, which may be 0 or 1, and the seccomp profile of the container";

impl Profile {
    fn new(of: Profiling) -> Self {
        Self {
            of,
            sample: Box::new(Sample::EMPTY),
            names: Names::default(),
            tally: Tally::default(),
            cpu: HashMap::new(),
            has_seen: false,
        }
    }

    fn take(&mut self, given_up: &AtomicBool) -> Result<ProfileEnd, NotPermitted> {
        let step = Duration::from_secs(1) / self.of.order.hertz.clamp(1, MOST_HERTZ);
        let begun = Instant::now();
        let end = begun + Duration::from_millis(self.of.order.duration_ms);
        let mut looks = 0;
        let mut next = begun;
        while !given_up.load(Ordering::Relaxed) {
            self.look()?;
            looks += 1;
            // Looks that are late are left out: two at once would show the same.
            next = (next + uneven(step, looks)).max(Instant::now());
            if next >= end {
                break;
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(ProfileEnd { duration_ms: begun.elapsed().as_millis() as u64, looks, lost: self.tally.lost() })
    }

    fn report(self, end: Result<ProfileEnd, NotPermitted>) {
        let (number, reporter) = (self.of.order.number, self.of.reporter);
        match end {
            Ok(end) => report::send(number, self.names, self.tally, end, &reporter),
            Err(NotPermitted) => {
                reporter.send(&Event::ProfileRefused { number, reason: NOT_PERMITTED.to_owned() });
            }
        }
    }

    fn look(&mut self) -> Result<(), NotPermitted> {
        self.names.begin_look();
        let threads = (self.of.threads)();
        let known: HashSet<_> = threads.iter().map(known_as).collect();
        self.cpu.retain(|thread, _| known.contains(thread));
        for thread in threads {
            if self.of.order.pool.is_none_or(|wanted| wanted == thread.pool) {
                self.look_at(thread)?;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, thread: RunningThread) -> Result<(), NotPermitted> {
        let index = thread.index.into();
        let is_busy = self.of.engine.region().thread_view(index).state == ThreadState::Busy;
        let (number, process, sample) = (thread.index.into(), thread.process, &raw mut *self.sample);
        // SAFETY: law 5: a struct of ours, for the time of the call; what the thread does meanwhile is its own.
        match unsafe { ffi::regent_php_sample(number, process, is_busy.into(), sample) } {
            0 => return Ok(()),
            // A script may have closed its own process, but not all of them.
            ..0 if self.has_seen => return Ok(()),
            ..0 => return Err(NotPermitted),
            1.. => self.has_seen = true,
        }
        self.count(thread);
        Ok(())
    }

    fn count(&mut self, thread: RunningThread) {
        let now = self.sample.cpu;
        let spent = now - self.cpu.insert(known_as(&thread), now).unwrap_or(now);
        let path = path_of(self.sample.uri());
        if self.sample.functions().is_empty() || !path.starts_with(&*self.of.order.path) {
            return;
        }
        let path = self.names.path(&path);
        let functions = self.sample.functions().iter().rev().map(|function| self.names.function(function));
        self.tally.count(path, functions.collect(), Duration::from_nanos(spent.try_into().unwrap_or(0)));
    }
}

fn known_as(thread: &RunningThread) -> (u16, i32) {
    (thread.index, thread.process)
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
