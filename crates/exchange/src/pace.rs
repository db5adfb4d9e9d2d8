//! Bounds on request bodies, and how long a client may be awaited for their bytes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// A body may be slow for so long before its rate counts, or as long as it may be silent if that is less.
const GRACE: Duration = Duration::from_secs(30);

/// Bounds on a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    pub patience: BodyTimeouts,
    /// Bytes in all.
    pub size: Option<u64>,
}

/// Bounds on the time that a body takes.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeouts {
    /// Longest time without a byte.
    pub silence: Duration,
    /// Bytes a second that it brings on average, or else it ends: a byte now and then is no silence, and would keep a
    /// request for ever. 0: as slow as it likes.
    pub rate: u64,
    /// Longest time that it takes in all; `None`: no bound but these.
    pub whole: Option<Duration>,
}

/// The time that a body has taken. Only what the client was awaited for counts: a body that waits for a full spool, or
/// for a script, is not its client's fault.
#[derive(Debug, Default)]
pub struct Pace {
    awaited: Duration,
    /// What of that has passed since the last byte.
    silent: Duration,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    until: Pin<Box<Sleep>>,
}

impl Pace {
    /// Waits for more than the `received` bytes. Ready when the client has had its time.
    pub fn poll_expired(
        &mut self,
        patience: &BodyTimeouts,
        received: u64,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let left = patience.left(received, self.awaited, self.silent);
        let begin = || Waiting { since: Instant::now(), until: Box::pin(sleep(left)) };
        self.waiting.get_or_insert_with(begin).until.as_mut().poll(context)
    }

    /// Something has come.
    pub fn came(&mut self) {
        self.pause();
        self.silent = Duration::ZERO;
    }

    /// Nobody waits for more, until [`Self::poll_expired`] is called again.
    pub fn pause(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            let waited = waiting.since.elapsed();
            self.awaited += waited;
            self.silent += waited;
        }
    }
}

impl BodyTimeouts {
    /// How long may be waited for the next byte, after so many and so much waiting, some of it since the last one.
    fn left(&self, received: u64, awaited: Duration, silent: Duration) -> Duration {
        let earned = match self.rate {
            0 => Duration::MAX,
            rate => GRACE.min(self.silence).saturating_add(Duration::from_secs(received / rate)),
        };
        let most = earned.min(self.whole.unwrap_or(Duration::MAX));
        self.silence.saturating_sub(silent).min(most.saturating_sub(awaited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Bytes that come one after the other with these seconds between them: after how many the client has had its time.
    async fn lasts(patience: BodyTimeouts, seconds: u64, bytes_each: u64) -> Option<u64> {
        let mut pace = Pace::default();
        for count in 0..1000 {
            // clock: virtual in all tests that call this.
            let next = sleep(Duration::from_secs(seconds));
            let expired = poll_fn(|context| pace.poll_expired(&patience, count * bytes_each, context));
            tokio::select! {
                biased;
                () = next => pace.came(),
                () = expired => return Some(count),
            }
        }
        None
    }

    const PATIENCE: BodyTimeouts = BodyTimeouts { silence: Duration::from_secs(60), rate: 240, whole: None };

    #[tokio::test(start_paused = true)]
    async fn a_body_may_have_a_time_of_its_own() {
        let patience = BodyTimeouts { whole: Some(Duration::from_secs(25)), ..PATIENCE };
        assert_eq!(lasts(patience, 10, 1 << 20).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_ends_after_the_grace() {
        assert_eq!(lasts(PATIENCE, 50, 1).await, Some(0));
        assert_eq!(lasts(PATIENCE, 1, 1).await, Some(30));
        assert_eq!(lasts(PATIENCE, 1, 120).await, Some(59), "30 seconds and half of each other");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_that_keeps_its_rate_goes_on() {
        assert_eq!(lasts(PATIENCE, 1, 240).await, None);
        assert_eq!(lasts(PATIENCE, 50, 240 * 50).await, Some(0), "the first block has the grace alone");
        assert_eq!(lasts(PATIENCE, 29, 240 * 29).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_only_silence_counts() {
        let patience = BodyTimeouts { rate: 0, ..PATIENCE };
        assert_eq!(lasts(patience, 59, 1).await, None);
        assert_eq!(lasts(patience, 61, 1_000_000).await, Some(0));
    }

    #[test]
    fn a_fast_beginning_is_no_excuse_for_silence() {
        assert_eq!(PATIENCE.left(1 << 40, Duration::ZERO, Duration::ZERO), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_nobody_waits_for_the_client_does_not_count() {
        let mut pace = Pace::default();
        for count in 0..100 {
            let next = sleep(Duration::from_millis(10));
            let expired = poll_fn(|context| pace.poll_expired(&PATIENCE, count, context));
            tokio::select! {
                biased;
                () = next => pace.came(),
                () = expired => panic!("after {count}"),
            }
            sleep(Duration::from_secs(10)).await;
        }
    }

    /// Seconds of waiting for a silent client until it has had its time, in turns with as long in which nobody waits.
    async fn waited_in_turns(patience: BodyTimeouts, turn: u64) -> Option<u64> {
        let mut pace = Pace::default();
        for waited in (0..1000).step_by(turn as usize) {
            let expired = poll_fn(|context| pace.poll_expired(&patience, 0, context));
            if tokio::time::timeout(Duration::from_secs(turn), expired).await.is_ok() {
                return Some(waited);
            }
            pace.pause();
            // clock: virtual in the test that calls this.
            sleep(Duration::from_secs(turn)).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_an_answer_is_waited_for_is_no_silence_and_ends_none() {
        assert_eq!(waited_in_turns(PATIENCE, 4).await, Some(28), "the grace is 30 seconds");
        assert_eq!(waited_in_turns(BodyTimeouts { rate: 0, ..PATIENCE }, 7).await, Some(56), "of 60 seconds");
    }
}
