//! How many threads of a pool are at work at once.
//!
//! A pool has more threads than the machine has CPUs because requests wait for other things: a database, an API. Requests
//! that only compute gain nothing by that. The kernel interrupts each in the middle to let the others run, so that all
//! take longer, and some far longer: with eight threads on two CPUs the 99th percentile of a page of 0.7 ms is 12 ms, and
//! with two at work it is 5 ms. So while requests wait, as many threads are at work as there are CPUs, and one more for
//! each that waits for something else.
//!
//! Requests that compute for long are let alone: a short one must not wait until they have ended, but share the CPU with
//! them. So are those that are over before the kernel would interrupt them.

use crate::scaling::{Threads, kept};
use std::time::Duration;

/// A request that computes for longer could hold up others.
pub const LONG: Duration = Duration::from_millis(10);
/// Requests that are shorter in the mean are not interrupted often enough for it to matter.
const SHORT: Duration = Duration::from_micros(200);
/// How long one long request means that more are about.
const MEMORY: Duration = Duration::from_secs(1);
/// How many threads wait for something else, and how long requests take, are means over about this time.
const WINDOW: Duration = Duration::from_millis(100);

/// What the threads of a pool do while requests wait for one.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Monotonic, since any start.
    pub now: Duration,
    pub threads: Threads,
    /// CPUs that the server may use.
    pub cores: f32,
    /// Requests that the threads have taken so far, and the time that they have spent on those that have ended.
    pub taken: u64,
    pub spent: Duration,
    /// A request has computed for longer than [`LONG`].
    pub computes_long: bool,
}

/// The policy for one pool.
#[derive(Debug, Clone, Default)]
pub struct Concurrency {
    /// Busy threads off the CPU, in the mean.
    blocked: f64,
    /// What a request takes, in seconds, in the mean.
    takes: f64,
    /// Of the last look.
    seen: Duration,
    taken: u64,
    spent: Duration,
    /// When a request that computes for long was seen last.
    long: Option<Duration>,
}

impl Concurrency {
    /// The most threads that are to be at work now; `None`: all. To be called every few milliseconds while requests wait.
    pub fn most_at_work(&mut self, seen: &Seen) -> Option<u32> {
        let threads = seen.threads;
        let blocked = u32::from(threads.busy.saturating_sub(threads.runnable));
        self.count(seen, blocked);
        self.long = if seen.computes_long { Some(seen.now) } else { self.long };
        let long = self.long.is_some_and(|last| seen.now.saturating_sub(last) < MEMORY);
        if long || self.takes < SHORT.as_secs_f64() || seen.cores.is_nan() || seen.cores <= 0.0 {
            return None;
        }
        // Where all wait for something else, their number doubles with each look.
        let more = if threads.runnable == 0 { 2 * blocked } else { blocked };
        let usually = self.blocked.round() as u32;
        Some(seen.cores.ceil() as u32 + more.max(usually) + u32::from(threads.slow))
    }

