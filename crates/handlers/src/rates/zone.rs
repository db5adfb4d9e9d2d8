//! A zone: the latest requests of every key that has asked lately.

use super::ZoneFigures;
use super::recent::{Recent, Verdict};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Keys that have used all their events, of which a zone has room for so many if [`MOST_MEMORY`] is enough.
const FULL_KEYS: u64 = 10_000;
/// Bytes that a zone remembers of its keys. Strangers choose them: without a bound they could fill the memory.
const LEAST_MEMORY: u64 = 16 << 20;
const MOST_MEMORY: u64 = 256 << 20;
/// Parts that are locked by themselves; each has room for several keys with as many events as there may be.
const SHARDS: usize = 4;
/// What an entry takes beside its times.
const OVERHEAD: u64 = 160;
/// Keys that are expected: of half as many that are forgotten the cache knows that they were there, and so who comes again.
const KNOWN_KEYS: usize = (LEAST_MEMORY / OVERHEAD) as usize;

/// So many requests in any stretch of so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub events: u32,
    pub window: Duration,
}

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Until one is.
    pub wait: Duration,
    /// No request of the key was refused in the window before.
    pub is_first: bool,
}

/// One for all configurations that have a zone of this name.
pub(crate) struct Zone {
    name: Arc<str>,
    /// Of this its times are counted.
    began: Instant,
    /// Who asks often is forgotten last (S3-FIFO): a flood of keys that come once displaces nobody whom it matters for.
    keys: Cache<Key, Entry, Weights>,
    hashers: [RandomState; 2],
    requests: AtomicU64,
    declined: AtomicU64,
}

/// Stands for a text, which may be long, and secret. Nobody outside of this process can say which texts have the same.
type Key = (u64, u64);

#[derive(Clone)]
struct Entry {
    recent: Arc<Mutex<Recent>>,
    /// Of its times, when it was put there: the cache relies on it that a weight stays.
    size: u64,
}

#[derive(Clone)]
struct Weights;

impl Weighter<Key, Entry> for Weights {
    fn weight(&self, _: &Key, entry: &Entry) -> u64 {
        entry.size + OVERHEAD
    }
}

impl Zone {
    pub(super) fn new(name: &str, events: u32) -> Self {
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(KNOWN_KEYS)
            .weight_capacity(memory(events))
            .build()
            .expect("invariant: items and weight are given");
        Self {
            name: name.into(),
            began: Instant::now(),
            keys: Cache::with_options(options, Weights, Default::default(), DefaultLifecycle::default()),
            hashers: [RandomState::new(), RandomState::new()],
            requests: AtomicU64::new(0),
            declined: AtomicU64::new(0),
        }
    }

    /// A key may have so many events from now on. The room never becomes smaller: a configuration that is refused in the end asks
    /// for it too, and must cost nobody what is remembered.
    pub(super) fn make_room(&self, events: u32) {
        self.keys.set_capacity(memory(events).max(self.keys.capacity()));
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Counts a request of `key`, or refuses it.
    pub fn take(&self, key: &str, rate: Rate, now: Instant) -> Result<(), Refused> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let [one, other] = self.hashers.each_ref().map(|hasher| hasher.hash_one(key));
        let key = (one, other);
        let entry = self.entry(key);
        let now = milliseconds(now.saturating_duration_since(self.began));
        let (verdict, size) = {
            let mut recent = entry.recent.lock().unwrap_or_else(PoisonError::into_inner);
            // Less than a millisecond is one.
            let window = milliseconds(rate.window).max(1);
            (recent.take(rate.events as usize, window, now), recent.size())
        };
        if size > entry.size {
            // `Err`: it was forgotten meanwhile.
            let _ = self.keys.replace(key, Entry { size, ..entry }, true);
        }
        match verdict {
            Verdict::Counted => Ok(()),
            Verdict::Refused { wait, is_first } => {
                self.declined.fetch_add(1, Ordering::Relaxed);
                Err(Refused { wait: Duration::from_millis(wait), is_first })
            }
        }
    }

