//! What the run is doing and how long it will take, on stderr.

use std::time::{Duration, Instant};

/// Counts finished measurements; the time left is what they have taken so far, carried forward.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    expected: Duration,
    total: usize,
    done: usize,
}

impl Progress {
    /// `expected` is used until the first measurement has shown its real duration.
    pub fn new(expected: Duration) -> Self {
        eprintln!("about {} of measurements", in_words(expected));
        Self { started: Instant::now(), expected, total: 0, done: 0 }
    }

    /// Starts the clock for this many measurements.
    pub fn begin(&mut self, total: usize) {
        *self = Self { started: Instant::now(), total, ..*self };
    }

    /// One measurement is done; `what` says which and its result.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        let left = time_left(self.started.elapsed(), self.expected, self.done, self.total);
        let width = self.total.to_string().len();
        eprintln!("[{:>width$}/{}] {what}; {} left", self.done, self.total, in_words(left));
    }
}

fn time_left(elapsed: Duration, expected: Duration, done: usize, total: usize) -> Duration {
    match total.checked_sub(done) {
        None | Some(0) => Duration::ZERO,
        Some(_) if done == 0 => expected,
        Some(left) => elapsed.mul_f64(left as f64 / done as f64),
    }
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs_f64().ceil() as u64 {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_measurements() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(0), seconds(100), 0, 10), seconds(100));
        assert_eq!(time_left(seconds(20), seconds(100), 2, 10), seconds(80));
        assert_eq!(time_left(seconds(20), seconds(100), 10, 10), Duration::ZERO);
    }

    #[test]
    fn durations_in_words() {
        assert_eq!(in_words(Duration::from_millis(1_200)), "2 s");
        assert_eq!(in_words(Duration::from_secs(250)), "4 min 10 s");
    }
}
