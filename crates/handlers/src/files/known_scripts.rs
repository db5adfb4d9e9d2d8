//! Scripts that were on the disk a moment ago.
//!
//! A `stat` takes about two microseconds of the twenty that a request to a small script costs in all. PHP looks for
//! changes of a script no more often than every `opcache.revalidate_freq` seconds (2 by default), so that a second of
//! memory here delays nothing that it does not. Only what is there is remembered: a new file is found at once, and a script that has just
//! been removed is PHP's own 404.

use nix::sys::time::TimeSpec;
use nix::time::ClockId;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

const MEMORY: TimeSpec = TimeSpec::new(1, 0);
/// Paths that are remembered at most; a client can ask for no more than there are scripts.
const MOST: usize = 1024;

/// When each was seen last. Hashed without a key: what a client can put in is only what is on the disk.
#[derive(Debug, Default)]
pub(crate) struct KnownScripts(Mutex<FxHashMap<Vec<u8>, TimeSpec>>);

impl KnownScripts {
    /// Whether the file is there; `look` asks the disk.
    pub(crate) fn has(&self, file: &[u8], look: impl FnOnce() -> bool) -> bool {
        // A few milliseconds do not matter, and the exact clock costs three times as much.
        let now = ClockId::CLOCK_MONOTONIC_COARSE.now().expect("invariant: Linux has this clock");
        if self.seen_lately(file, now) {
            return true;
        }
        let is_there = look();
        if is_there {
            self.remember(file, now);
        }
        is_there
    }

    fn seen_lately(&self, file: &[u8], now: TimeSpec) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(file).is_some_and(|at| now - *at < MEMORY)
    }

    fn remember(&self, file: &[u8], now: TimeSpec) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            seen.clear();
        }
        seen.insert(file.to_vec(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_remembered() {
        let known = KnownScripts::default();
        assert!(!known.has(b"/a.php", || false));
        assert!(known.has(b"/a.php", || true));
        assert!(known.has(b"/a.php", || panic!("it is remembered")));
        assert!(!known.has(b"/b.php", || false));
    }

    #[test]
    fn memory_ends() {
        let known = KnownScripts::default();
        known.remember(b"/a.php", TimeSpec::new(10, 0));
        assert!(known.seen_lately(b"/a.php", TimeSpec::new(10, 999_999_999)));
        assert!(!known.seen_lately(b"/a.php", TimeSpec::new(11, 0)));
    }

    #[test]
    fn memory_is_bounded() {
        let known = KnownScripts::default();
        for number in 0..3 * MOST {
            known.remember(format!("/{number}.php").as_bytes(), MEMORY);
        }
        assert!(known.0.lock().unwrap().len() <= MOST);
    }
}
