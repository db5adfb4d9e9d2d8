//! How long requests may wait on the queues of an engine, without a timer for each: they leave a queue in the order in
//! which they came, so that the first ones of a list tell.

use regent_wire::Token;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::time::Duration;

/// An engine that boots has its own time, in which nobody is turned away because of it.
const BOOT: Duration = Duration::from_secs(30);

/// The requests of one I/O thread that were put on queues.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By pool.
    lines: Vec<Line>,
    /// Slots whose requests have waited for too long and have not been told yet.
    late: FxHashSet<u32>,
}

#[derive(Debug, Default)]
struct Line {
    /// In the order of the queue, and of the moments since when they wait.
    requests: VecDeque<(Token, Duration)>,
    /// Those that were put back on the queue, in no order: few, and only after the death of an engine.
    again: Vec<(Token, Duration)>,
    /// When the engine was last seen booting.
    booted: Duration,
}

impl Waiting {
    /// The request is on the pool's queue, and waits since then. Says no, and does not watch it, if it began to wait
    /// before one that is watched already.
    pub fn add(&mut self, pool: usize, token: Token, since: Duration) -> bool {
        let requests = &mut self.line(pool).requests;
        let is_last = requests.back().is_none_or(|(_, last)| since >= *last);
        if is_last {
            requests.push_back((token, since));
        }
        is_last
    }

    /// The request had been taken, and is on the pool's queue again. What it has waited before counts.
    pub fn add_again(&mut self, pool: usize, token: Token, since: Duration) {
        self.forget(token);
        let line = self.line(pool);
        line.requests.retain(|(known, _)| *known != token);
        line.again.push((token, since));
    }

    /// Finds those that have waited for `most`, and tells of each once.
    pub fn look(
        &mut self,
        now: Duration,
        most: Duration,
        boots: impl Fn(usize) -> bool,
        is_queued: impl Fn(Token) -> bool,
        mut tell: impl FnMut(Token),
    ) {
        for (pool, line) in self.lines.iter_mut().enumerate() {
            if !line.is_empty() && boots(pool) {
                line.booted = now;
            }
            let mut again = std::mem::take(&mut line.again);
            again.retain(|&(token, since)| {
                let waits = is_queued(token);
                let is_late = waits && line.is_too_long(since, now, most);
                if is_late {
                    self.late.insert(token.slot);
                    tell(token);
                }
                waits && !is_late
            });
            line.again = again;
            while let Some(&(token, since)) = line.requests.front() {
                let waits = is_queued(token);
                if waits && !line.is_too_long(since, now, most) {
                    break;
                }
                line.requests.pop_front();
                if waits {
                    self.late.insert(token.slot);
                    tell(token);
                }
            }
        }
    }

    pub fn is_late(&self, token: Token) -> bool {
        !self.late.is_empty() && self.late.contains(&token.slot)
    }

    /// The slot is not this request's any more.
    pub fn forget(&mut self, token: Token) {
        if !self.late.is_empty() {
            self.late.remove(&token.slot);
        }
    }

    fn line(&mut self, pool: usize) -> &mut Line {
        if self.lines.len() <= pool {
            self.lines.resize_with(pool + 1, Line::default);
        }
        &mut self.lines[pool]
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.again.is_empty()
    }

    fn is_too_long(&self, since: Duration, now: Duration, most: Duration) -> bool {
        let waited = |since| now.saturating_sub(since);
        waited(since.max(self.booted)) >= most || waited(since) >= most.max(BOOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(3);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn token(slot: u32) -> Token {
        Token { slot, generation: 1 }
    }

    /// Slots of which a look tells.
    fn late(waiting: &mut Waiting, second: u64, boots: &[usize], queued: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let is_queued = |token: Token| queued.contains(&token.slot);
        waiting.look(
            s(second),
            MOST,
            |pool| boots.contains(&pool),
            is_queued,
            |token| found.push(token.slot),
        );
        found
    }

    #[test]
    fn who_waits_for_too_long_is_told_once() {
        let mut waiting = Waiting::default();
        for (pool, slot, since) in [(0, 1, 10), (0, 2, 11), (1, 3, 10), (0, 4, 13)] {
            assert!(waiting.add(pool, token(slot), s(since)));
        }
        assert_eq!(late(&mut waiting, 12, &[], &[1, 2, 3, 4]), [0_u32; 0]);
        assert_eq!(late(&mut waiting, 13, &[], &[2, 3, 4]), [3], "the first was taken");
        assert!(waiting.is_late(token(3)) && !waiting.is_late(token(2)));
        waiting.forget(token(3));
        assert!(!waiting.is_late(token(3)));
        assert_eq!(late(&mut waiting, 14, &[], &[2, 4]), [2]);
        assert_eq!(late(&mut waiting, 20, &[], &[4]), [4]);
        assert_eq!(late(&mut waiting, 30, &[], &[4]), [0_u32; 0]);
    }

    #[test]
    fn a_booting_engine_has_its_own_time() {
        let mut waiting = Waiting::default();
        waiting.add(0, token(1), s(10));
        waiting.add(0, token(2), s(18));
        assert_eq!(late(&mut waiting, 17, &[0], &[1]), [0_u32; 0]);
        assert_eq!(late(&mut waiting, 19, &[], &[1, 2]), [0_u32; 0], "it serves since two seconds");
        assert_eq!(late(&mut waiting, 20, &[], &[1, 2]), [1]);
        assert_eq!(late(&mut waiting, 40, &[0], &[2]), [0_u32; 0], "but not for ever");
        assert_eq!(late(&mut waiting, 48, &[0], &[2]), [2]);
    }

    #[test]
    fn who_waits_again_is_told_by_the_sum_of_both_waits() {
        let mut waiting = Waiting::default();
        waiting.add(0, token(1), s(10));
        waiting.add(0, token(2), s(11));
        assert_eq!(late(&mut waiting, 13, &[], &[1, 2]), [1]);
        // It was taken before its task has seen that, ran for ten seconds, and is back.
        waiting.add_again(0, token(1), s(21));
        waiting.add_again(0, token(2), s(23));
        assert!(!waiting.is_late(token(1)));
        assert_eq!(late(&mut waiting, 23, &[], &[1, 2]), [0_u32; 0]);
        assert_eq!(late(&mut waiting, 24, &[], &[1, 2]), [1]);
        assert_eq!(late(&mut waiting, 30, &[], &[1]), [0_u32; 0], "the other was taken");
        assert!(waiting.lines[0].is_empty());
    }

    #[test]
    fn who_began_to_wait_before_others_in_the_queue_is_not_watched_here() {
        let mut waiting = Waiting::default();
        assert!(waiting.add(0, token(1), s(10)));
        assert!(!waiting.add(0, token(2), s(9)));
        assert!(waiting.add(1, token(3), s(9)));
    }
}
