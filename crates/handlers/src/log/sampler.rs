//! Of many lines a part.

use regent_config::LogSampling;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Of the lines of an interval it takes the first, and then one in so many.
#[derive(Debug)]
pub struct Sampler {
    rules: LogSampling,
    /// Since when lines are counted, and how many came. Locked for an addition only.
    state: Mutex<Option<(Instant, u64)>>,
}

impl Sampler {
    pub fn new(rules: LogSampling) -> Self {
        Self { rules, state: Mutex::default() }
    }

    /// Whether a line that comes now is one of them.
    pub fn takes(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = match *state {
            Some((since, count)) if now.saturating_duration_since(since) < self.rules.interval => {
                (since, count + 1)
            }
            _ => (now, 1),
        };
        *state = Some((since, count));
        let further = count.saturating_sub(self.rules.first);
        further == 0 || (self.rules.thereafter > 0 && further.is_multiple_of(self.rules.thereafter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_of_each_interval_and_some_of_the_others() {
        let rules = LogSampling { interval: Duration::from_secs(1), first: 3, thereafter: 10 };
        let sampler = Sampler::new(rules.clone());
        let now = Instant::now();
        let taken = |sampler: &Sampler, at| (0..43).filter(|_| sampler.takes(at)).count();
        assert_eq!(taken(&sampler, now), 3 + 4);
        assert_eq!(taken(&sampler, now + Duration::from_secs(1)), 3 + 4);
        assert_eq!(taken(&Sampler::new(LogSampling { thereafter: 0, ..rules }), now), 3);
    }
}
