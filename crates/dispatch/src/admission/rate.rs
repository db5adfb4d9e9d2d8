//! How fast a pool starts requests while some wait.

use super::Queue;
use std::time::Duration;

/// A rate is taken over at least so long, ...
const WINDOW_LEAST: Duration = Duration::from_millis(50);
/// ... and over so many rounds of all threads: threads that started together end together, and a window that is
/// shorter than their service time would show no starts at all, or all of them.
const ROUNDS: u64 = 2;
/// After a pause of this length what was measured before it is no longer known.
const FORGET: Duration = Duration::from_secs(1);

/// Starts per second, measured in windows.
///
/// It is kept *by thread*, so that the estimate follows at once when autoscaling doubles the threads. Windows end by
/// starts, not by time, so a pool that hangs would keep its good old rate; therefore the rate is never more than what
/// the open window allows: with n starts in it, even if every thread took a request this moment, no more than
/// (n + threads) ÷ its age. That also is all that is known in the first window, and it is never too little.
#[derive(Debug, Default)]
pub(super) struct StartRate {
    /// Starts per second and thread.
    by_thread: Option<f64>,
    window: Option<Window>,
    /// When requests were last seen waiting.
    queued_at: Option<Duration>,
    /// When they were first, but for pauses in which nothing was forgotten.
    since: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    begin: Duration,
    started: u64,
    threads: u32,
}

impl StartRate {
    /// An arrival sees requests waiting, and no thread idle. Returns [`StartRate::wait`].
    pub fn look(&mut self, now: Duration, queue: Queue) -> Option<Duration> {
        let forgotten = self.queued_at.is_some_and(|at| now.saturating_sub(at) > FORGET);
        if self.window.is_none() && forgotten {
            self.by_thread = None;
            self.since = None;
        }
        self.queued_at = Some(now);
        self.since.get_or_insert(now);
        match self.window {
            Some(window) if queue.started < window.started => *self = Self::default(),
            Some(window) if window.threads == threads(queue) => self.close(window, now, queue),
            // Starts of more threads than there were say nothing of either number.
            _ => self.open(now, queue),
        }
        self.wait(now, queue)
    }

    /// For how long requests have been seen waiting.
    pub fn watched(&self, now: Duration) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// An arrival sees an empty queue or an idle thread: starts no longer tell what the pool could do.
    pub fn pause(&mut self) {
        self.window = None;
    }

    /// How long the requests that wait will take to start; `None` if nothing is known.
    pub fn wait(&self, now: Duration, queue: Queue) -> Option<Duration> {
        // The pool boots: it will be fast when it is there, and to shed what comes meanwhile would help nobody.
        if queue.started == 0 {
            return None;
        }
        let measured = self.by_thread.map(|rate| rate * f64::from(threads(queue)));
        let possible = self.window.and_then(|window| window.possible(now, queue));
        let rate = measured.into_iter().chain(possible).reduce(f64::min)?;
        Duration::try_from_secs_f64(queue.waiting as f64 / rate).ok()
    }

    fn open(&mut self, now: Duration, queue: Queue) {
        self.window = Some(Window { begin: now, started: queue.started, threads: threads(queue) });
    }

    fn close(&mut self, window: Window, now: Duration, queue: Queue) {
        let age = window.age(now);
        let starts = queue.started - window.started;
        if age < WINDOW_LEAST || starts < ROUNDS * u64::from(window.threads) {
            return;
        }
        let measured = starts as f64 / age.as_secs_f64() / f64::from(window.threads);
        // Half of what was known: a window of few starts is off by chance.
        self.by_thread = Some(self.by_thread.map_or(measured, |known| (known + measured) / 2.0));
        self.open(now, queue);
    }
}

impl Window {
    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begin)
    }

    /// `None` while it is too young to tell.
    fn possible(&self, now: Duration, queue: Queue) -> Option<f64> {
        let age = self.age(now).as_secs_f64();
        let starts = queue.started.saturating_sub(self.started) + u64::from(threads(queue));
        (age > 0.0).then(|| starts as f64 / age)
    }
}

/// An engine that just died has none; the next will have some.
fn threads(queue: Queue) -> u32 {
    queue.threads.max(1)
}
