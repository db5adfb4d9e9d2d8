//! The highest need in a window of time that ends now.

use std::collections::VecDeque;
use std::time::Duration;

/// The candidates for the highest need, falling with time: one that is older and not higher than another cannot be the
/// highest any more.
#[derive(Debug, Clone, Default)]
pub struct Peak {
    candidates: VecDeque<(Duration, u32)>,
}

impl Peak {
    /// Time must not run backwards.
    pub fn observe(&mut self, now: Duration, need: u32, window: Duration) {
        while self.candidates.back().is_some_and(|&(_, lower)| lower <= need) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((now, need));
        while self.candidates.front().is_some_and(|&(at, _)| now.saturating_sub(at) > window) {
            self.candidates.pop_front();
        }
    }

    pub fn highest(&self) -> u32 {
        self.candidates.front().map_or(0, |&(_, need)| need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_is_forgotten_after_the_window_and_then_the_next_one_counts() {
        let mut peak = Peak::default();
        let mut observe = |second, need| {
            peak.observe(Duration::from_secs(second), need, Duration::from_secs(5));
            peak.highest()
        };
        assert_eq!(observe(0, 3), 3);
        assert_eq!(observe(1, 9), 9);
        assert_eq!(observe(3, 4), 9);
        assert_eq!(observe(6, 1), 9);
        assert_eq!(observe(7, 2), 4);
        assert_eq!(observe(9, 0), 2);
        assert_eq!(observe(20, 0), 0);
    }
}