    fn entry(&self, key: Key) -> Entry {
        let fresh = || Ok::<_, Infallible>(Entry { recent: Arc::default(), size: 0 });
        let Ok(entry) = self.keys.get_or_insert_with(&key, fresh);
        entry
    }

    pub(super) fn figures(&self) -> ZoneFigures {
        ZoneFigures {
            zone: self.name.to_string(),
            requests: self.requests.load(Ordering::Relaxed),
            declined: self.declined.load(Ordering::Relaxed),
            keys: self.keys.len() as u64,
        }
    }
}

/// Bytes for keys with so many events each.
fn memory(events: u32) -> u64 {
    let full = u64::from(events) * size_of::<u64>() as u64 + OVERHEAD;
    (FULL_KEYS * full).clamp(LEAST_MEMORY, MOST_MEMORY)
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn keys_count_by_themselves() {
        let (zone, now) = (Zone::new("z", 2), Instant::now());
        let rate = Rate { events: 2, window: MINUTE };
        let taken = |key, after| zone.take(key, rate, now + after);
        assert_eq!(taken("a", Duration::ZERO), Ok(()));
        assert_eq!(taken("a", Duration::from_secs(10)), Ok(()));
        assert_eq!(taken("b", Duration::from_secs(10)), Ok(()));
        let refused = taken("a", Duration::from_secs(20)).unwrap_err();
        assert!(
            refused.is_first && refused.wait.abs_diff(Duration::from_secs(40)) < Duration::from_millis(5)
        );
        assert_eq!(taken("a", Duration::from_secs(61)), Ok(()));
    }

    /// Also who comes when the flood has long begun, and however long the keys are.
    #[test]
    fn a_flood_of_keys_takes_bounded_memory_and_displaces_nobody_who_asks_often() {
        let (zone, now) = (Zone::new("z", 10), Instant::now());
        let rate = Rate { events: 10, window: MINUTE };
        let long = "x".repeat(100);
        let mut served = 0;
        for index in 0..400_000 {
            let _ = zone.take(&format!("{index} {long}"), rate, now);
            if index > 250_000 && index % 5000 == 0 {
                served += u32::from(zone.take("often", rate, now).is_ok());
            }
        }
        assert!(zone.keys.weight() <= LEAST_MEMORY, "{}", zone.keys.weight());
        assert!(zone.keys.len() > 50_000, "{}", zone.keys.len());
        assert!((10..=15).contains(&served), "{served}");
    }

    #[test]
    fn there_is_room_for_keys_with_many_events() {
        let (zone, now) = (Zone::new("z", 10_000), Instant::now());
        let rate = Rate { events: 10_000, window: MINUTE };
        let keys: Vec<_> = (0..200).map(|key| key.to_string()).collect();
        let served = |_| keys.iter().filter(|key| zone.take(key, rate, now).is_ok()).count();
        assert_eq!((0..rate.events).map(served).sum::<usize>(), 200 * 10_000);
        assert_eq!(served(0), 0);
    }

    #[test]
    fn a_key_may_have_as_many_events_as_there_may_be() {
        let most = regent_config::RateZone::MOST_EVENTS;
        let (zone, now) = (Zone::new("z", 1), Instant::now());
        zone.make_room(most);
        zone.make_room(1);
        let rate = Rate { events: most, window: MINUTE };
        (0..most).for_each(|_| assert_eq!(zone.take("a", rate, now), Ok(())));
        assert!(zone.take("a", rate, now).is_err());
    }

    #[test]
    fn threads_at_once_get_no_more_than_one_would() {
        let (zone, now) = (Zone::new("z", 500), Instant::now());
        let rate = Rate { events: 500, window: MINUTE };
        let served: usize = std::thread::scope(|scope| {
            let taking = || (0..1000).filter(|_| zone.take("a", rate, now).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(taking)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(served, 500);
    }
}
