//! How much a process may have logged outside of its requests.

use regent_wire::clock;
use std::time::Duration;

/// Bytes that may be logged at once after a rest, and for each second in the long run.
const BURST: u64 = 2 << 20;
const RATE: u64 = 512 << 10;
/// What a line takes beside its text.
const LINE: u64 = 256;

/// Lets lines through as long as they are no flood, and counts the others.
#[derive(Debug)]
pub(super) struct Flood {
    left: u64,
    at: Duration,
    dropped: u64,
}

impl Flood {
    pub fn new() -> Self {
        Self { left: BURST, at: clock::now(), dropped: 0 }
    }

    /// Whether a line of so many bytes may be logged at `now` ([`clock::now`]), and then how many have been dropped since
    /// the last one that might.
    pub fn admit(&mut self, bytes: usize, now: Duration) -> Option<u64> {
        let new = now.saturating_sub(self.at).as_nanos() * u128::from(RATE) / 1_000_000_000;
        if new > 0 {
            self.left = u64::try_from(new).unwrap_or(BURST).saturating_add(self.left).min(BURST);
            self.at = now;
        }
        match self.left.checked_sub(bytes as u64 + LINE) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.dropped))
            }
            None => {
                self.dropped += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_its_rate_and_what_was_dropped_is_counted() {
        let mut flood = Flood::new();
        let start = clock::now();
        let admitted = (0..100_000).filter(|_| flood.admit(100, start).is_some()).count() as u64;
        assert_eq!(admitted, BURST / (100 + LINE));
        let later = start + Duration::from_secs(1);
        assert_eq!(flood.admit(100, later), Some(100_000 - admitted));
        let second = (0..100_000).filter(|_| flood.admit(100, later).is_some()).count() as u64;
        assert!(second <= RATE / (100 + LINE) + 1, "{second}");
    }

    #[test]
    fn a_process_that_rested_for_long_has_no_more_than_a_burst() {
        let mut flood = Flood::new();
        let later = clock::now() + Duration::from_secs(1 << 40);
        assert!((0..BURST).filter(|_| flood.admit(0, later).is_some()).count() as u64 <= BURST / LINE);
    }
}
