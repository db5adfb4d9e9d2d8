//! What the CPU allows: how much of it one busy thread takes, and how much of it is left.

use super::Observation;
use super::decay::kept;
use std::time::Duration;

/// The CPU share of a thread is a mean over about this time: a few samples.
const SHARE_WINDOW: Duration = Duration::from_millis(40);
/// The idle time of the CPU is a mean over about this time: long enough to tell 5 % from none.
const IDLE_WINDOW: Duration = Duration::from_millis(100);
/// The share of one look in that mean, however long the pause before it was.
const AT_MOST: f64 = 0.25;
/// With less idle time than this share, the CPU is the limit.
const IDLE: f64 = 0.04;
/// With less idle time than this share, the CPU is full.
const FULL: f64 = 0.005;
/// As many runnable threads on each CPU are a crowd, if the CPU is full.
const CROWD: f64 = 4.0;

/// Fed with samples of how many threads are runnable at an instant, which by themselves mean little.
#[derive(Debug, Clone, Default)]
pub struct CpuMeter {
    at: Option<Duration>,
    /// Weighted sums over the samples of the share window.
    busy: f64,
    runnable: f64,
    /// The CPUs that other pools leave to this one, in the last sample.
    room: f64,
    cores: f64,
    /// Means over the idle window: idle CPUs, and runnable threads.
    idle: f64,
    crowd: f64,
    /// As `idle`, but only over looks at which requests waited: what more threads could have used.
    missed: f64,
    crowded_since: Option<Duration>,
}

impl CpuMeter {
    /// Says no, and takes nothing in, if time runs backwards.
    pub fn sample(&mut self, seen: &Observation) -> bool {
        let first = self.at.is_none();
        let at = self.at.unwrap_or(seen.now);
        let Some(elapsed) = seen.now.checked_sub(at) else { return false };
        if first || elapsed > Duration::ZERO {
            self.take_in(seen, if first { Duration::MAX } else { elapsed });
            self.at = Some(seen.now);
        }
        true
    }

    /// The share of busy threads that are off the CPU, 0 to 1.
    pub fn blocked(&self) -> f64 {
        if self.busy > 0.0 { 1.0 - self.runnable / self.busy } else { 0.0 }
    }

    /// Busy threads that the CPU can feed: b·c/r with r runnable of b busy on c CPUs, where r and b are sums over
    /// samples. One more in both (the rule of succession) keeps the answer small while samples are few: it grows with
    /// the evidence.
    pub fn feeds(&self) -> u32 {
        (self.room * (self.busy + 1.0) / (self.runnable + 1.0)).round() as u32
    }

    /// Whether one more thread would find the CPU idle at times, though requests wait.
    pub fn has_idle_time(&self) -> bool {
        self.missed > IDLE * self.cores
    }

    /// The pool has changed: what was idle before says nothing of it.
    pub fn forget_idle_time(&mut self) {
        self.missed = 0.0;
    }

    /// Threads too many, if the CPU has been crowded for `time`.
    pub fn crowd_for(&self, time: Duration) -> Option<u32> {
        let crowded = self.at?.saturating_sub(self.crowded_since?) >= time;
        crowded.then_some((self.crowd - CROWD * self.cores) as u32)
    }

    fn take_in(&mut self, seen: &Observation, elapsed: Duration) {
        let threads = seen.threads;
        let active = threads.busy.saturating_sub(threads.stuck);
        let runnable = f64::from(threads.runnable.min(active));
        self.cores = f64::from(seen.cores);
        self.room = (self.cores - f64::from(seen.runnable_elsewhere)).max(0.0);

        let old = kept(elapsed, SHARE_WINDOW);
        self.busy = self.busy * old + f64::from(active);
        self.runnable = self.runnable * old + runnable;

        let new = 1.0 - kept(elapsed, IDLE_WINDOW);
        let idle = (self.room - runnable - f64::from(threads.booting_runnable)).max(0.0);
        self.idle += (idle - self.idle) * new;
        self.crowd += (runnable - self.crowd) * new;
        if seen.anybody_waits() {
            self.missed += (idle - self.missed) * new.min(AT_MOST);
        }
        self.watch_crowd(seen.now);
    }

    fn watch_crowd(&mut self, now: Duration) {
        let crowded = self.idle < FULL * self.cores && self.crowd > CROWD * self.cores + 1.0;
        self.crowded_since = crowded.then(|| self.crowded_since.unwrap_or(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::Threads;

    fn seen(millis: u64, busy: u16, runnable: u16) -> Observation {
        Observation {
            now: Duration::from_millis(millis),
            waiting: 1,
            held_back: 0,
            lanes_need: 0,
            oldest_wait: Duration::ZERO,
            started: 0,
            threads: Threads { busy, runnable, ..Threads::default() },
            boot_time: Duration::ZERO,
            cores: 4.0,
            runnable_elsewhere: 0,
            memory: None,
        }
    }

    fn after(samples: &[(u16, u16)]) -> CpuMeter {
        let mut meter = CpuMeter::default();
        for (millis, &(busy, runnable)) in samples.iter().enumerate() {
            assert!(meter.sample(&seen(millis as u64, busy, runnable)));
        }
        meter
    }

    #[test]
    fn the_more_samples_show_blocked_threads_the_more_the_cpu_is_said_to_feed() {
        assert_eq!(after(&[(10, 0)]).feeds(), 44);
        assert!(after(&[(10, 0); 5]).feeds() > 150);
        assert_eq!(after(&[(10, 0); 5]).blocked(), 1.0);
    }

    #[test]
    fn threads_that_take_half_a_core_each_are_fed_by_twice_as_many_cores() {
        let feeds = after(&[(10, 5); 100]).feeds();
        assert!((7..=8).contains(&feeds), "{feeds}");
    }

    #[test]
    fn idle_time_is_what_no_runnable_thread_uses_while_requests_wait() {
        assert!(after(&[(10, 3); 100]).has_idle_time());
        assert!(!after(&[(10, 4); 100]).has_idle_time());

        let mut meter = CpuMeter::default();
        for millis in 0..100 {
            meter.sample(&Observation { waiting: 0, ..seen(millis, 0, 0) });
        }
        meter.sample(&seen(200, 10, 10));
        assert!(!meter.has_idle_time());
    }

    #[test]
    fn idle_time_from_before_the_pool_grew_does_not_count() {
        let mut meter = after(&[(10, 3); 100]);
        meter.forget_idle_time();
        assert!(!meter.has_idle_time());
    }

    #[test]
    fn a_crowd_counts_only_after_it_has_lasted() {
        let meter = after(&[(40, 40); 200]);
        assert_eq!(meter.crowd_for(Duration::from_millis(100)), Some(24));
        assert_eq!(meter.crowd_for(Duration::from_millis(300)), None);
    }

    #[test]
    fn time_that_runs_backwards_is_not_taken_in() {
        let mut meter = after(&[(10, 0); 5]);
        let before = meter.feeds();
        assert!(!meter.sample(&seen(1, 10, 10)));
        assert_eq!(meter.feeds(), before);
    }
}
