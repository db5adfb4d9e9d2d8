//! What the run is doing and how long it will take, on stderr.

use std::time::{Duration, Instant};

/// Counts finished measurements; the time left is what was expected of the rest, stretched as the finished ones were.
#[derive(Debug)]
pub struct Progress {
    total: usize,
    done: usize,
    /// Of the finished measurements.
    expected: Duration,
    expected_left: Duration,
    last_step: Instant,
    taken: Duration,
}

impl Progress {
    /// Nothing to do yet.
    pub fn new() -> Self {
        Self {
            total: 0,
            done: 0,
            expected: Duration::ZERO,
            expected_left: Duration::ZERO,
            last_step: Instant::now(),
            taken: Duration::ZERO,
        }
    }

    /// From here on there are so many measurements, which will take so long.
    pub fn begin(&mut self, total: usize, expected: Duration) {
        *self = Self { total, expected_left: expected, ..Self::new() };
        if total > 0 {
            eprintln!("{total} measurements, about {}", in_words(expected));
        }
    }

    /// One measurement is done, which was expected to take so long; `what` says which and its result.
    pub fn step(&mut self, what: &str, expected: Duration) {
        self.done += 1;
        self.taken += self.last_step.elapsed();
        self.last_step = Instant::now();
        self.expected += expected;
        self.expected_left = self.expected_left.saturating_sub(expected);
        let left = time_left(self.taken, self.expected, self.expected_left);
        let (total, width) = (self.total.max(self.done), self.total.to_string().len());
        eprintln!("[{:>width$}/{total}] {what}; {} left", self.done, in_words(left));
    }
}

/// `expected` took `taken`; how long will `left` take?
fn time_left(taken: Duration, expected: Duration, left: Duration) -> Duration {
    if expected.is_zero() { left } else { left.mul_f64(taken.as_secs_f64() / expected.as_secs_f64()) }
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
        assert_eq!(time_left(seconds(0), seconds(0), seconds(100)), seconds(100));
        assert_eq!(time_left(seconds(20), seconds(10), seconds(40)), seconds(80));
        assert_eq!(time_left(seconds(20), seconds(10), seconds(0)), Duration::ZERO);
    }

    #[test]
    fn durations_in_words() {
        assert_eq!(in_words(Duration::from_millis(1_200)), "2 s");
        assert_eq!(in_words(Duration::from_secs(250)), "4 min 10 s");
    }
}
