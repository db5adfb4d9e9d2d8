//! Whether a pool's threads are at requests that compute for long.

use crate::machine;
use regent_dispatch::concurrency::LONG;
use std::collections::HashMap;
use std::time::Duration;

/// Threads that have been at one request for longer than [`LONG`], which may have waited for something else meanwhile, or
/// for the CPU.
#[derive(Debug, Default)]
pub(super) struct LongComputations {
    /// By the kernel's id: since when it has been at the request, and the CPU time that it had when that was noticed.
    suspects: HashMap<u32, (Duration, Duration)>,
}

impl LongComputations {
    /// `busy`: the threads that are at requests, as the kernel's ids of the process and the thread, and since when. Whether
    /// one of them has computed for longer than [`LONG`] since this saw it first.
    pub fn any(&mut self, busy: impl Iterator<Item = (u32, u32, Duration)>, now: Duration) -> bool {
        let mut suspects = HashMap::new();
        let mut any = false;
        for (pid, thread, since) in busy.filter(|(_, _, since)| now.saturating_sub(*since) > LONG) {
            // Where the kernel does not say how much a thread computes, it is taken to compute all the time.
            let computed = machine::cpu_time(pid, thread).unwrap_or(now);
            let before = self.suspects.get(&thread).filter(|(began, _)| *began == since);
            let first = before.map_or(computed, |(_, computed)| *computed);
            any |= computed.saturating_sub(first) > LONG;
            suspects.insert(thread, (since, first));
        }
        self.suspects = suspects;
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This thread, at a request since then.
    fn me(since: Duration) -> impl Iterator<Item = (u32, u32, Duration)> {
        std::iter::once((std::process::id(), my_id(), since))
    }

    fn my_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    fn compute_for(time: Duration) {
        let mine = || machine::cpu_time(std::process::id(), my_id()).unwrap();
        let begin = mine();
        while mine() < begin + time {}
    }

    #[test]
    fn a_request_that_computes_is_long_and_one_that_waits_is_not() {
        let now = Duration::from_secs(1000);
        let mut long = LongComputations::default();
        let busy = || me(now - 2 * LONG);
        assert!(!long.any(busy(), now), "seen for the first time");
        assert!(!long.any(busy(), now + LONG), "it waits for something");
        compute_for(2 * LONG);
        assert!(long.any(busy(), now + 2 * LONG));
        assert!(!long.any(me(now + 2 * LONG), now + 4 * LONG), "another request");
        assert!(!long.any(std::iter::empty(), now + 4 * LONG));
        assert!(long.suspects.is_empty());
    }

    #[test]
    fn a_request_that_has_just_begun_is_not_asked_about() {
        let now = Duration::from_secs(1000);
        let mut long = LongComputations::default();
        assert!(!long.any(me(now), now + LONG));
        assert!(long.suspects.is_empty());
    }
}
