//! When a busy thread is no capacity any more.

use regent_wire::ThreadView;
use std::time::Duration;

/// A request that takes so many times as long as usual is stuck, if it does not use the CPU.
const TIMES: u32 = 10;
/// What takes less is not stuck, however fast the others are.
const LEAST: Duration = Duration::from_secs(1);

/// How long requests of these threads take on average.
pub(super) fn usual<'a>(threads: impl Iterator<Item = &'a ThreadView>) -> Duration {
    let (busy, requests) = threads.fold((Duration::ZERO, 0u64), |(busy, requests), thread| {
        // What it runs now has not been added to its time yet.
        (busy.saturating_add(thread.busy), requests.saturating_add(thread.requests.saturating_sub(1)))
    });
    u32::try_from(requests.max(1)).map_or(Duration::ZERO, |requests| busy / requests)
}

/// Whether a busy thread that is off the CPU has been so for far longer than usual.
pub(super) fn is_stuck(thread: &ThreadView, usual: Duration, now: Duration) -> bool {
    now.saturating_sub(thread.since) > usual.saturating_mul(TIMES).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::{ThreadState, Token};

    fn thread(requests: u64, busy: Duration, since: Duration) -> ThreadView {
        ThreadView {
            state: ThreadState::Busy,
            since,
            tid: 1,
            token: Token { slot: 0, generation: 0 },
            requests,
            busy,
            restarts: 0,
            memory: 0,
        }
    }

    #[test]
    fn a_request_is_stuck_that_takes_far_longer_than_the_others() {
        let second = Duration::from_secs(1);
        let fast = thread(101, second / 2, 100 * second);
        let usual = usual([fast].iter());
        assert_eq!(usual, Duration::from_millis(5));
        assert!(!is_stuck(&fast, usual, 101 * second));
        assert!(is_stuck(&fast, usual, 102 * second));
        assert!(!is_stuck(&fast, 20 * second, 102 * second));
    }

    #[test]
    fn an_engine_can_say_anything() {
        let liar = thread(u64::MAX, Duration::MAX, Duration::MAX);
        assert_eq!(usual([liar, liar].iter()), Duration::ZERO);
        assert!(!is_stuck(&liar, Duration::ZERO, Duration::from_secs(9)));
    }
}