    fn count(&mut self, seen: &Seen, blocked: u32) {
        let old = kept(seen.now.saturating_sub(self.seen), WINDOW);
        self.blocked = self.blocked * old + f64::from(blocked) * (1.0 - old);
        // Threads that have ended take what they have counted with them.
        let taken = seen.taken.saturating_sub(self.taken);
        if taken > 0 {
            let takes = seen.spent.saturating_sub(self.spent).as_secs_f64() / taken as f64;
            self.takes = self.takes * old + takes * (1.0 - old);
        }
        (self.seen, self.taken, self.spent) = (seen.now, seen.taken, seen.spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On two CPUs, with requests of a millisecond, of which there is one in each.
    fn seen(millis: u64, busy: u16, runnable: u16) -> Seen {
        let threads = Threads { busy, runnable, ..Threads::default() };
        let now = Duration::from_millis(millis);
        Seen { now, threads, cores: 2.0, taken: millis, spent: now, computes_long: false }
    }

    /// After a second of such looks, every two milliseconds.
    fn after_a_second_of(busy: u16, runnable: u16) -> Concurrency {
        let mut policy = Concurrency::default();
        for look in 0..500 {
            policy.most_at_work(&seen(2 * look, busy, runnable));
        }
        policy
    }

    #[test]
    fn as_many_compute_as_there_are_cpus() {
        let mut policy = after_a_second_of(8, 8);
        assert_eq!(policy.most_at_work(&seen(1000, 8, 8)), Some(2));
        let part = Seen { cores: 1.5, ..seen(1002, 2, 2) };
        assert_eq!(policy.most_at_work(&part), Some(2), "a part of a CPU counts as one");
    }

    #[test]
    fn each_that_waits_for_something_else_makes_room_for_one_more_at_once() {
        let mut policy = after_a_second_of(2, 2);
        assert_eq!(policy.most_at_work(&seen(1000, 2, 1)), Some(3));
        assert_eq!(policy.most_at_work(&seen(1002, 3, 2)), Some(3));
        assert_eq!(policy.most_at_work(&seen(1004, 3, 3)), Some(2), "it computes again");
    }

    #[test]
    fn where_all_wait_for_something_else_a_hundred_are_at_work_after_a_few_looks() {
        let mut policy = after_a_second_of(2, 2);
        let (mut at_work, mut looks) = (2, 0);
        while at_work < 100 {
            looks += 1;
            at_work = policy.most_at_work(&seen(1000 + looks, at_work as u16, 0)).unwrap();
        }
        assert!(looks <= 6, "{looks}");
    }

    #[test]
    fn those_that_usually_wait_for_something_else_are_made_up_for_though_they_compute_just_now() {
        let mut policy = after_a_second_of(6, 2);
        assert_eq!(policy.most_at_work(&seen(1000, 6, 6)), Some(6));
        assert_eq!(policy.most_at_work(&seen(3000, 6, 6)), Some(2), "no longer");
    }

    #[test]
    fn slow_requests_are_no_threads_for_others() {
        let mut policy = after_a_second_of(8, 8);
        let slow = Threads { slow: 4, ..seen(0, 8, 8).threads };
        assert_eq!(policy.most_at_work(&Seen { threads: slow, ..seen(1000, 8, 8) }), Some(6));
    }

    #[test]
    fn a_long_computation_lets_all_be_at_work_for_a_second() {
        let mut policy = after_a_second_of(8, 8);
        assert_eq!(policy.most_at_work(&Seen { computes_long: true, ..seen(1000, 8, 8) }), None);
        assert_eq!(policy.most_at_work(&seen(1999, 8, 8)), None);
        assert_eq!(policy.most_at_work(&seen(2000, 8, 8)), Some(2));
    }

    #[test]
    fn short_requests_are_let_alone() {
        let mut policy = after_a_second_of(8, 8);
        let mut short = |millis| {
            let spent = Duration::from_secs(1) + Duration::from_micros(30 * (millis - 1000));
            policy.most_at_work(&Seen { spent, ..seen(millis, 8, 8) })
        };
        assert_eq!(short(1001), Some(2), "one short request says nothing");
        assert!((1002..1500).any(|millis| short(millis).is_none()));
        assert_eq!(short(1500), None);
    }

    #[test]
    fn threads_that_have_ended_are_not_counted_as_requests() {
        let mut policy = after_a_second_of(8, 8);
        let fewer = Seen { taken: 10, spent: Duration::from_millis(10), ..seen(1000, 8, 8) };
        assert_eq!(policy.most_at_work(&fewer), Some(2));
    }

    #[test]
    fn no_cpu_says_nothing() {
        let mut policy = after_a_second_of(8, 8);
        for cores in [0.0, f32::NAN] {
            assert_eq!(policy.most_at_work(&Seen { cores, ..seen(1000, 8, 8) }), None);
        }
    }
}
