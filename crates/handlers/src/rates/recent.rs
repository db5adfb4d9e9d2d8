//! The latest requests of one key: a sliding window.

use std::collections::VecDeque;

/// When they were, oldest first, in milliseconds of the zone.
#[derive(Debug, Default)]
pub(super) struct Recent {
    times: VecDeque<u64>,
    /// When one was refused last.
    refused: Option<u64>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Counted,
    /// Milliseconds until the next one is not refused, and whether none was in the window before.
    Refused {
        wait: u64,
        is_first: bool,
    },
}

impl Recent {
    /// Counts a request, unless there were `events` in the `window` before it. `now` may be a little earlier than the latest: it
    /// was read before another thread got here.
    pub fn take(&mut self, events: usize, window: u64, now: u64) -> Verdict {
        while self.times.front().is_some_and(|oldest| now.saturating_sub(*oldest) > window) {
            self.times.pop_front();
        }
        // There may be more of them if `events` was more.
        let free = self.times.len().checked_sub(events).map(|surplus| self.times[surplus]);
        match free {
            None => {
                self.push(events, now);
                Verdict::Counted
            }
            Some(oldest) => {
                let before = self.refused.replace(now);
                let is_first = before.is_none_or(|before| now.saturating_sub(before) > window);
                Verdict::Refused { wait: (oldest + window + 1).saturating_sub(now), is_first }
            }
        }
    }

    /// Takes no more memory than `events` need.
    fn push(&mut self, events: usize, now: u64) {
        let length = self.times.len();
        if length == self.times.capacity() {
            self.times.reserve_exact(length.max(1).min(events - length));
        }
        let latest = self.times.back().copied().unwrap_or_default();
        self.times.push_back(now.max(latest));
    }

    /// Bytes on the heap.
    pub fn size(&self) -> u64 {
        (self.times.capacity() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_refused_does_not_count() {
        let mut recent = Recent::default();
        let mut take = |now| recent.take(2, 1000, now);
        assert_eq!(take(0), Verdict::Counted);
        assert_eq!(take(600), Verdict::Counted);
        assert_eq!(take(1000), Verdict::Refused { wait: 1, is_first: true });
        assert_eq!(take(1000), Verdict::Refused { wait: 1, is_first: false });
        assert_eq!(take(1001), Verdict::Counted);
        assert_eq!(take(1001), Verdict::Refused { wait: 600, is_first: false });
        assert_eq!(take(5000), Verdict::Counted);
    }

    #[test]
    fn who_is_refused_again_and_again_is_first_once() {
        let mut recent = Recent::default();
        let first = |verdict: &&Verdict| matches!(verdict, Verdict::Refused { is_first: true, .. });
        let verdicts: Vec<_> = (0..10_000).map(|step| recent.take(30, 1000, step * 10)).collect();
        assert!(verdicts.iter().filter(|verdict| **verdict == Verdict::Counted).count() > 2900);
        assert_eq!(verdicts.iter().filter(first).count(), 1);
        (0..30).for_each(|_| assert_eq!(recent.take(30, 1000, 200_000), Verdict::Counted));
        assert_eq!(recent.take(30, 1000, 200_000), Verdict::Refused { wait: 1001, is_first: true });
    }

    #[test]
    fn it_takes_no_more_than_its_events_need() {
        let mut recent = Recent::default();
        for now in 0..2000 {
            recent.take(1000, 1_000_000, now);
        }
        assert_eq!(recent.size(), 8000);
    }

    #[test]
    fn fewer_or_more_events_count_from_then_on() {
        let mut recent = Recent::default();
        (0..10).for_each(|now| assert_eq!(recent.take(10, 100, now), Verdict::Counted));
        assert_eq!(recent.take(2, 100, 10), Verdict::Refused { wait: 99, is_first: true });
        assert_eq!(recent.take(11, 100, 10), Verdict::Counted);
        assert_eq!(recent.take(11, 5, 16), Verdict::Counted);
        assert_eq!(recent.times, [16]);
    }

    proptest! {
        /// The promise itself, by counting.
        #[test]
        fn no_window_has_more_than_it_may(
            events in 1..5_usize,
            window in 1..50_u64,
            steps in proptest::collection::vec(0..20_u64, 1..200),
        ) {
            let (mut recent, mut now, mut counted) = (Recent::default(), 0, Vec::new());
            for step in steps {
                now += step;
                let before = counted.iter().filter(|time| now - **time <= window).count();
                match recent.take(events, window, now) {
                    Verdict::Counted => {
                        prop_assert!(before < events);
                        counted.push(now);
                    }
                    Verdict::Refused { wait, .. } => {
                        prop_assert_eq!(before, events);
                        let then = now + wait;
                        let still = |at: u64| counted.iter().filter(|time| at - **time <= window).count();
                        prop_assert!(still(then) < events && still(then - 1) == events);
                    }
                }
            }
        }
    }
}
