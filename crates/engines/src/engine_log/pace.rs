//! How fast the lines of one request are taken: a script that logs in a loop waits for the log, and the I/O thread's other
//! requests do not wait for the script.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// Lines that are taken without a pause.
const BATCH: u32 = 64;
/// Lines of a request that may come as fast as can be: the pauses are only for others' requests.
const FREE: u32 = 4096;
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// So that 4,000 lines a second are left.
const LONG_PAUSE: Duration = Duration::from_millis(15);

/// Of one request. No line is lost: what is not taken stays in the ring, and then the script waits.
#[derive(Default)]
pub struct LogPace {
    lines: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl LogPace {
    /// A line was logged.
    pub fn count(&mut self) {
        self.lines = self.lines.saturating_add(1);
        if self.lines.is_multiple_of(BATCH) {
            let pause = if self.lines < FREE { SHORT_PAUSE } else { LONG_PAUSE };
            self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
    }

    /// Ready when the next line may be taken.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_logs_a_little_is_not_kept_and_one_that_does_not_end_is() {
        let (mut pace, begun) = (LogPace::default(), Instant::now());
        for _ in 1..BATCH {
            pace.count();
            poll_fn(|context| pace.poll_ready(context)).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..FREE + 40_000 {
            pace.count();
            poll_fn(|context| pace.poll_ready(context)).await;
        }
        assert!((8..16).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }
}
