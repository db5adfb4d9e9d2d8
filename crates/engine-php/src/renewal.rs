//! When a thread starts its script anew of its own accord, so that what it leaks is given back.
//!
//! Threads that have started together come to their limits together. No more than one in eight threads of a pool is renewed
//! at the same time, and a thread that has to wait for that goes on serving, up to half as many requests again: what asks for
//! one request to a script gets that.

use regent_wire::control::PoolStart;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Of so many threads one may be renewed.
const SHARE: u32 = 8;

/// The threads of a pool.
#[derive(Debug, Default)]
pub struct RenewalPool {
    threads: AtomicU32,
    renewing: AtomicU32,
}

/// What one thread has done since its script began, and what it may.
#[derive(Debug)]
pub struct Renewal {
    pool: Arc<RenewalPool>,
    /// Each 0: no limit.
    max_requests: u64,
    /// Bytes that PHP has allocated.
    max_memory: u64,
    max_age: Duration,
    requests: u64,
    memory: u64,
    since: Instant,
    /// The thread is one of those that are renewed now.
    is_renewing: bool,
}

impl Renewal {
    pub fn new(pool: &Arc<RenewalPool>, limits: &PoolStart) -> Self {
        pool.threads.fetch_add(1, Ordering::Relaxed);
        Self {
            pool: Arc::clone(pool),
            max_requests: limits.max_requests,
            max_memory: limits.max_memory,
            max_age: Duration::from_millis(limits.max_age_ms),
            requests: 0,
            memory: 0,
            since: Instant::now(),
            is_renewing: false,
        }
    }

    /// The script is about to start.
    pub fn begin(&mut self) {
        (self.requests, self.memory, self.since) = (0, 0, Instant::now());
    }

    /// A client's request has ended, and has left so many bytes allocated.
    pub fn served(&mut self, memory: u64) {
        self.requests += 1;
        self.memory = memory;
    }

    /// Whether the script is to end now: it has reached a limit, and not too many others are starting anew, or it cannot wait
    /// for them. To be asked before a client's request is taken; a thread that takes one has been renewed.
    pub fn is_wanted(&mut self) -> bool {
        if !self.is_due() {
            self.finish();
            return false;
        }
        if !self.is_renewing {
            self.is_renewing = self.pool.admit(self.has_waited_enough());
        }
        self.is_renewing
    }

    /// Where threads are processes: so many has the pool now, this one among them, of which so many boot.
    pub fn see(&self, threads: u32, booting: u32) {
        self.pool.threads.store(threads, Ordering::Relaxed);
        self.pool.renewing.store(booting, Ordering::Relaxed);
    }

    /// Whether it has reached a limit.
    pub fn is_due(&self) -> bool {
        let is_over = |limit: u64, value: u64| limit != 0 && value >= limit;
        is_over(self.max_requests, self.requests)
            || is_over(self.max_memory, self.memory)
            // A script that nobody has asked for anything has nothing to give back.
            || !self.max_age.is_zero() && self.requests > 0 && self.since.elapsed() >= self.max_age
    }

    fn has_waited_enough(&self) -> bool {
        self.max_requests != 0 && self.requests >= self.max_requests + self.max_requests / 2
    }

    fn finish(&mut self) {
        if std::mem::take(&mut self.is_renewing) {
            self.pool.renewing.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.finish();
        self.pool.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RenewalPool {
    fn admit(&self, in_any_case: bool) -> bool {
        let most = (self.threads.load(Ordering::Relaxed) / SHARE).max(1);
        let one_more = |renewing: u32| (in_any_case || renewing < most).then_some(renewing + 1);
        self.renewing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize, limits: &PoolStart) -> Vec<Renewal> {
        let pool = Arc::default();
        (0..count).map(|_| Renewal::new(&pool, limits)).collect()
    }

    fn limits(max_requests: u64, max_memory: u64, max_age_ms: u64) -> PoolStart {
        PoolStart { name: String::new(), max_requests, max_memory, max_age_ms, worker: None }
    }

    #[test]
    fn each_limit_is_reason_enough_and_none_is_none() {
        let mut free = threads(1, &limits(0, 0, 0)).remove(0);
        (0..1000).for_each(|_| free.served(u64::MAX));
        assert!(!free.is_wanted());
        let mut by_requests = threads(1, &limits(2, 0, 0)).remove(0);
        by_requests.served(1 << 30);
        assert!(!by_requests.is_wanted());
        by_requests.served(0);
        assert!(by_requests.is_wanted());
        let mut by_memory = threads(1, &limits(0, 4096, 0)).remove(0);
        by_memory.served(4095);
        assert!(!by_memory.is_wanted());
        by_memory.served(4096);
        assert!(by_memory.is_wanted());
    }

    #[test]
    fn age_counts_only_for_a_script_that_has_served() {
        let mut thread = threads(1, &limits(0, 0, 60_000)).remove(0);
        thread.since =
            Instant::now().checked_sub(Duration::from_secs(61)).expect("the machine runs for longer");
        assert!(!thread.is_wanted());
        thread.served(1);
        assert!(thread.is_wanted());
        thread.begin();
        thread.served(1);
        assert!(!thread.is_wanted(), "the new script is young");
    }

    #[test]
    fn one_thread_in_eight_is_renewed_at_a_time_and_the_others_go_on() {
        for (count, most) in [(1, 1), (7, 1), (8, 1), (16, 2), (24, 3)] {
            let mut threads = threads(count, &limits(0, 1, 0));
            threads.iter_mut().for_each(|thread| thread.served(1));
            let wanted: Vec<bool> = threads.iter_mut().map(Renewal::is_wanted).collect();
            assert_eq!(wanted.iter().filter(|wanted| **wanted).count(), most, "of {count}");
            assert!(threads[0].is_wanted(), "it stays one of them until it has been renewed");
            threads[0].begin();
            assert!(!threads[0].is_wanted());
            if count > most {
                assert!(threads[count - 1].is_wanted(), "now there is room");
            }
        }
    }

    #[test]
    fn a_thread_waits_for_half_as_many_requests_again() {
        for (max_requests, last) in [(1, 1), (2, 3), (10, 15)] {
            let mut threads = threads(2, &limits(max_requests, 0, 0));
            for thread in &mut threads {
                (0..max_requests).for_each(|_| thread.served(1));
            }
            assert!(threads[0].is_wanted());
            for served in max_requests..last {
                assert!(!threads[1].is_wanted(), "{served} of {max_requests}");
                threads[1].served(1);
            }
            assert!(threads[1].is_wanted(), "{max_requests}");
        }
    }

    #[test]
    fn a_thread_that_ends_makes_room() {
        let mut threads = threads(2, &limits(0, 1, 0));
        threads.iter_mut().for_each(|thread| thread.served(1));
        assert!(threads[0].is_wanted() && !threads[1].is_wanted());
        threads.remove(0);
        assert!(threads[0].is_wanted());
    }
}
